//! Derives from a recipe the guest paths of its inputs and the commands of its steps and probes.
//!
//! Validation, the plan and the run request all use this module, so they agree.

use crate::model::{ExtraPlugin, HealthKind, HealthProbe, LoadAs, ProbeKind, Recipe, SeedKind};
use crate::model::{StartupProbe, Step, Workspace};
use crate::sources::{PathKind, Sources};
use wp_codebox_contracts::{CommandCall, string_enum};
use wp_codebox_policy::{
    AcceptedArg, Format, GUEST_MU_COMPONENTS, GUEST_STAGED_ROOT, arg_value, named_file,
};

/// WordPress directory in the guest.
pub(crate) const WORDPRESS: &str = "/wordpress";

string_enum! {
    /// Phase of the run in which a step is executed.
    #[derive(PartialOrd, Ord)]
    pub enum Phase {
        /// Steps that set plugins up, before the workflow.
        Setup = "setup",
        /// Steps of `workflow.before`.
        Before = "before",
        /// Steps of `workflow.steps`.
        Steps = "steps",
        /// Steps of `workflow.after`, which are executed even if an earlier step failed.
        After = "after",
        /// Probes, which are executed last.
        Probe = "probe",
    }
}

/// A step, and its position in the recipe.
#[derive(Debug, Clone)]
pub struct PlacedStep<'a> {
    /// Phase of the run in which the step is executed.
    pub phase: Phase,
    /// Position of the step in its phase, from 0.
    pub index: usize,
    /// JSON path of the step in the recipe, e.g. `$.workflow.steps[0]`.
    pub path: String,
    /// The step as written in the recipe.
    pub step: &'a Step,
}

impl PlacedStep<'_> {
    /// Returns the command as the guest executes it: files of the host that its arguments name are
    /// replaced by the paths of their copies in the guest.
    #[must_use]
    pub fn call(&self) -> CommandCall {
        let mut args = self.step.args.clone();
        for file in self.files() {
            args[file.at] = format!("{}={}{}", file.name, file.mark, file.target);
        }
        CommandCall {
            command: self.step.command.clone(),
            args,
        }
    }

    /// Returns the files of the host that must be copied into the guest, because arguments name
    /// them: `code-file=path`, `source-screenshot=path` and others, and `name=@path` where the
    /// command accepts a file. A path below `/workspace`, `/wordpress` or the directory of copied
    /// files is already a guest path, and `files/…` names a file that an earlier step stored; both
    /// are not returned.
    #[must_use]
    pub fn files(&self) -> Vec<StepFile<'_>> {
        let Some(found) = wp_codebox_policy::descriptor(&self.step.command) else {
            return Vec::new();
        };
        let mut files = Vec::new();
        for (at, arg) in self.step.args.iter().enumerate() {
            let Some((name, value)) = arg.split_once('=') else {
                continue;
            };
            let Some(row) = found.accepted_args.iter().find(|row| row.name == name) else {
                continue;
            };
            let (mark, path) = match (FILE_ARGUMENTS.contains(&name), named_file(value)) {
                (true, _) => ("", value),
                (false, Some(path)) if takes_file(row) => ("@", path),
                (false, _) => continue,
            };
            let of_run = path.starts_with(RUN_FILES) && name != "code-file";
            let of_guest = ["/workspace", WORDPRESS, GUEST_STAGED_ROOT]
                .iter()
                .any(|root| path.strip_prefix(root).is_some_and(|r| r.starts_with('/')));
            if !of_guest && !of_run && !path.is_empty() {
                files.push(StepFile {
                    at,
                    name,
                    mark,
                    host: path,
                    target: file_target(self.phase, self.index, name, path),
                });
            }
        }
        files
    }
}

/// Arguments whose value is the path of a file.
const FILE_ARGUMENTS: &[&str] = &[
    "code-file",
    "content-file",
    "source-screenshot",
    "candidate-screenshot",
    "baseline",
    "source-dom-snapshot",
    "candidate-dom-snapshot",
];
/// Command that runs an agent with a model.
const AGENT_STEP: &str = "wp-codebox.agent-sandbox-run";
/// Directory of the run's result in which commands store files; a later step can name them.
const RUN_FILES: &str = "files/";

/// Returns whether the value of an argument may be `@` and the path of a file. The format of
/// `storage-state` is text, because its value may also be the name of a session.
fn takes_file(row: &AcceptedArg) -> bool {
    matches!(
        row.format,
        Format::JsonObjectOrFile | Format::JsonListOrFile
    ) || row.name == "storage-state"
}

/// A file of the host that an argument of a step names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepFile<'a> {
    /// Index of the argument in the step's list of arguments.
    pub at: usize,
    /// Name of the argument.
    pub name: &'a str,
    /// Text between `=` and the path: `@` or nothing.
    pub mark: &'static str,
    /// Path on the host, as the recipe writes it.
    pub host: &'a str,
    /// Guest path of the copy.
    pub target: String,
}

/// Returns the guest path of the copy of a file that the argument `name` of a step names.
fn file_target(phase: Phase, index: usize, name: &str, host: &str) -> String {
    // The copy keeps the file's base name, because PHPUnit finds tests by file name and error
    // messages show it.
    let base: String = base(host)
        .chars()
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '-' => c,
            _ => '_',
        })
        .take(80)
        .collect();
    let prefix = name.strip_suffix("-file").unwrap_or(name);
    format!(
        "{GUEST_STAGED_ROOT}/recipe/{}-{index}/{prefix}/{base}",
        phase.as_str()
    )
}

/// Returns the steps of the recipe's workflow in execution order.
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

/// Returns the steps that set plugins up.
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

/// Returns all `probes` of the recipe as steps. They are executed after all other steps.
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

/// Returns the arguments that an agent step without a model inherits from a connector: provider and
/// model of the recipe's first connector that has one of them, or, if the step has a provider, the
/// model of the first connector with that provider.
pub(crate) fn inherited_args(recipe: &Recipe, call: &CommandCall) -> Vec<String> {
    let connectors = recipe.inputs.inheritance.iter().flat_map(|i| &i.connectors);
    if call.command != AGENT_STEP || arg_value(call, "model").is_some() {
        return Vec::new();
    }
    let wanted = arg_value(call, "provider");
    let mut fitting = connectors.filter(|connector| match (wanted, &connector.provider) {
        (Some(wanted), Some(own)) => wanted == own,
        (Some(_), None) => false,
        (None, own) => own.is_some() || connector.model.is_some(),
    });
    let Some(connector) = fitting.next() else {
        return Vec::new();
    };
    let provider = connector.provider.iter().filter(|_| wanted.is_none());
    let rows = provider
        .map(|text| ("provider", text))
        .chain(connector.model.iter().map(|text| ("model", text)));
    rows.map(|(name, value)| format!("{name}={value}"))
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

/// Returns the guest command that carries out a health probe of a plugin.
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

/// Returns the name by which WP-CLI knows a plugin: its directory, or for a plugin that is a single
/// file the file name without extension.
fn plugin_name(file: &str) -> &str {
    match file.split_once('/') {
        Some((directory, _)) => directory,
        None => file.strip_suffix(".php").unwrap_or(file),
    }
}

/// Returns the guest command that carries out a startup probe of the distribution.
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
    if let (ProbeKind::Http | ProbeKind::Browser, Some(status)) = (probe.kind, probe.expect_status)
    {
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

/// Returns the slug of a workspace: the one in the recipe, or the name of the host directory from
/// which the workspace is created.
pub(crate) fn workspace_slug(workspace: &Workspace) -> Option<&str> {
    let seed = &workspace.seed;
    match (&seed.slug, seed.kind) {
        (Some(slug), _) => Some(slug),
        (None, SeedKind::Directory) => seed.source.as_deref().map(base).filter(|b| is_slug(b)),
        (None, SeedKind::Plugin | SeedKind::Theme) => None,
    }
}

/// Returns the guest path of a workspace. A workspace that starts as a new plugin or theme (a
/// scaffold) is always in WordPress's plugin or theme directory: its `target` is ignored.
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

/// What exists on the host at the source of a plugin.
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

/// A plugin of a recipe, and where it is in the guest.
#[derive(Debug, Clone)]
pub(crate) struct PlacedPlugin<'a> {
    pub source: &'a str,
    pub from: PluginSource,
    /// Slug from the recipe, otherwise the name of the directory or archive.
    pub slug: String,
    /// Name of the plugin's directory in the guest, below WordPress's plugin directory.
    pub directory: String,
    pub target: String,
    pub load_as: LoadAs,
    /// Main file relative to the plugins directory, e.g. `my-plugin/my-plugin.php`.
    pub file: String,
}

/// Returns the host path of a plugin's directory or archive, including its subdirectory.
pub(crate) fn plugin_root(plugin: &ExtraPlugin, source: &str) -> String {
    match plugin_subdir(plugin) {
        Some(subdir) => format!("{}/{subdir}", source.trim_end_matches('/')),
        None => source.to_owned(),
    }
}

/// Returns the subdirectory of a plugin's source that contains the plugin; `None` if the source
/// itself is the plugin.
pub(crate) fn plugin_subdir(plugin: &ExtraPlugin) -> Option<&str> {
    let subdir = plugin.source_subdir.as_deref()?.trim_end_matches('/');
    (!matches!(subdir, "" | ".")).then_some(subdir)
}

/// Returns the source that a plugin is taken from. `sourcePath` is a prepared copy on this host,
/// for a `source` that is remote or missing.
fn own_source<'a>(plugin: &'a ExtraPlugin, sources: &dyn Sources) -> &'a str {
    match (plugin.source.as_deref(), plugin.source_path.as_deref()) {
        (Some(source), Some(prepared)) => match plugin_source(source, sources) {
            PluginSource::Remote | PluginSource::Missing => prepared,
            PluginSource::Directory
            | PluginSource::Zip
            | PluginSource::Denied
            | PluginSource::Other => source,
        },
        (Some(source), None) | (None, Some(source)) => source,
        (None, None) => "",
    }
}

pub(crate) fn place_plugin<'a>(plugin: &'a ExtraPlugin, sources: &dyn Sources) -> PlacedPlugin<'a> {
    let source = own_source(plugin, sources);
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
        // No file of this name exists, but the name is a slug: it means a plugin of WordPress.org.
        PathKind::Missing if is_slug(source) => PluginSource::Remote,
        PathKind::Missing => PluginSource::Missing,
    }
}

/// Returns the last component of a path.
pub(crate) fn base(path: &str) -> &str {
    path.trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default()
}

fn is_slug(text: &str) -> bool {
    crate::grammar::Pattern::Slug.fits(text)
}

/// Returns the guest path of the file of the service fake with this index.
pub(crate) fn staged_fake(index: usize) -> String {
    format!("{GUEST_STAGED_ROOT}/recipe/fakes/{index}.php")
}

/// Returns the guest path of the database dump with this index.
pub(crate) fn staged_dump(index: usize) -> String {
    format!("{GUEST_STAGED_ROOT}/recipe/dumps/{index}.sql")
}

/// Returns a guest path of a distribution; relative paths are resolved from the WordPress
/// directory.
pub(crate) fn in_wordpress(path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{WORDPRESS}/{path}")
    }
}
