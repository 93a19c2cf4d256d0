//! Tests the example recipes of the repository: each is valid, its plan is complete and
//! deterministic, and no path of this machine is in it.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{FakeHost, with};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use wp_codebox_recipe::{
    Context, HostFacts, ParentSite, PathKind, PolicyChoice, Recipe, SecretStatus, SiteSeed,
    Sources, ZipEntry, ZipUnreadable, dry_run, parse, validation,
};

fn fixtures() -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../../tests/fixtures/recipes")
}

/// Host facts for the tests. Paths are resolved from the directory of an example recipe.
struct RepositorySources {
    directory: PathBuf,
    facts: HostFacts,
}

impl Sources for RepositorySources {
    fn kind(&self, path: &str) -> PathKind {
        let path = self.directory.join(path);
        match (path.is_file(), path.is_dir()) {
            (true, _) => PathKind::File,
            (_, true) => PathKind::Directory,
            _ => PathKind::Missing,
        }
    }
    fn zip(&self, _: &str) -> Result<Vec<ZipEntry>, ZipUnreadable> {
        Err(ZipUnreadable {
            reason: "none here".to_owned(),
        })
    }
    fn sha256(&self, _: &str) -> Option<String> {
        None
    }
    fn requires_sha256(&self) -> bool {
        false
    }
    fn plugin_file(&self, path: &str) -> Option<String> {
        let name = Path::new(path).file_name()?.to_str()?.to_owned();
        Some(format!("{name}.php"))
    }
    fn secret(&self, _: &str) -> SecretStatus {
        SecretStatus::Available {
            source: "environment",
        }
    }
    fn parent_content(&self, seed: &SiteSeed) -> Result<String, String> {
        match seed.name.as_str() {
            "unreadable" => Err("its database is closed".to_owned()),
            name => Ok(format!("{{\"name\":\"{name}\"}}")),
        }
    }
    fn facts(&self) -> &HostFacts {
        &self.facts
    }
}

fn each(mut look: impl FnMut(&str, &Recipe, &RepositorySources)) -> usize {
    let mut names: Vec<_> = std::fs::read_dir(fixtures())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    for name in &names {
        let directory = fixtures().join(name);
        let bytes = std::fs::read(directory.join("recipe.json")).unwrap();
        let recipe = parse(&bytes).unwrap_or_else(|issues| panic!("{name}: {issues:?}"));
        let beside = RepositorySources {
            directory,
            facts: FakeHost::default().facts,
        };
        look(name, &recipe, &beside);
    }
    names.len()
}

#[test]
fn example_recipes_are_valid_with_deterministic_plans() {
    let count = each(|name, recipe, sources| {
        let context = Context {
            sources,
            policy: PolicyChoice::Derived,
        };
        let answer = validation("recipe.json", Ok(recipe), context);
        assert_eq!(answer["issues"], json!([]), "{name}");
        assert_eq!(answer["success"], true);
        let plan = dry_run("recipe.json", Ok(recipe), context);
        assert_eq!(plan["valid"], true, "{name}");
        let text = plan.to_string();
        assert_eq!(
            text,
            dry_run("recipe.json", Ok(recipe), context).to_string()
        );
        let here = sources.directory.to_str().unwrap();
        assert!(!text.contains(here), "{name}: {text}");
        for member in [
            "runtime",
            "artifacts",
            "mounts",
            "workspaces",
            "extra_plugins",
            "fixtureDatabases",
            "siteSeeds",
            "stagedFiles",
            "externalServices",
            "services",
            "probes",
            "secretEnv",
            "policy",
            "workflow",
        ] {
            assert!(plan["plan"].get(member).is_some(), "{name}: {member}");
        }
        for row in plan["plan"]["workflow"]["steps"].as_array().unwrap() {
            assert_eq!(row["policy"]["status"], "allowed", "{name}");
        }
    });
    assert!(count >= 10, "{count}");
}

fn plan_of(over: &Value) -> Value {
    let document = with(over);
    let recipe = parse(document.to_string().as_bytes()).unwrap();
    let host = FakeHost::default();
    let answer = dry_run(
        "r.json",
        Ok(&recipe),
        Context {
            sources: &host,
            policy: PolicyChoice::Derived,
        },
    );
    assert_eq!(answer["valid"], true, "{answer}");
    answer["plan"].clone()
}

#[test]
fn recipe_plan_contains_default_values_and_says_which_mount_modes_are_defaults() {
    let plan = plan_of(&json!({
        "inputs": {
            "mounts": [{"source": "./dir", "target": "/workspace/a"}],
            "workspaces": [
                {"target": "/workspace/ignored", "seed": {"type": "theme_scaffold", "slug": "t"}},
                {"seed": {"type": "directory", "source": "./other", "slug": "o"}},
            ],
            "extra_plugins": [{"source": "./dir", "mountSlug": "shop", "slug": "shop-dev"}],
        },
        "distribution": {"name": "D", "wordpress": {"root": "/wordpress"}, "sourceMounts": [{"source": "./other", "target": "/workspace/d"}]},
        "artifacts": {"verify": true, "workspacePolicy": {"enabled": false, "strict": true}, "paths": [{"name": "a", "path": "/workspace/a/x"}]},
    }));
    assert_eq!(plan["runtime"]["name"], "wp-codebox-recipe");
    assert_eq!(plan["runtime"]["wp"], "latest");
    assert_eq!(plan["mounts"][0]["mode"], "readonly");
    assert_eq!(plan["mounts"][0]["modeFrom"], "default");
    assert_eq!(plan["mounts"][1]["mode"], "readwrite");
    assert_eq!(plan["mounts"][1]["modeFrom"], "default");
    assert_eq!(plan["mounts"][1]["planned"], "existing");
    assert_eq!(plan["mounts"][2]["planned"], "generated");
    assert_eq!(plan["mounts"][2].get("source"), None);
    assert_eq!(
        plan["workspaces"][0]["target"],
        "/wordpress/wp-content/themes/t"
    );
    assert_eq!(
        plan["workspaces"][0]["metadata"]["ignoredTarget"],
        "/workspace/ignored"
    );
    assert_eq!(plan["workspaces"][1]["target"], "/workspace/o");
    assert_eq!(plan["workspaces"][1]["sourceMode"], "repo-backed");
    let plugin = &plan["extra_plugins"][0];
    assert_eq!(plugin["target"], "/wordpress/wp-content/plugins/shop");
    assert_eq!(plugin["pluginFile"], "shop/main.php");
    assert_eq!(plugin["activate"], true);
    assert_eq!(
        plan["artifacts"]["verify"],
        json!({"enabled": true, "strict": false})
    );
    assert_eq!(
        plan["artifacts"]["workspacePolicy"],
        json!({"enabled": false, "strict": false, "writableRoots": ["."], "hiddenPaths": [], "gitBacked": false})
    );
    assert_eq!(plan["artifacts"]["paths"][0]["required"], true);
    assert_eq!(plan["policy"]["commands"], json!(["wordpress.run-php"]));
    assert_eq!(plan["policy"]["network"], "deny");
}

#[test]
fn plan_lists_a_code_file_beside_the_recipe_as_staged_file_with_its_guest_path() {
    let plan = plan_of(&json!({
        "workflow": {"before": [{"command": "wordpress.run-php", "args": ["code-file=./code.php"]}]},
    }));
    let row = &plan["workflow"]["before"][0];
    let target = "/run/codebox/staged/recipe/before-0/code/code.php";
    assert_eq!(row["args"], json!(["code-file=./code.php"]));
    assert_eq!(row["resolvedArgs"], json!([format!("code-file={target}")]));
    assert_eq!(row["resolvedParsedArgs"]["code-file"], target);
    assert_eq!(plan["stagedFiles"][0]["source"], "./code.php");
    assert_eq!(plan["stagedFiles"][0]["target"], target);
}

#[test]
fn recipe_plan_shows_names_and_hosts_of_secrets_but_no_values() {
    let plan = plan_of(&json!({
        "inputs": {"secretEnv": ["API_KEY", "NOT_THERE"]},
        "distribution": {"name": "D", "wordpress": {"root": "/wordpress"}, "safety": {"network": "declared", "allowedHosts": ["api.example.org"], "secretEnv": ["API_KEY"]}},
    }));
    assert_eq!(
        plan["secretEnv"],
        json!([
            {"name": "API_KEY", "available": true, "status": "available", "source": "environment", "delivery": "bridge", "hosts": ["api.example.org"]},
            {"name": "NOT_THERE", "available": false, "status": "missing", "delivery": "none"},
        ])
    );
    assert_eq!(plan["policy"]["secrets"], "connector-scoped");
    assert_eq!(
        plan["policy"]["network"]["allowHosts"],
        json!(["api.example.org"])
    );
}

#[test]
fn unreadable_recipe_gets_no_plan_and_a_parent_site_seed_is_valid_only_with_a_parent_site() {
    let host = FakeHost {
        facts: HostFacts {
            parent_site: ParentSite::Present,
            wp_fallback: Default::default(),
            theme: None,
            ..FakeHost::default().facts
        },
        ..FakeHost::default()
    };
    let context = Context {
        sources: &host,
        policy: PolicyChoice::Derived,
    };
    let issues = parse(b"{\"schema\":1,\"schema\":2}").unwrap_err();
    let answer = dry_run("r.json", Err(&issues), context);
    assert_eq!(answer["success"], false);
    assert_eq!(answer.get("plan"), None);
    assert_eq!(answer["validation"]["issues"][0]["path"], "$.schema");
    assert_eq!(
        answer["error"]["message"],
        "Recipe validation failed with 1 issue(s)."
    );
    let answer = validation("r.json", Err(&issues), context);
    assert_eq!(answer.get("summary"), None);
    assert_eq!(answer["error"]["name"], "RecipeValidationError");
    // With a parent site on the host, this recipe is valid.
    let seeded = with(
        &json!({"inputs": {"siteSeeds": [{"type": "parent_site", "name": "p", "scopes": {"posts": {"maxRecords": 3}}}]}}),
    );
    let recipe = parse(seeded.to_string().as_bytes()).unwrap();
    assert_eq!(
        validation("r.json", Ok(&recipe), context)["issues"],
        json!([])
    );
    let alone = FakeHost::default();
    let context = Context {
        sources: &alone,
        policy: PolicyChoice::Derived,
    };
    let answer = validation("r.json", Ok(&recipe), context);
    assert_eq!(answer["issues"][0]["code"], "unsupported-site-seed-source");
    assert_eq!(
        answer["summary"],
        json!({"steps": 1, "mounts": 0, "workspaces": 0, "extraPlugins": 0, "stagedFiles": 0})
    );
}

/// The WordPress suite checks the same files against the generated schema with WordPress's own
/// validator.
#[test]
fn recipe_schema_examples_named_valid_are_accepted_and_others_refused() {
    let file = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../../abilities/schemas/examples/workspace-recipe.json");
    let examples: BTreeMap<String, Value> =
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let mut seen = (0, 0);
    for (name, example) in examples {
        let read = parse(example.to_string().as_bytes());
        if name.starts_with("valid-") {
            assert!(read.is_ok(), "{name}: {read:?}");
            seen.0 += 1;
        } else {
            assert!(read.is_err(), "{name}");
            seen.1 += 1;
        }
    }
    assert!(seen.0 >= 3 && seen.1 >= 3, "{seen:?}");
}
