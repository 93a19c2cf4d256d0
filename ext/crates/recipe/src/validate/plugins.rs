//! Plugins that a recipe brings along, and how they are set up.

use super::{Judge, steps};
use crate::grammar::Pattern;
use crate::issue::IssueCode;
use crate::layout::{self, PlacedPlugin, PluginSource};
use crate::model::{ExtraPlugin, HealthKind, LoadAs, PluginRuntime};
use crate::php_source::is_define;
use crate::sources::{PathKind, check_archive, is_below};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(judge: &mut Judge<'_>) {
    for (index, plugin) in judge.recipe.inputs.extra_plugins.iter().enumerate() {
        let path = format!("$.inputs.extra_plugins[{index}]");
        let placed = layout::place_plugin(plugin, judge.sources);
        check_source(judge, &path, plugin, &placed);
        check_names(judge, &path, plugin, &placed);
        if plugin.composer.is_some() {
            judge.say(
                IssueCode::UnsupportedComposerInstall,
                format!("{path}.composer"),
                "packages are not installed here; run composer install beforehand",
            );
        }
        if placed.load_as == LoadAs::MuPlugin && plugin.activate == Some(false) {
            judge.say(
                IssueCode::InvalidStep,
                format!("{path}.activate"),
                "a must-use plugin is always active; leave activate out",
            );
        }
    }
}

fn check_source(
    judge: &mut Judge<'_>,
    path: &str,
    plugin: &ExtraPlugin,
    placed: &PlacedPlugin<'_>,
) {
    let field = if plugin.source.is_some() {
        "source"
    } else {
        "sourcePath"
    };
    let at = format!("{path}.{field}");
    if placed.source.trim().is_empty() {
        judge.say(IssueCode::MissingSource, at, "is empty");
        return;
    }
    if let (Some(source), Some(other)) = (&plugin.source, &plugin.source_path)
        && source != other
    {
        judge.say(
            IssueCode::InvalidSource,
            format!("{path}.sourcePath"),
            "differs from source; leave one of them out",
        );
    }
    match placed.from {
        PluginSource::Directory => {
            if plugin.sha256.is_some() {
                judge.say(
                    IssueCode::InvalidSourceSha256,
                    format!("{path}.sha256"),
                    "only an archive has one sha256; leave it out for a directory",
                );
            }
        }
        PluginSource::Zip => check_zip(judge, path, &at, plugin, placed.source),
        PluginSource::Remote => judge.say(
            IssueCode::NetworkDownloadsDisabled,
            at,
            "nothing is downloaded; fetch the plugin beforehand and name its directory or archive",
        ),
        PluginSource::Missing => judge.say(IssueCode::MissingSource, at, "does not exist"),
        PluginSource::Denied => judge.say(
            IssueCode::InvalidSource,
            at,
            "this path may not be given to a guest",
        ),
        PluginSource::Other => judge.say(
            IssueCode::NotDirectory,
            at,
            "must be the directory of a plugin or a .zip archive",
        ),
    }
    for (name, value) in [
        ("sourceSubdir", &plugin.source_subdir),
        ("sourceSubpath", &plugin.source_subpath),
    ] {
        if value.as_deref().is_some_and(|v| !is_below(v)) {
            judge.say(
                IssueCode::InvalidSourceSubdir,
                format!("{path}.{name}"),
                "must be a path below the source, without `..`",
            );
        }
    }
    if placed.from == PluginSource::Directory
        && plugin.source_subdir.as_deref().is_some_and(is_below)
        && judge
            .sources
            .kind(&layout::plugin_root(plugin, placed.source))
            != PathKind::Directory
    {
        judge.say(
            IssueCode::NotDirectory,
            format!("{path}.sourceSubdir"),
            "is no directory of the source",
        );
    }
}

fn check_zip(judge: &mut Judge<'_>, path: &str, at: &str, plugin: &ExtraPlugin, source: &str) {
    match judge.sources.zip(source) {
        Err(error) => judge.say(
            IssueCode::InvalidSource,
            at,
            format!("the archive cannot be read: {error}"),
        ),
        Ok(entries) => {
            if let Err(error) = check_archive(&entries) {
                judge.say(IssueCode::InvalidSource, at, error.to_string());
            } else if let Some(subdir) = plugin.source_subdir.as_deref()
                && !entries.iter().any(|e| {
                    e.name
                        .strip_prefix(subdir)
                        .is_some_and(|r| r.starts_with('/'))
                })
            {
                judge.say(
                    IssueCode::InvalidSourceSubdir,
                    format!("{path}.sourceSubdir"),
                    "is no directory of the archive",
                );
            }
        }
    }
    match &plugin.sha256 {
        Some(wanted) => {
            let found = judge.sources.sha256(source);
            if found.is_none_or(|found| !found.eq_ignore_ascii_case(wanted)) {
                judge.say(
                    IssueCode::InvalidSourceSha256,
                    format!("{path}.sha256"),
                    "is not the archive's; it may have changed",
                );
            }
        }
        None if judge.sources.requires_sha256() => judge.say(
            IssueCode::MissingSourceSha256,
            format!("{path}.sha256"),
            "is required for archives by WP_CODEBOX_REQUIRE_SOURCE_SHA256; `sha256sum` prints it",
        ),
        None => {}
    }
}

fn check_names(judge: &mut Judge<'_>, path: &str, plugin: &ExtraPlugin, placed: &PlacedPlugin<'_>) {
    if plugin.slug.is_none() && !Pattern::Slug.fits(&placed.slug) {
        judge.say(
            IssueCode::InvalidSlug,
            format!("{path}.slug"),
            "is required here: the source's name is no slug",
        );
    }
    let own = placed
        .file
        .strip_prefix(&placed.directory)
        .is_some_and(|rest| rest.starts_with('/'));
    if plugin.plugin_file.is_some()
        && !(is_below(&placed.file) && placed.file.ends_with(".php") && own)
    {
        judge.say(
            IssueCode::InvalidPluginFile,
            format!("{path}.pluginFile"),
            format!("must be a .php file below {}/", placed.directory),
        );
    }
}

pub(super) fn check_runtime(judge: &mut Judge<'_>) {
    let Some(runtime) = &judge.recipe.inputs.plugin_runtime else {
        return;
    };
    check_php(judge, runtime);
    check_defines(
        judge,
        "$.inputs.pluginRuntime.wpConfigDefines",
        &runtime.wp_config_defines,
        IssueCode::InvalidPluginRuntimeDefine,
    );
    for placed in layout::setup(judge.recipe) {
        // What sets a plugin up acts in WordPress; agents and browsers come later.
        let fits = matches!(
            placed.step.command.as_str(),
            "wordpress.run-php" | "wordpress.wp-cli" | "wordpress.ability"
        );
        if !fits {
            judge.say(
                IssueCode::UnsupportedPluginRuntimeSetupCommand,
                format!("{}.command", placed.path),
                "setup takes wordpress.run-php, wordpress.wp-cli and wordpress.ability",
            );
            continue;
        }
        steps::check_step(judge, &placed);
    }
    let mut names = BTreeSet::new();
    for (index, probe) in runtime.health_probes.iter().enumerate() {
        let path = format!("$.inputs.pluginRuntime.healthProbes[{index}]");
        if !names.insert(probe.name.as_str()) {
            judge.say(
                IssueCode::InvalidPluginRuntimeHealthProbeName,
                format!("{path}.name"),
                "another health probe has this name; each needs its own",
            );
        }
        let blank = |text: &Option<String>| text.as_deref().is_none_or(|t| t.trim().is_empty());
        match probe.kind {
            HealthKind::Php if blank(&probe.code) => judge.say(
                IssueCode::MissingPluginRuntimeHealthProbeCode,
                format!("{path}.code"),
                "a probe of type php needs code",
            ),
            HealthKind::WpCli if blank(&probe.command) => judge.say(
                IssueCode::MissingPluginRuntimeHealthProbeCommand,
                format!("{path}.command"),
                "a probe of type wp-cli needs a command",
            ),
            HealthKind::PluginActive => {
                let file = probe.plugin_file.as_deref().unwrap_or_default();
                // The name becomes a word of a command line.
                let plain = is_below(file)
                    && file.bytes().all(|b| {
                        b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'/')
                    })
                    && !file.starts_with('-');
                if !plain || !file.ends_with(".php") {
                    judge.say(
                        IssueCode::InvalidPluginFile,
                        format!("{path}.pluginFile"),
                        "a probe of type plugin-active needs the plugin's main file, such as `shop/shop.php`",
                    );
                }
            }
            HealthKind::Php | HealthKind::WpCli => {}
        }
    }
}

fn check_php(judge: &mut Judge<'_>, runtime: &PluginRuntime) {
    let Some(php) = &runtime.php else {
        return;
    };
    let path = "$.inputs.pluginRuntime.php";
    if !php.bootstrap_ini_entries.is_empty() {
        judge.say(
            IssueCode::UnsupportedPluginRuntimeBootstrapIni,
            format!("{path}.bootstrapIniEntries"),
            "PHP has one set of settings for a whole process; use iniEntries",
        );
    }
    for (name, value) in &php.ini_entries {
        let plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'));
        // What would load code or undo what the guest's PHP is started with.
        let ours = matches!(
            name.as_str(),
            "extension"
                | "zend_extension"
                | "auto_prepend_file"
                | "auto_append_file"
                | "extension_dir"
                | "disable_functions"
                | "open_basedir"
                | "sys_temp_dir"
        );
        let value_fits = !value
            .as_str()
            // Inside of double quotes these would end the value or begin a variable.
            .is_some_and(|v| v.contains(['\n', '\r', '\0', '"', '$', '\\']));
        if !plain || ours || !value_fits {
            judge.say(
                IssueCode::InvalidPluginRuntimeIni,
                crate::issue::member(&format!("{path}.iniEntries"), name),
                "must be a setting that plugins may have, with a value of one line without \", $ and \\",
            );
        }
    }
}

/// Names of constants that the guest's own `wp-config.php` gives, or that are not names.
pub(super) fn check_defines(
    judge: &mut Judge<'_>,
    path: &str,
    defines: &BTreeMap<String, Value>,
    code: IssueCode,
) {
    for name in defines.keys() {
        if !is_define(name) {
            judge.say(
                code,
                crate::issue::member(path, name),
                "must be the name of a constant that does not belong to the guest itself",
            );
        }
    }
}
