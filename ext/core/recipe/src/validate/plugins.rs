//! Validates the plugins that a recipe adds, and the steps and settings for them.

use super::{Validator, steps};
use crate::grammar::Pattern;
use crate::issue::IssueCode;
use crate::layout::{self, PlacedPlugin, PluginSource};
use crate::model::{ExtraPlugin, HealthKind, PluginRuntime};
use crate::packages;
use crate::php_source::is_define;
use crate::sources::{PathKind, Sources, check_archive, is_below};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(validator: &mut Validator<'_>) {
    for (path, plugin) in packages::plugins(validator.recipe) {
        let placed = layout::place_plugin(&plugin, validator.sources);
        check_source(validator, &path, &plugin, &placed);
        check_names(validator, &path, &plugin, &placed);
        if plugin.composer.is_some() && !is_installed(&plugin, &placed, validator.sources) {
            validator.report(
                IssueCode::UnsupportedComposerInstall,
                format!("{path}.composer"),
                "the plugin has a composer.json but no vendor/autoload.php, and this backend does not run Composer; run composer install in its directory beforehand",
            );
        }
    }
}

/// Returns whether Composer has nothing to install for a plugin: it has no `composer.json`, or its
/// packages are installed.
fn is_installed(plugin: &ExtraPlugin, placed: &PlacedPlugin<'_>, sources: &dyn Sources) -> bool {
    match placed.from {
        PluginSource::Directory => {
            let root = layout::plugin_root(plugin, placed.source);
            let has = |name: &str| sources.kind(&format!("{root}/{name}")) == PathKind::File;
            !has("composer.json") || has("vendor/autoload.php")
        }
        PluginSource::Zip => sources.zip(placed.source).is_ok_and(|entries| {
            let has = |end: &str| entries.iter().any(|e| e.name.ends_with(end));
            !has("/composer.json") || has("/vendor/autoload.php")
        }),
        // `check_source` refuses these sources.
        PluginSource::Remote
        | PluginSource::Missing
        | PluginSource::Denied
        | PluginSource::Other => true,
    }
}

fn check_source(
    validator: &mut Validator<'_>,
    path: &str,
    plugin: &ExtraPlugin,
    placed: &PlacedPlugin<'_>,
) {
    let own = plugin.source.as_deref() == Some(placed.source);
    let field = if own { "source" } else { "sourcePath" };
    let at = format!("{path}.{field}");
    if placed.source.trim().is_empty() {
        validator.report(
            IssueCode::MissingSource,
            at,
            "the source is empty; name a host path",
        );
        return;
    }
    match placed.from {
        PluginSource::Directory => {
            if plugin.sha256.is_some() {
                validator.report(
                    IssueCode::InvalidSourceSha256,
                    format!("{path}.sha256"),
                    "only an archive has a sha256; omit it for a directory",
                );
            }
        }
        PluginSource::Zip => check_zip(validator, path, &at, plugin, placed.source),
        PluginSource::Remote => validator.report(
            IssueCode::NetworkDownloadsDisabled,
            at,
            "plugins of a recipe are not downloaded; download the plugin beforehand and set its directory or archive",
        ),
        PluginSource::Missing => validator.report(
            IssueCode::MissingSource,
            at,
            "the source does not exist on the host",
        ),
        PluginSource::Denied => validator.report(
            IssueCode::InvalidSource,
            at,
            "guests must not see this path: it belongs to the system, the site's configuration or WP Codebox's state, or is outside wp_codebox.mount_roots; choose another",
        ),
        PluginSource::Other => validator.report(
            IssueCode::NotDirectory,
            at,
            "must be the directory of a plugin or a .zip archive",
        ),
    }
    for (name, value) in [
        ("sourceSubdir", &plugin.source_subdir),
        ("sourceSubpath", &plugin.source_subpath),
    ] {
        let below = |v: &str| v.is_empty() || v == "." || is_below(v.trim_end_matches('/'));
        if value.as_deref().is_some_and(|v| !below(v)) {
            validator.report(
                IssueCode::InvalidSourceSubdir,
                format!("{path}.{name}"),
                "must be a path below the source, without `..`",
            );
        }
    }
    if placed.from == PluginSource::Directory
        && layout::plugin_subdir(plugin).is_some_and(is_below)
        && validator
            .sources
            .kind(&layout::plugin_root(plugin, placed.source))
            != PathKind::Directory
    {
        validator.report(
            IssueCode::NotDirectory,
            format!("{path}.sourceSubdir"),
            "the source has no directory of this name",
        );
    }
}

fn check_zip(
    validator: &mut Validator<'_>,
    path: &str,
    at: &str,
    plugin: &ExtraPlugin,
    source: &str,
) {
    match validator.sources.zip(source) {
        Err(error) => validator.report(
            IssueCode::InvalidSource,
            at,
            format!("the archive cannot be read: {error}"),
        ),
        Ok(entries) => {
            if let Err(error) = check_archive(&entries) {
                validator.report(IssueCode::InvalidSource, at, error.to_string());
            } else if let Some(subdir) = layout::plugin_subdir(plugin)
                && !entries.iter().any(|e| {
                    e.name
                        .strip_prefix(subdir)
                        .is_some_and(|r| r.starts_with('/'))
                })
            {
                validator.report(
                    IssueCode::InvalidSourceSubdir,
                    format!("{path}.sourceSubdir"),
                    "the archive has no directory of this name",
                );
            }
        }
    }
    match &plugin.sha256 {
        Some(wanted) => {
            let found = validator.sources.sha256(source);
            if found.is_none_or(|found| !found.eq_ignore_ascii_case(wanted)) {
                validator.report(
                    IssueCode::InvalidSourceSha256,
                    format!("{path}.sha256"),
                    "the archive cannot be read, or its SHA-256 is not the stated one; check the archive, then correct sha256",
                );
            }
        }
        None if validator.sources.requires_sha256() => validator.report(
            IssueCode::MissingSourceSha256,
            format!("{path}.sha256"),
            "WP_CODEBOX_REQUIRE_SOURCE_SHA256 requires the sha256 of every archive; `sha256sum` prints it",
        ),
        None => {}
    }
}

fn check_names(
    validator: &mut Validator<'_>,
    path: &str,
    plugin: &ExtraPlugin,
    placed: &PlacedPlugin<'_>,
) {
    if plugin.slug.is_none() && !Pattern::Slug.fits(&placed.slug) {
        validator.report(
            IssueCode::InvalidSlug,
            format!("{path}.slug"),
            "a slug is required, because the name of the source is not a valid slug",
        );
    }
    let own = placed
        .file
        .strip_prefix(&placed.directory)
        .is_some_and(|rest| rest.starts_with('/'));
    if plugin.plugin_file.is_some()
        && !(is_below(&placed.file) && placed.file.ends_with(".php") && own)
    {
        validator.report(
            IssueCode::InvalidPluginFile,
            format!("{path}.pluginFile"),
            format!("must be a .php file below {}/", placed.directory),
        );
    }
}

pub(super) fn check_runtime(validator: &mut Validator<'_>) {
    let Some(runtime) = &validator.recipe.inputs.plugin_runtime else {
        return;
    };
    check_php(validator, runtime);
    check_defines(
        validator,
        "$.inputs.pluginRuntime.wpConfigDefines",
        &runtime.wp_config_defines,
        IssueCode::InvalidPluginRuntimeDefine,
    );
    for placed in layout::setup(validator.recipe) {
        // Plugin setup may only use commands that act in WordPress; agents and browsers run later.
        let fits = matches!(
            placed.step.command.as_str(),
            "wordpress.run-php" | "wordpress.wp-cli" | "wordpress.ability"
        );
        if !fits {
            validator.report(
                IssueCode::UnsupportedPluginRuntimeSetupCommand,
                format!("{}.command", placed.path),
                "setup accepts only wordpress.run-php, wordpress.wp-cli and wordpress.ability",
            );
            continue;
        }
        steps::check_step(validator, &placed);
    }
    let mut names = BTreeSet::new();
    for (index, probe) in runtime.health_probes.iter().enumerate() {
        let path = format!("$.inputs.pluginRuntime.healthProbes[{index}]");
        if !names.insert(probe.name.as_str()) {
            validator.report(
                IssueCode::InvalidPluginRuntimeHealthProbeName,
                format!("{path}.name"),
                "another health probe has this name; use a distinct name",
            );
        }
        let blank = |text: &Option<String>| text.as_deref().is_none_or(|t| t.trim().is_empty());
        match probe.kind {
            HealthKind::Php if blank(&probe.code) => validator.report(
                IssueCode::MissingPluginRuntimeHealthProbeCode,
                format!("{path}.code"),
                "a probe of type php needs code",
            ),
            HealthKind::WpCli if blank(&probe.command) => validator.report(
                IssueCode::MissingPluginRuntimeHealthProbeCommand,
                format!("{path}.command"),
                "a probe of type wp-cli needs a command",
            ),
            HealthKind::PluginActive => {
                let file = probe.plugin_file.as_deref().unwrap_or_default();
                // The name becomes one word of a WP-CLI command line.
                let plain = is_below(file)
                    && file.bytes().all(|b| {
                        b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'/')
                    })
                    && !file.starts_with('-');
                if !plain || !file.ends_with(".php") {
                    validator.report(
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

fn check_php(validator: &mut Validator<'_>, runtime: &PluginRuntime) {
    let Some(php) = &runtime.php else {
        return;
    };
    let path = "$.inputs.pluginRuntime.php";
    let early = php.bootstrap_ini_entries.iter();
    let early = early.map(|row| ("bootstrapIniEntries", row));
    let late = php.ini_entries.iter().map(|row| ("iniEntries", row));
    for (list, (name, value)) in early.chain(late) {
        let plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'));
        // Refused: these settings would load code, or replace the guest's own PHP configuration.
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
            // In the configuration file the value is in double quotes: these characters would end
            // it or start a variable.
            .is_some_and(|v| v.contains(['\n', '\r', '\0', '"', '$', '\\']));
        if !plain || ours || !value_fits {
            validator.report(
                IssueCode::InvalidPluginRuntimeIni,
                crate::issue::member(&format!("{path}.{list}"), name),
                "must be a PHP setting that recipes may change, with a single-line value without \", $ and \\",
            );
        }
    }
}

/// Reports constants that the guest's own `wp-config.php` defines, and invalid names.
pub(super) fn check_defines(
    validator: &mut Validator<'_>,
    path: &str,
    defines: &BTreeMap<String, Value>,
    code: IssueCode,
) {
    for name in defines.keys() {
        if !is_define(name) {
            validator.report(
                code,
                crate::issue::member(path, name),
                "must be a valid constant name that the guest itself does not define",
            );
        }
    }
}
