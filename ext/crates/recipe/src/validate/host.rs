//! What the recipe wants of the runtime, against what this host has.

use super::{Judge, places};
use crate::blueprint;
use crate::issue::IssueCode;
use crate::model::SourceKind;
use serde_json::{Value, json};

pub(super) fn check(judge: &mut Judge<'_>) {
    let runtime = &judge.recipe.runtime;
    if runtime.backend_package.is_some() {
        judge.say(
            IssueCode::UnsupportedBackendPackage,
            "$.runtime.backendPackage",
            "a recipe brings no backend: guests are made by this host's own",
        );
    }
    versions(judge);
    if let Some(workers) = &runtime.workers
        && *workers != json!(1)
        && *workers != json!("auto")
    {
        judge.say(
            IssueCode::UnsupportedRuntimeWorkers,
            "$.runtime.workers",
            "each command has a PHP process of its own; say 1 or \"auto\"",
        );
    }
    if runtime.wordpress_install_mode.as_deref() == Some("do-not-attempt-installing") {
        judge.say(
            IssueCode::UnsupportedWordpressInstallMode,
            "$.runtime.wordpressInstallMode",
            "guests begin with an installed WordPress; leave the field out",
        );
    }
    let blueprint = runtime.blueprint.as_ref().map(blueprint::blueprint);
    for row in blueprint.iter().flat_map(|b| &b.rows) {
        if let Some(reason) = &row.reason {
            judge.say(
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
            "a recipe opens no preview; ask for it where the run is started",
        ),
        (
            "hostNodeHeap",
            IssueCode::UnsupportedHostNodeHeap,
            "no Node runs here; limit the run's memory where it is started",
        ),
    ] {
        let given = match name {
            "preview" => runtime.preview.is_some(),
            _ => runtime.host_node_heap.is_some(),
        };
        if given {
            judge.say(code, format!("$.runtime.{name}"), message);
        }
    }
    assets(judge);
    extensions(judge);
    let stack = runtime
        .stack
        .as_ref()
        .and_then(|s| s.get("mounts"))
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    for index in 0..stack {
        judge.say(
            IssueCode::UnsupportedRuntimeStack,
            format!("$.runtime.stack.mounts[{index}]"),
            "nothing is mounted below the guest's WordPress; use inputs.mounts",
        );
    }
}

fn versions(judge: &mut Judge<'_>) {
    let runtime = &judge.recipe.runtime;
    let facts = judge.sources.facts().clone();
    if let Some(wp) = runtime.wp.as_deref()
        && wp != "latest"
        && !matches(&facts.wordpress_version, wp)
    {
        judge.say(
            IssueCode::UnsupportedWordpressVersion,
            "$.runtime.wp",
            format!(
                "guests have WordPress {}; say \"latest\" or that version, or start the run with another WordPress directory",
                facts.wordpress_version
            ),
        );
    }
    if let Some(php) = runtime.php_version.as_deref()
        && !matches(&facts.php_version, php)
    {
        judge.say(
            IssueCode::UnsupportedPhpVersion,
            "$.runtime.phpVersion",
            format!("guests have PHP {}", facts.php_version),
        );
    }
}

/// Whether a version is the wanted one, or one of its series.
fn matches(version: &str, wanted: &str) -> bool {
    version == wanted
        || version
            .strip_prefix(wanted)
            .is_some_and(|rest| rest.starts_with(['.', '-']))
}

fn assets(judge: &mut Judge<'_>) {
    let Some(assets) = &judge.recipe.runtime.assets else {
        return;
    };
    if assets.wordpress_zip.is_some() {
        judge.say(
            IssueCode::UnsupportedRuntimeAssets,
            "$.runtime.assets.wordpressZip",
            "WordPress is not unpacked from an archive; unpack it and name wordpressDirectory",
        );
    }
    if let Some(directory) = assets.wordpress_directory.as_deref() {
        let path = "$.runtime.assets.wordpressDirectory";
        places::check_is(judge, path, directory, SourceKind::Directory);
    }
}

fn extensions(judge: &mut Judge<'_>) {
    let runtime = &judge.recipe.runtime;
    for index in 0..runtime.extensions.len() {
        judge.say(
            IssueCode::UnsupportedPhpExtension,
            format!("$.runtime.extensions[{index}]"),
            "extensions for another PHP cannot be loaded; install them for the host's PHP",
        );
    }
    for (index, name) in runtime.bundled_extensions.iter().enumerate() {
        let there = judge
            .sources
            .facts()
            .php_extensions
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name));
        if !there {
            judge.say(
                IssueCode::UnsupportedPhpExtension,
                format!("$.runtime.bundledExtensions[{index}]"),
                format!("the guest's PHP has no {name}; install it for the host's PHP"),
            );
        }
    }
}
