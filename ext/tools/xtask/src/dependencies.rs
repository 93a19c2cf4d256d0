//! Checks which crate may use which, on cargo's resolved dependency graph.
//!
//! The rule is in the folders: `ext/FLOOR/CRATE`. A crate may use the crates of its own floor and of
//! the floors listed for it; cargo refuses circles within a floor.

use crate::commands;
use crate::findings::TaskError;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const PREFIX: &str = "wp-codebox-";

/// The folders below `ext/` and the other floors that the crates of each may use.
const FLOORS: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("isolation", &["core"]),
    ("run", &["core", "isolation"]),
    ("shell", &["core", "isolation", "run"]),
    ("platform", &["core", "isolation", "run", "shell"]),
    ("php", &["core"]),
    ("tools", &["core"]),
];

/// Crates that may use fewer crates of the workspace than their floor.
const NARROWER: &[(&str, &[&str])] = &[
    // The only code that runs with the privileges that set up a guest.
    ("launcher", &["contracts"]),
    // Only the program of the platform joins these with the shell.
    ("cluster", &["artifacts", "contracts", "policy"]),
    ("ledger", &["contracts"]),
    (
        "service",
        &["contracts", "ledger", "policy", "routing", "schemas"],
    ),
];

/// External crates that grant a capability, such as network access; only the listed floors and
/// crates may use them.
const RESERVED: &[(&str, &[&str])] = &[
    ("ext-php-rs", &["php"]),
    ("landlock", &["launcher"]),
    ("seccompiler", &["launcher"]),
    ("tokio", &["run", "platform", "shell"]),
    ("async-nats", &["cluster"]),
    (
        "reqwest",
        &["agent", "service", "changes", "wordpress", "cli"],
    ),
    ("hyper", &["proxy", "supervisor", "service"]),
    ("rustls", &["proxy", "agent", "service", "cluster"]),
    ("axum", &["service"]),
    ("rusqlite", &["ledger", "service"]),
];

/// External crates that the extension must not link, even indirectly: PHP's process forks, and
/// threads and reactors of an async runtime do not survive a fork.
const NOT_IN_PHP: &[&str] = &["tokio", "hyper", "reqwest"];

/// Reads `cargo metadata` and `cargo tree` and returns every violation.
pub fn check(root: &Path) -> Result<Vec<String>, TaskError> {
    let metadata = commands::metadata(root)?;
    let mut findings = judge(&metadata);
    let tree = ["tree", "--package", "wp-codebox-ext", "--edges", "normal"];
    let cargo = commands::cargo();
    let answer = commands::quiet(root, &cargo, &[&tree[..], &["--prefix", "none"]].concat())?;
    match answer.success {
        true => findings.extend(judge_extension(&String::from_utf8_lossy(&answer.stdout))),
        false => findings.push(format!("cargo tree failed: {}", answer.said.trim())),
    }
    Ok(findings)
}

/// Returns a finding for each forbidden crate that the extension links; `tree` has one crate a
/// line, name first.
fn judge_extension(tree: &str) -> Vec<String> {
    let linked = tree.lines().filter_map(|line| line.split(' ').next());
    let linked: BTreeSet<&str> = linked.collect();
    if !linked.contains("wp-codebox-ext") {
        return vec!["cargo tree did not name the crates of the extension".to_owned()];
    }
    NOT_IN_PHP
        .iter()
        .filter(|name| linked.contains(*name))
        .map(|name| {
            format!("the extension must not link {name}; `cargo tree -p wp-codebox-ext -i {name}` shows through which crates")
        })
        .collect()
}

fn judge(metadata: &Value) -> Vec<String> {
    let mut findings = Vec::new();
    let root = Path::new(metadata["workspace_root"].as_str().unwrap_or_default());
    let packages = || metadata["packages"].as_array().into_iter().flatten();
    let floors: BTreeMap<&str, &str> = packages()
        .filter_map(|package| {
            let manifest = Path::new(package["manifest_path"].as_str()?);
            Some((short(package), floor(manifest.strip_prefix(root).ok()?)?))
        })
        .collect();
    for package in packages() {
        let name = short(package);
        let Some((floor, lower)) = floors
            .get(name)
            .and_then(|floor| FLOORS.iter().find(|(known, _)| known == floor))
        else {
            findings.push(format!(
                "crate {name} is in no floor; move it to one of the folders {:?} below ext/",
                FLOORS.iter().map(|(name, _)| name).collect::<Vec<_>>()
            ));
            continue;
        };
        let narrower = NARROWER.iter().find(|(known, _)| *known == name);
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let used = dependency["name"].as_str().unwrap_or_default();
            if used.starts_with(PREFIX) {
                let used = short(dependency);
                let theirs = floors.get(used).copied().unwrap_or_default();
                if theirs != *floor && !lower.contains(&theirs) {
                    findings.push(format!(
                        "crate {name} of floor {floor} may not depend on {used} of floor {theirs}; it may use the floors {lower:?}"
                    ));
                }
                if let Some((_, allowed)) = narrower
                    && !allowed.contains(&used)
                {
                    findings.push(format!(
                        "crate {name} may not depend on {used}; it may use {allowed:?}"
                    ));
                }
            } else if let Some((_, owners)) = RESERVED.iter().find(|(known, _)| *known == used)
                && !owners.contains(&name)
                && !owners.contains(floor)
            {
                findings.push(format!(
                    "crate {name} may not depend on {used}; only {owners:?} may"
                ));
            }
        }
    }
    findings
}

/// Returns the name of a package without the common prefix.
fn short(package: &Value) -> &str {
    let name = package["name"].as_str().unwrap_or_default();
    name.strip_prefix(PREFIX).unwrap_or(name)
}

/// Returns the floor of a crate by the path of its manifest in the checkout.
fn floor(manifest: &Path) -> Option<&str> {
    let mut folders = manifest.iter().filter_map(|folder| folder.to_str());
    match (folders.next()?, folders.next()?) {
        ("ext", floor) => Some(floor),
        // The fuzz targets.
        ("tests", _) => Some("tools"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Metadata of a crate that uses these; each crate as `FLOOR/NAME`, others by name only.
    fn metadata(user: &str, uses: &[&str]) -> Value {
        let ours = [&[user], uses].concat();
        let ours = ours.iter().filter_map(|path| path.split_once('/'));
        let packages: Vec<Value> = ours
            .enumerate()
            .map(|(index, (floor, name))| {
                let dependencies = uses.iter().map(|used| match used.split_once('/') {
                    Some((_, name)) => json!({"name": format!("{PREFIX}{name}")}),
                    None => json!({"name": used}),
                });
                json!({
                    "name": format!("{PREFIX}{name}"),
                    "manifest_path": format!("/src/ext/{floor}/{name}/Cargo.toml"),
                    "dependencies": dependencies.filter(|_| index == 0).collect::<Vec<_>>(),
                })
            })
            .collect();
        json!({"workspace_root": "/src", "packages": packages})
    }

    #[test]
    fn crate_may_use_its_own_floor_and_those_below_it() {
        let found = |user, used| judge(&metadata(user, &[used]));
        for (user, used) in [
            ("core/policy", "core/contracts"),
            ("isolation/backend-native", "core/runtime"),
            ("run/supervisor", "isolation/backend-native"),
            ("platform/service", "core/contracts"),
            ("shell/cli", "run/supervisor"),
            ("platform/platform", "shell/cli"),
            ("php/ext", "core/apply"),
            ("core/policy", "serde"),
        ] {
            assert_eq!(found(user, used), [""; 0], "{user} {used}");
        }
        for (user, used) in [
            ("core/policy", "isolation/backend-native"),
            ("isolation/backend-native", "run/supervisor"),
            ("run/supervisor", "platform/ledger"),
            ("run/supervisor", "shell/cli"),
            ("platform/service", "run/supervisor"),
            ("php/ext", "run/supervisor"),
            ("shell/cli", "platform/service"),
            ("php/ext", "platform/ledger"),
        ] {
            let found = found(user, used);
            assert!(
                matches!(&found[..], [text] if text.contains("may not depend on")),
                "{found:?}"
            );
        }
    }

    #[test]
    fn crate_with_a_narrower_rule_may_use_no_other_crate_of_the_floors_below() {
        let found = |user, used| judge(&metadata(user, &[used])).len();
        assert_eq!(found("isolation/launcher", "core/contracts"), 0);
        assert_eq!(found("isolation/launcher", "core/policy"), 1);
        assert_eq!(found("platform/service", "platform/ledger"), 0);
        assert_eq!(found("platform/service", "shell/cli"), 1);
    }

    #[test]
    fn external_crate_reserved_for_certain_crates_is_refused_elsewhere() {
        let found = |user, used| judge(&metadata(user, &[used])).len();
        assert_eq!(found("run/supervisor", "tokio"), 0);
        assert_eq!(found("php/ext", "tokio"), 1);
        assert_eq!(found("core/policy", "tokio"), 1);
        assert_eq!(found("platform/cluster", "async-nats"), 0);
        assert_eq!(found("platform/service", "async-nats"), 1);
    }

    #[test]
    fn crate_outside_of_the_floors_is_reported() {
        let found = judge(&metadata("attic/old", &[]));
        assert!(found[0].contains("crate old is in no floor"), "{found:?}");
    }

    #[test]
    fn indirect_async_runtime_dependency_of_the_extension_is_reported() {
        let tree = "wp-codebox-ext v0.1.0 (/src/ext)\nserde v1.0.0\nserde v1.0.0 (*)\n";
        assert!(judge_extension(tree).is_empty());
        let with = format!("{tree}some-client v1.0.0\ntokio v1.0.0\ntokio-macros v2.0.0\n");
        let found = judge_extension(&with);
        assert!(
            found.len() == 1 && found[0].contains("link tokio;"),
            "{found:?}"
        );
        assert_eq!(
            judge_extension("").len(),
            1,
            "an empty answer proves nothing"
        );
    }
}
