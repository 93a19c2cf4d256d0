//! Where the things of a recipe lie in the guest, and which commands it comes down to.
//!
//! Both the checks and the plan ask here, so that what is judged is what is planned.

use crate::model::{ExtraPlugin, HealthKind, HealthProbe, LoadAs, ProbeKind, Recipe, SeedKind};
use crate::model::{StartupProbe, Step, Workspace};
use crate::sources::{PathKind, Sources};
use wp_codebox_contracts::{CommandCall, string_enum};
use wp_codebox_policy::{GUEST_MU_COMPONENTS, GUEST_STAGED_ROOT};

/// Where WordPress lies in the guest.
pub(crate) const WORDPRESS: &str = "/wordpress";

string_enum! {
    /// Which list a step stands in.
    #[derive(PartialOrd, Ord)]
    pub enum Phase {
        /// Setup of plugins.
        Setup = "setup",
        /// Before the recipe's own work.
        Before = "before",
        /// The recipe's own work.
        Steps = "steps",
        /// After it, whatever came of it.
        After = "after",
        /// Probes at the end.
        Probe = "probe",
    }
}

/// A step and its place.
#[derive(Debug, Clone)]
pub struct PlacedStep<'a> {
    /// Which list.
    pub phase: Phase,
    /// Position in it.
    pub index: usize,
    /// Field path.
    pub path: String,
    /// The step.
    pub step: &'a Step,
}

impl PlacedStep<'_> {
    /// The call as the guest gets it: a `code-file` of the host is a staged file there.
    #[must_use]
    pub fn call(&self) -> CommandCall {
        let mut args = self.step.args.clone();
        if let Some((at, host)) = self.code_file() {
            args[at] = format!(
                "code-file={}",
                code_file_target(self.phase, self.index, host)
            );
        }
        CommandCall {
            command: self.step.command.clone(),
            args,
        }
    }

    /// Position and host path of a `code-file` that must be staged. A path below
    /// `/workspace`, `/wordpress` or the staged files is the guest's own and left alone.
    #[must_use]
    pub fn code_file(&self) -> Option<(usize, &str)> {
        let takes_one = wp_codebox_policy::descriptor(&self.step.command)
            .is_some_and(|found| found.accepted_args.iter().any(|a| a.name == "code-file"));
        if !takes_one {
            return None;
        }
        self.step.args.iter().enumerate().find_map(|(at, arg)| {
            let path = arg.strip_prefix("code-file=")?;
            let of_guest = ["/workspace", WORDPRESS, GUEST_STAGED_ROOT]
                .iter()
                .any(|root| path.strip_prefix(root).is_some_and(|r| r.starts_with('/')));
            (!of_guest && !path.is_empty()).then_some((at, path))
        })
    }
}

/// Where the code file of a step lies in the guest.
#[must_use]
pub fn code_file_target(phase: Phase, index: usize, host: &str) -> String {
    // The name is only for readers of error messages: what PHP prints it under.
    let name: String = base(host)
        .chars()
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '-' => c,
            _ => '_',
        })
        .take(80)
        .collect();
    format!(
        "{GUEST_STAGED_ROOT}/recipe/{}-{index}/code-{name}",
        phase.as_str()
    )
}

/// Steps of the workflow, in the order they run.
pub(crate) fn workflow(recipe: &Recipe) -> Vec<PlacedStep<'_>> {
    let workflow = &recipe.workflow;
    [
        (Phase::Before, &workflow.before),
        (Phase::Steps, &workflow.steps),
        (Phase::After, &workflow.after),
    ]
    .into_iter()
    .flat_map(|(phase, steps)| {
        let path = format!("$.workflow.{}", phase.as_str());
        placed(phase, path, steps)
    })
    .collect()
}

/// Steps of the plugins' setup.
pub(crate) fn setup(recipe: &Recipe) -> Vec<PlacedStep<'_>> {
    recipe
        .inputs
        .plugin_runtime
        .iter()
        .flat_map(|runtime| {
            let path = "$.inputs.pluginRuntime.setup".to_owned();
            placed(Phase::Setup, path, &runtime.setup)
        })
        .collect()
}

/// Steps of the probes.
pub(crate) fn probes(recipe: &Recipe) -> Vec<PlacedStep<'_>> {
    recipe
        .probes
        .iter()
        .enumerate()
        .map(|(index, probe)| PlacedStep {
            phase: Phase::Probe,
            index,
            path: format!("$.probes[{index}].step"),
            step: &probe.step,
        })
        .collect()
}

fn placed(phase: Phase, path: String, steps: &[Step]) -> Vec<PlacedStep<'_>> {
    steps
        .iter()
        .enumerate()
        .map(|(index, step)| PlacedStep {
            phase,
            index,
            path: format!("{path}[{index}]"),
            step,
        })
        .collect()
}

/// The command that a health probe comes down to.
pub(crate) fn health_call(probe: &HealthProbe) -> CommandCall {
    let (command, arg) = match probe.kind {
        HealthKind::PluginActive => (
            "wordpress.wp-cli",
            format!(
                "command=plugin is-active {}",
                probe.plugin_file.as_deref().map_or("", plugin_name)
            ),
        ),
        HealthKind::Php => ("wordpress.run-php", named("code", probe.code.as_deref())),
        HealthKind::WpCli => (
            "wordpress.wp-cli",
            named("command", probe.command.as_deref()),
        ),
    };
    CommandCall {
        command: command.to_owned(),
        args: vec![arg],
    }
}

/// WP-CLI's name of a plugin: its directory, or its file without the ending.
fn plugin_name(file: &str) -> &str {
    match file.split_once('/') {
        Some((directory, _)) => directory,
        None => file.strip_suffix(".php").unwrap_or(file),
    }
}

/// The command that a startup probe comes down to.
pub(crate) fn startup_call(probe: &StartupProbe) -> CommandCall {
    let (command, mut args) = match probe.kind {
        ProbeKind::Http => (
            "wordpress.http-request",
            vec![named("url", probe.url.as_deref())],
        ),
        ProbeKind::Browser => (
            "wordpress.browser-probe",
            vec![named("url", probe.url.as_deref())],
        ),
        ProbeKind::WpCli => (
            "wordpress.wp-cli",
            vec![named("command", probe.command.as_deref())],
        ),
        ProbeKind::Php => (
            "wordpress.run-php",
            vec![named("code", probe.code.as_deref())],
        ),
    };
    if let (ProbeKind::Http, Some(status)) = (probe.kind, probe.expect_status) {
        args.push(format!("expect-status={status}"));
    }
    CommandCall {
        command: command.to_owned(),
        args,
    }
}

fn named(name: &str, value: Option<&str>) -> String {
    format!("{name}={}", value.unwrap_or_default())
}

/// Slug of a workspace: its own, or the name of the directory it begins with.
pub(crate) fn workspace_slug(workspace: &Workspace) -> Option<&str> {
    let seed = &workspace.seed;
    match (&seed.slug, seed.kind) {
        (Some(slug), _) => Some(slug),
        (None, SeedKind::Directory) => seed.source.as_deref().map(base).filter(|b| is_slug(b)),
        (None, SeedKind::Plugin | SeedKind::Theme) => None,
    }
}

/// Where a workspace lies. A scaffold lies where WordPress looks for it, whatever its
/// `target` says.
pub(crate) fn workspace_target(workspace: &Workspace) -> Option<String> {
    let slug = workspace_slug(workspace);
    match workspace.seed.kind {
        SeedKind::Plugin => slug.map(|s| format!("{WORDPRESS}/wp-content/plugins/{s}")),
        SeedKind::Theme => slug.map(|s| format!("{WORDPRESS}/wp-content/themes/{s}")),
        SeedKind::Directory => workspace
            .target
            .clone()
            .or_else(|| slug.map(|s| format!("/workspace/{s}"))),
    }
}

/// What a plugin's source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PluginSource {
    Directory,
    Zip,
    Remote,
    Missing,
    Denied,
    Other,
}

impl PluginSource {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            PluginSource::Directory => "directory",
            PluginSource::Zip => "zip",
            PluginSource::Remote => "remote",
            PluginSource::Missing | PluginSource::Denied | PluginSource::Other => "unknown",
        }
    }
}

/// A plugin that a recipe brings along, placed.
#[derive(Debug, Clone)]
pub(crate) struct PlacedPlugin<'a> {
    pub source: &'a str,
    pub from: PluginSource,
    /// Name in the recipe; empty when none can be told.
    pub slug: String,
    /// Name of its directory.
    pub directory: String,
    pub target: String,
    pub load_as: LoadAs,
    /// Relative to the directory plugins lie in, with its own directory.
    pub file: String,
}

/// Host path of a plugin's directory or archive, with its subdirectory.
pub(crate) fn plugin_root(plugin: &ExtraPlugin, source: &str) -> String {
    match plugin.source_subdir.as_deref() {
        Some(subdir) => format!("{}/{subdir}", source.trim_end_matches('/')),
        None => source.to_owned(),
    }
}

pub(crate) fn place_plugin<'a>(plugin: &'a ExtraPlugin, sources: &dyn Sources) -> PlacedPlugin<'a> {
    let source = plugin
        .source
        .as_deref()
        .or(plugin.source_path.as_deref())
        .unwrap_or_default();
    let from = plugin_source(source, sources);
    let named = base(&plugin_root(plugin, source)).to_owned();
    let named = named.strip_suffix(".zip").unwrap_or(&named).to_owned();
    let slug = plugin.slug.clone().unwrap_or(named);
    let directory = plugin.mount_slug.clone().unwrap_or_else(|| slug.clone());
    let load_as = plugin.load_as.unwrap_or(LoadAs::Plugin);
    let holder = match load_as {
        LoadAs::Plugin => "/wordpress/wp-content/plugins",
        LoadAs::MuPlugin => GUEST_MU_COMPONENTS,
    };
    let file = match plugin.plugin_file.as_deref() {
        Some(file) if file.contains('/') => file.to_owned(),
        Some(file) => format!("{directory}/{file}"),
        None => {
            let found = match from {
                PluginSource::Directory => sources.plugin_file(&plugin_root(plugin, source)),
                PluginSource::Zip => sources.plugin_file(source),
                PluginSource::Remote
                | PluginSource::Missing
                | PluginSource::Denied
                | PluginSource::Other => None,
            };
            format!(
                "{directory}/{}",
                found.unwrap_or_else(|| format!("{slug}.php"))
            )
        }
    };
    PlacedPlugin {
        source,
        from,
        target: format!("{holder}/{directory}"),
        slug,
        directory,
        load_as,
        file,
    }
}

fn plugin_source(source: &str, sources: &dyn Sources) -> PluginSource {
    let lower = source.to_ascii_lowercase();
    if lower.contains("://") {
        return PluginSource::Remote;
    }
    match sources.kind(source) {
        PathKind::Directory => PluginSource::Directory,
        PathKind::File if lower.ends_with(".zip") => PluginSource::Zip,
        PathKind::File | PathKind::Other => PluginSource::Other,
        PathKind::Denied => PluginSource::Denied,
        // A bare name that is not here would be a plugin of WordPress.org.
        PathKind::Missing if is_slug(source) => PluginSource::Remote,
        PathKind::Missing => PluginSource::Missing,
    }
}

/// The last name of a path.
pub(crate) fn base(path: &str) -> &str {
    path.trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default()
}

fn is_slug(text: &str) -> bool {
    crate::grammar::Pattern::Slug.fits(text)
}

/// A guest path as a distribution gives it: relative ones are meant from WordPress.
pub(crate) fn in_wordpress(path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{WORDPRESS}/{path}")
    }
}
