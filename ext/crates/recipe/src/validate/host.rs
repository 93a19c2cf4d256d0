//! Validates the runtime section against the host's WordPress and PHP.

use super::{Validator, paths};
use crate::blueprint;
use crate::issue::IssueCode;
use crate::model::SourceKind;
use crate::sources::{UNKNOWN_VERSION, version_fits};
use serde_json::{Value, json};

pub(super) fn check(validator: &mut Validator<'_>) {
    let runtime = &validator.recipe.runtime;
    if runtime.backend_package.is_some() {
        validator.report(
            IssueCode::UnsupportedBackendPackage,
            "$.runtime.backendPackage",
            "a recipe cannot provide a backend: this host's own backend creates the guests",
        );
    }
    versions(validator);
    if let Some(workers) = &runtime.workers
        && *workers != json!(1)
        && *workers != json!("auto")
    {
        validator.report(
            IssueCode::UnsupportedRuntimeWorkers,
            "$.runtime.workers",
            "each command runs in its own PHP process; set 1 or \"auto\"",
        );
    }
    if runtime.wordpress_install_mode.as_deref() == Some("do-not-attempt-installing") {
        validator.report(
            IssueCode::UnsupportedWordpressInstallMode,
            "$.runtime.wordpressInstallMode",
            "guests start with an installed WordPress; omit the field",
        );
    }
    let blueprint = runtime.blueprint.as_ref().map(blueprint::blueprint);
    for row in blueprint.iter().flat_map(|b| &b.rows) {
        if let Some(reason) = &row.reason {
            validator.report(
                IssueCode::UnsupportedBlueprint,
                format!("$.runtime.blueprint.{}", row.path),
                reason.clone(),
            );
        }
    }
    for (name, code, message) in [
        (
            "preview",
            IssueCode::UnsupportedRuntimePreview,
            "a recipe cannot open a preview; request it when the run is started",
        ),
        (
            "hostNodeHeap",
            IssueCode::UnsupportedHostNodeHeap,
            "this backend does not run Node; limit the run's memory when it is started",
        ),
    ] {
        let given = match name {
            "preview" => runtime.preview.is_some(),
            _ => runtime.host_node_heap.is_some(),
        };
        if given {
            validator.report(code, format!("$.runtime.{name}"), message);
        }
    }
    assets(validator);
    extensions(validator);
    let stack = runtime
        .stack
        .as_ref()
        .and_then(|s| s.get("mounts"))
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    for index in 0..stack {
        validator.report(
            IssueCode::UnsupportedRuntimeStack,
            format!("$.runtime.stack.mounts[{index}]"),
            "this backend cannot mount a layer below the guest's WordPress; use inputs.mounts",
        );
    }
}

fn versions(validator: &mut Validator<'_>) {
    let runtime = &validator.recipe.runtime;
    let facts = validator.sources.facts().clone();
    if let Some(wp) = runtime.wp.as_deref()
        && wp != "latest"
        && facts.wordpress_version != UNKNOWN_VERSION
        && !version_fits(&facts.wordpress_version, wp)
    {
        validator.report(
            IssueCode::UnsupportedWordpressVersion,
            "$.runtime.wp",
            format!(
                "guests have WordPress {}; set \"latest\" or that version, or start the run with another WordPress directory",
                facts.wordpress_version
            ),
        );
    }
    if let Some(php) = runtime.php_version.as_deref()
        && !version_fits(&facts.php_version, php)
    {
        validator.report(
            IssueCode::UnsupportedPhpVersion,
            "$.runtime.phpVersion",
            format!(
                "guests have PHP {}; set that version, or omit phpVersion",
                facts.php_version
            ),
        );
    }
}

fn assets(validator: &mut Validator<'_>) {
    let Some(assets) = &validator.recipe.runtime.assets else {
        return;
    };
    if assets.wordpress_zip.is_some() {
        validator.report(
            IssueCode::UnsupportedRuntimeAssets,
            "$.runtime.assets.wordpressZip",
            "WordPress cannot be used from an archive; unpack it and set wordpressDirectory",
        );
    }
    if let Some(directory) = assets.wordpress_directory.as_deref() {
        let path = "$.runtime.assets.wordpressDirectory";
        paths::check_is(validator, path, directory, SourceKind::Directory);
    }
}

fn extensions(validator: &mut Validator<'_>) {
    let runtime = &validator.recipe.runtime;
    for index in 0..runtime.extensions.len() {
        validator.report(
            IssueCode::UnsupportedPhpExtension,
            format!("$.runtime.extensions[{index}]"),
            "guests use the host's PHP, which cannot load extensions from a recipe; install them for the host's PHP",
        );
    }
    for (index, name) in runtime.bundled_extensions.iter().enumerate() {
        let there = validator
            .sources
            .facts()
            .php_extensions
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name));
        if !there {
            validator.report(
                IssueCode::UnsupportedPhpExtension,
                format!("$.runtime.bundledExtensions[{index}]"),
                format!("the guest's PHP has no {name}; install it for the host's PHP"),
            );
        }
    }
}
