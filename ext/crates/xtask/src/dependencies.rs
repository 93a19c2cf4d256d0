//! Checks the dependency rule between the crates on cargo's resolved dependency graph.
//!
//! `contracts ← policy ← {recipe, artifacts} ← runtime ← backend-* ← supervisor ← cli`: a crate may
//! use those to its left.
//! `proxy`, `browser` and `agent` lie between runtime and supervisor; they do not use each other,
//! except that `agent` uses `proxy` for TLS. `launcher`, `control` and `process-wrapper` use only
//! `contracts` of this workspace; `backend-native` and `cli` use `process-wrapper`. `ledger` and `routing` use only `contracts`, `service` these three; only `cli` uses
//! them, because the core has no billing and no placement. Supervisor, cli and the extension use
//! control; the extension also uses contracts, policy, recipe and artifacts.

use crate::commands;
use crate::findings::TaskError;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

const PREFIX: &str = "wp-codebox-";

/// Workspace crates that each workspace crate may use; names without the common prefix.
const ALLOWED: &[(&str, &[&str])] = &[
    ("contracts", &[]),
    ("control", &["contracts"]),
    ("policy", &["contracts"]),
    ("recipe", &["contracts", "policy"]),
    ("artifacts", &["contracts", "policy"]),
    ("apply", &["contracts", "artifacts"]),
    ("runtime", &["contracts", "policy", "recipe", "artifacts"]),
    ("process-wrapper", &["contracts"]),
    (
        "backend-native",
        &[
            "contracts",
            "policy",
            "recipe",
            "artifacts",
            "runtime",
            "process-wrapper",
        ],
    ),
    ("launcher", &["contracts"]),
    // Only the service and the command line may use `ledger`.
    ("ledger", &["contracts"]),
    ("proxy", &["contracts", "policy", "artifacts", "runtime"]),
    ("browser", &["contracts", "policy", "artifacts"]),
    (
        "agent",
        &["contracts", "policy", "artifacts", "runtime", "proxy"],
    ),
    (
        "supervisor",
        &[
            "contracts",
            "control",
            "policy",
            "recipe",
            "artifacts",
            "runtime",
            "backend-native",
            "proxy",
            "browser",
            "agent",
        ],
    ),
    ("routing", &["contracts"]),
    // Only the command line may use `cluster`, so a run on one host executes none of its code.
    ("cluster", &["contracts", "policy", "artifacts"]),
    ("service", &["contracts", "ledger", "policy", "routing"]),
    (
        "cli",
        &[
            "cluster",
            "contracts",
            "control",
            "policy",
            "recipe",
            "artifacts",
            "runtime",
            "process-wrapper",
            "backend-native",
            "proxy",
            "browser",
            "agent",
            "supervisor",
            "apply",
            "ledger",
            "routing",
            "service",
            "cluster",
        ],
    ),
    (
        "ext",
        &[
            "contracts",
            "control",
            "policy",
            "recipe",
            "artifacts",
            "apply",
        ],
    ),
    ("xtask", &["contracts", "policy"]),
    ("fuzz", &["contracts", "control", "policy", "artifacts"]),
];

/// External crates that grant a capability, such as network access; only the listed workspace
/// crates may use them.
const RESERVED: &[(&str, &[&str])] = &[
    ("ext-php-rs", &["ext"]),
    ("landlock", &["launcher"]),
    ("seccompiler", &["launcher"]),
    (
        "tokio",
        &[
            "proxy",
            "browser",
            "agent",
            "supervisor",
            "service",
            "cli",
            "cluster",
        ],
    ),
    ("async-nats", &["cluster"]),
    ("reqwest", &["agent", "service", "cli"]),
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
    let program = commands::cargo();
    let answer = commands::quiet(
        root,
        &program,
        &["metadata", "--no-deps", "--format-version", "1"],
    )?;
    if !answer.success {
        return Ok(vec![format!(
            "cargo metadata failed: {}",
            answer.said.trim()
        )]);
    }
    let metadata: Value =
        serde_json::from_slice(&answer.stdout).map_err(|source| TaskError::Answer {
            program: program.clone(),
            source,
        })?;
    let mut findings = judge(&metadata);
    let tree = ["tree", "--package", "wp-codebox-ext", "--edges", "normal"];
    let answer = commands::quiet(root, &program, &[&tree[..], &["--prefix", "none"]].concat())?;
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
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let short = name.strip_prefix(PREFIX).unwrap_or(name);
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == short) else {
            findings.push(format!(
                "crate {name} has no row in the dependency rule; add one in xtask"
            ));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let used = dependency["name"].as_str().unwrap_or_default();
            if let Some(ours) = used.strip_prefix(PREFIX) {
                if !allowed.contains(&ours) {
                    findings.push(format!(
                        "crate {short} may not depend on {ours}; it may use {allowed:?}"
                    ));
                }
            } else if let Some((_, owners)) = RESERVED.iter().find(|(known, _)| *known == used)
                && !owners.contains(&short)
            {
                findings.push(format!(
                    "crate {short} may not depend on {used}; only {owners:?} may"
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn metadata(name: &str, uses: &[&str]) -> Value {
        let dependencies: Vec<Value> = uses.iter().map(|used| json!({"name": used})).collect();
        json!({"packages": [{"name": name, "dependencies": dependencies}]})
    }

    #[test]
    fn forbidden_dependency_between_workspace_crates_is_reported() {
        assert!(
            judge(&metadata(
                "wp-codebox-policy",
                &["wp-codebox-contracts", "serde"]
            ))
            .is_empty()
        );
        let upward = judge(&metadata("wp-codebox-contracts", &["wp-codebox-policy"]));
        assert_eq!(upward.len(), 1);
        assert!(
            upward[0].contains("contracts may not depend on policy"),
            "{upward:?}"
        );
        assert_eq!(
            judge(&metadata("wp-codebox-launcher", &["wp-codebox-policy"])).len(),
            1
        );
        let ledger = |user: &str| judge(&metadata(user, &["wp-codebox-ledger"])).len();
        assert_eq!(ledger("wp-codebox-cli"), 0);
        assert_eq!(ledger("wp-codebox-supervisor"), 1);
        assert_eq!(ledger("wp-codebox-ext"), 1);
    }

    #[test]
    fn routing_crate_may_be_used_by_cli_but_not_by_ext_or_recipe() {
        let uses = |name| judge(&metadata(name, &["wp-codebox-routing"])).len();
        assert_eq!(uses("wp-codebox-cli"), 0);
        assert_eq!(uses("wp-codebox-ext"), 1);
        assert_eq!(uses("wp-codebox-recipe"), 1);
    }

    #[test]
    fn external_crate_reserved_for_certain_crates_is_refused_elsewhere() {
        assert!(judge(&metadata("wp-codebox-supervisor", &["tokio"])).is_empty());
        assert_eq!(judge(&metadata("wp-codebox-ext", &["tokio"])).len(), 1);
        assert_eq!(judge(&metadata("wp-codebox-unheard-of", &[])).len(), 1);
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
