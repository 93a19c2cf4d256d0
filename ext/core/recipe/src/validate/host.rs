//! Validates the runtime section against the host's WordPress and PHP.

use super::{Validator, paths};
use crate::blueprint;
use crate::issue::IssueCode;
use crate::model::SourceKind;
use crate::policy;
use crate::sources::{UNKNOWN_VERSION, WpFallback, selector_fits};
use serde_json::Value;

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
    blueprint_parts(validator);
    assets(validator);
    extensions(validator);
}

fn blueprint_parts(validator: &mut Validator<'_>) {
    let Some(document) = &validator.recipe.runtime.blueprint else {
        return;
    };
    let all = blueprint::in_recipe(document, validator.sources);
    for row in &all.rows {
        if let Some(reason) = &row.reason {
            validator.report(
                IssueCode::UnsupportedBlueprint,
                format!("$.runtime.blueprint.{}", row.path),
                reason.clone(),
            );
        }
    }
    for package in &all.packages {
        let path = format!("$.runtime.blueprint.{}", package.path);
        if let Some(source) = package.local() {
            let file = source.to_ascii_lowercase().ends_with(".zip");
            let kind = if file {
                SourceKind::File
            } else {
                SourceKind::Directory
            };
            paths::check_given(validator, &path, source, kind);
        }
    }
    if let Some(policy) = &validator.policy {
        let closed: Vec<_> = all
            .downloads
            .iter()
            .filter(|(_, host)| !policy::may_download(policy, host))
            .cloned()
            .collect();
        for (path, host) in closed {
            validator.report(
                IssueCode::NetworkDownloadsDisabled,
                format!("$.runtime.blueprint.{path}"),
                format!("the step downloads from {host}, to which the policy of the run allows no requests: give a policy that allows this host, set WP_CODEBOX_ALLOW_NETWORK_DOWNLOADS=1 if you give no policy, or name a local archive or directory"),
            );
        }
    }
}

fn versions(validator: &mut Validator<'_>) {
    let runtime = &validator.recipe.runtime;
    let facts = validator.sources.facts().clone();
    let mut wanted = vec![("$.runtime.wp".to_owned(), runtime.wp.clone())];
    let mut php = vec![(
        "$.runtime.phpVersion".to_owned(),
        runtime.php_version.clone(),
    )];
    let preferred = runtime
        .blueprint
        .as_ref()
        .and_then(|b| b.get("preferredVersions"));
    for (name, list) in [("wp", &mut wanted), ("php", &mut php)] {
        let version = preferred.and_then(|p| p.get(name)).and_then(Value::as_str);
        let path = format!("$.runtime.blueprint.preferredVersions.{name}");
        list.push((path, version.map(str::to_owned)));
    }
    for (path, wp) in wanted {
        let Some(wp) = wp.filter(|wp| {
            facts.wordpress_version != UNKNOWN_VERSION
                && facts.wp_fallback == WpFallback::Refuse
                && !selector_fits(&facts.wordpress_version, wp)
        }) else {
            continue;
        };
        validator.report(
            IssueCode::UnsupportedWordpressVersion,
            path,
            format!(
                "WordPress {wp} is not installed for sandboxes; the other settings of the run select {}; run `wp-codebox wordpress install {}`, or start the run with --wordpress or with --wp-fallback nearest",
                facts.wordpress_version,
                match wp.starts_with(|c: char| c.is_ascii_digit()) {
                    true => wp.as_str(),
                    false => "DIRECTORY|FILE.zip",
                }
            ),
        );
    }
    for (path, php) in php {
        let Some(php) = php.filter(|php| php != "latest" && is_newer(php, &facts.php_version))
        else {
            continue;
        };
        validator.report(
            IssueCode::UnsupportedPhpVersion,
            path,
            format!(
                "guests have this host's PHP {}, which is older than {php}; install PHP {php} and name it with --php, or ask for an older version",
                facts.php_version
            ),
        );
    }
}

/// Returns whether a recipe asks for a newer PHP series than the host has. A recipe that asks for
/// an older series runs with the host's PHP, and a notice says so.
fn is_newer(wanted: &str, version: &str) -> bool {
    let series = |text: &str| -> Vec<u32> {
        let parts = text.split('.').take(2);
        parts.map(|part| part.parse().unwrap_or(0)).collect()
    };
    series(wanted) > series(version)
}

fn assets(validator: &mut Validator<'_>) {
    let Some(assets) = &validator.recipe.runtime.assets else {
        return;
    };
    if let Some(zip) = assets.wordpress_zip.as_deref() {
        let path = "$.runtime.assets.wordpressZip";
        if zip.contains("://") {
            validator.report(
                IssueCode::NetworkDownloadsDisabled,
                path,
                "a run does not download WordPress; install the archive with `wp-codebox wordpress install FILE.zip`, or name a local file",
            );
        } else if assets.wordpress_directory.is_some() {
            validator.report(
                IssueCode::UnsupportedRuntimeAssets,
                path,
                "wordpressDirectory is given too; remove one of them",
            );
        } else {
            paths::check_given(validator, path, zip, SourceKind::File);
        }
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
                format!("guests use the host's PHP, which has no extension {name}; install it for the host's PHP"),
            );
        }
    }
}
