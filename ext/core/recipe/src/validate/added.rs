//! Validates overlays, component manifests and source packages.

use super::{Validator, paths};
use crate::issue::IssueCode;
use crate::layout::{self, PluginSource};
use crate::model::{Access, SourceKind};
use crate::overlay::{self, Content};
use crate::packages;
use crate::places::file_view;
use crate::sources::{PathKind, is_below};
use serde_json::Value;

pub(super) fn check_overlays(validator: &mut Validator<'_>) {
    let recipe = validator.recipe;
    for (index, overlay) in recipe.runtime.overlays.iter().enumerate() {
        let path = format!("$.runtime.overlays[{index}]");
        if overlay.get("kind").and_then(Value::as_str) == Some("bundled-library") {
            validator.report(
                IssueCode::UnsupportedRuntimeOverlay,
                format!("{path}.kind"),
                "a guest cannot replace a library of WordPress's core, which is read-only; start the run with a WordPress directory that has the library, or load it in a must-use plugin",
            );
        }
        check_capabilities(validator, &path, overlay);
    }
    for (list, why) in [
        (
            "localRoutes",
            "the guest has no router outside of WordPress; register the route in a plugin",
        ),
        (
            "patches",
            "a guest cannot patch WordPress's core, which is read-only; add the changed files in `files`",
        ),
    ] {
        for path in overlay::paths(recipe, list) {
            validator.report(IssueCode::UnsupportedRuntimeOverlay, path, why);
        }
    }
    for file in overlay::files(recipe) {
        check_content(validator, &file.path, &file.content, file.sha256.as_deref());
        if file_view(&file.target, Some(file.mode)).is_none() {
            validator.report(
                IssueCode::UnsupportedRuntimeOverlay,
                format!("{}.mode", file.path),
                "guests cannot write a single file here, only below /wordpress/wp-content, /tmp and /home/agent; set \"readonly\"",
            );
        }
        paths::check_staged_path(validator, &format!("{}.path", file.path), &file.target);
    }
    for prelude in overlay::preludes(recipe) {
        check_content(validator, &prelude.path, &prelude.content, None);
        let name = prelude.target.rsplit('/').next().unwrap_or_default();
        if !matches!(name, "wp-config.php" | "wp-config") {
            validator.report(
                IssueCode::UnsupportedRuntimeOverlay,
                format!("{}.target", prelude.path),
                "a config prelude runs at the beginning of WordPress's configuration file; set \"wp-config.php\"",
            );
        }
    }
}

/// Reports each capability that an overlay requires, does not provide and lists in its own
/// `unsupportedGaps`.
fn check_capabilities(validator: &mut Validator<'_>, path: &str, overlay: &Value) {
    let bundle = overlay.get("bundle");
    let texts = |list: Option<&Value>| -> Vec<String> {
        let rows = list.and_then(Value::as_array).into_iter().flatten();
        rows.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let capabilities = bundle.and_then(|b| b.get("capabilities"));
    let required = texts(capabilities.and_then(|c| c.get("required")));
    let provided = texts(capabilities.and_then(|c| c.get("provided")));
    let gaps = bundle
        .and_then(|b| b.get("unsupportedGaps"))
        .and_then(Value::as_array);
    for (index, gap) in gaps.into_iter().flatten().enumerate() {
        let name = gap
            .get("capability")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if required.iter().any(|r| r == name) && !provided.iter().any(|p| p == name) {
            validator.report(
                IssueCode::UnsupportedRuntimeOverlay,
                format!("{path}.bundle.unsupportedGaps[{index}].capability"),
                "capabilities.required lists this capability, which the bundle itself states as unsupported; remove it from that list",
            );
        }
    }
}

fn check_content(
    validator: &mut Validator<'_>,
    path: &str,
    content: &Content,
    sha256: Option<&str>,
) {
    let Content::Source(source) = content else {
        return;
    };
    let before = validator.issues.len();
    paths::check_given(
        validator,
        &format!("{path}.source"),
        source,
        SourceKind::File,
    );
    if validator.issues.len() == before
        && let Some(wanted) = sha256
        && validator
            .sources
            .sha256(source)
            .is_none_or(|found| !found.eq_ignore_ascii_case(wanted))
    {
        validator.report(
            IssueCode::InvalidSourceSha256,
            format!("{path}.sha256"),
            "the file cannot be read, or its SHA-256 is not the stated one; check the file, then correct sha256",
        );
    }
}

/// Reports components that have no source and are no plugin of `inputs.extra_plugins`. The sources
/// of the others are checked with the plugins.
pub(super) fn check_components(validator: &mut Validator<'_>) {
    let recipe = validator.recipe;
    for (path, row) in packages::components(recipe) {
        if !packages::known(recipe, row) && row.get("source").is_none() {
            validator.report(
                IssueCode::UnsupportedComponentManifest,
                format!("{path}.source"),
                "the component has no source, and inputs.extra_plugins has no plugin with its slug; set source to its directory",
            );
        }
    }
}

pub(super) fn check_source_packages(validator: &mut Validator<'_>) {
    let recipe = validator.recipe;
    for (index, package) in packages::source_packages(recipe).into_iter().enumerate() {
        let path = &package.path;
        let at = format!("{path}.source");
        paths::check_given(validator, &at, &package.source, SourceKind::Directory);
        paths::check_target(
            validator,
            &format!("{path}.target"),
            &package.target,
            Access::Readonly,
        );
        for (at, entry) in package.deny.iter().enumerate() {
            if !is_below(entry) || entry.contains('*') {
                validator.report(
                    IssueCode::UnsupportedSourcePackage,
                    format!("{path}.deny[{at}]"),
                    "must be a path below the source, such as `node_modules` or `build/**`; other patterns are not supported",
                );
            }
        }
        let row = &recipe.inputs.source_packages[index];
        let allow = row
            .get("allow")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        for (at, entry) in allow.enumerate() {
            if !matches!(entry.as_str(), Some("." | "*" | "**" | "**/*" | "./**")) {
                validator.report(
                    IssueCode::UnsupportedSourcePackage,
                    format!("{path}.allow[{at}]"),
                    "only the whole directory can be allowed, as `**`; exclude entries with `deny`",
                );
            }
        }
        if row.get("artifact") == Some(&Value::Bool(true))
            || row
                .get("artifact")
                .is_some_and(|a| a.is_object() && a.get("path").is_none())
        {
            validator.report(
                IssueCode::UnsupportedSourcePackage,
                format!("{path}.artifact"),
                "a directory cannot become an artifact of the run; set artifact.path to a file",
            );
        }
    }
}

pub(super) fn check_dependency_overlays(validator: &mut Validator<'_>) {
    let recipe = validator.recipe;
    let plugins = packages::plugins(recipe);
    for overlay in packages::dependency_overlays(recipe) {
        let path = &overlay.path;
        let at = format!("{path}.source");
        paths::check_given(validator, &at, &overlay.source, SourceKind::Directory);
        let consumer = plugins
            .iter()
            .map(|(_, plugin)| (plugin, layout::place_plugin(plugin, validator.sources)))
            .find(|(_, placed)| {
                placed.slug == overlay.consumer || placed.directory == overlay.consumer
            });
        let Some((plugin, placed)) = consumer else {
            validator.report(
                IssueCode::UnknownDependencyOverlayConsumer,
                format!("{path}.consumer"),
                "no plugin of the recipe has this slug; add it to inputs.extra_plugins",
            );
            continue;
        };
        let own = format!(
            "{}/vendor/{}",
            layout::plugin_root(plugin, placed.source),
            overlay.package
        );
        if placed.from != PluginSource::Directory
            || validator.sources.kind(&own) != PathKind::Directory
        {
            validator.report(
                IssueCode::UnsupportedDependencyOverlay,
                format!("{path}.package"),
                format!("the plugin must be a local directory with vendor/{}, which the overlay replaces; unpack an archive, and run composer install in the directory beforehand", overlay.package),
            );
        }
    }
}
