//! Checks that every field of the grammar is implemented, descriptive or refused: none is parsed
//! and ignored.
//!
//! The recipe of `everything()` contains every implemented field. If any one of them is removed,
//! the run request made from the recipe must change. All other fields are refused by path (see
//! `bad.rs`) or only descriptive.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::FakeHost;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use wp_codebox_recipe::{Context, Lowered, PolicyChoice, lower, parse, recipe_schema, validate};

/// Fields whose use makes a recipe invalid, some only with certain values.
const REFUSED: &[&str] = &[
    "adversarialCampaigns",
    "artifacts.workspacePolicy.gitBacked",
    "distribution.routeAliases",
    "distribution.wordpress.bootstrap",
    "distribution.wordpress.bootstrapFile",
    "distribution.wordpress.config",
    "fuzzRun",
    "inputs.extra_plugins.composer",
    "inputs.inheritance.connectors.providerPluginPaths",
    "inputs.services.configuration.externalService",
    "inputs.services.configuration.hostEnv",
    "inputs.services.configuration.image",
    "inputs.services.configuration.passwordEnv",
    "inputs.services.configuration.portEnv",
    "inputs.services.configuration.usernameEnv",
    "inputs.workspace_preloads",
    "runtime.backendPackage",
    "runtime.overlays.bundle.localRoutes",
    "runtime.overlays.bundle.patches",
    "runtime.overlays.library",
    "runtime.overlays.strategy",
    "runtime.extensions",
    // This field is refused in every list of steps.
    "*.diagnostics",
];

/// Fields without effect on the run request: names, and fields that only the validation or the
/// caller uses.
const DESCRIPTIVE: &[&str] = &[
    "schema",
    "metadata",
    "artifacts.directory",
    "artifacts.verify",
    "distribution.name",
    "distribution.serviceFakes.metadata",
    "distribution.wordpress",
    "distribution.setupArtifacts.type",
    "inputs.component_manifest.components.contractIndex",
    "inputs.component_manifest.components.mountedPath",
    "inputs.component_manifest.components.provenance",
    "inputs.component_manifest.components.requestedPath",
    "inputs.component_manifest.schema",
    // Providers have the same members as components.
    "inputs.component_manifest.providers",
    "inputs.dependency_overlays.kind",
    "inputs.dependency_overlays.metadata",
    "inputs.sourcePackages.allow",
    "inputs.sourcePackages.metadata",
    "inputs.externalServices",
    "inputs.fixtureDatabases.format",
    "inputs.fixtureDatabases.metadata",
    // The domains are compared with the address that every guest has.
    "inputs.siteSeeds.bootstrap.domains",
    // Only a connector's names of secrets have an effect here. Its provider and model change an
    // agent step, which `everything()` does not contain.
    "inputs.inherit",
    "inputs.inheritance.connectors.name",
    "inputs.inheritance.connectors.status",
    "inputs.inheritance.connectors.provider",
    "inputs.inheritance.connectors.model",
    "inputs.inheritance.connectors.credentials",
    "inputs.inheritance.settings",
    "inputs.extra_plugins.metadata",
    "inputs.extra_plugins.originalSource",
    "inputs.extra_plugins.sourcePath",
    "inputs.extra_plugins.sourceRoot",
    "inputs.extra_plugins.sourceSubpath",
    "inputs.mounts.type",
    "inputs.pluginRuntime.label",
    "inputs.siteSeeds.bootstrap.multisite.install",
    "inputs.siteSeeds.bootstrap.multisite.sites.domain",
    "runtime.assets",
    // A notice of the run says which effect `hostNodeHeap` and `preview` have.
    "runtime.hostNodeHeap.maximumMiB",
    "runtime.hostNodeHeap.minimumMiB",
    "runtime.preview.bind",
    "runtime.preview.lease",
    "runtime.preview.port",
    "runtime.preview.publicUrl",
    "runtime.preview.siteUrl",
    "runtime.overlays.bundle.capabilities",
    "runtime.overlays.bundle.description",
    "runtime.overlays.bundle.files.metadata",
    "runtime.overlays.bundle.files.sha256",
    "runtime.overlays.bundle.configPreludes.metadata",
    "runtime.overlays.bundle.configPreludes.target",
    "runtime.overlays.bundle.id",
    "runtime.overlays.bundle.metadata",
    "runtime.overlays.bundle.schema",
    "runtime.overlays.bundle.unsupportedGaps",
    "runtime.overlays.kind",
    "runtime.overlays.metadata",
    "runtime.overlays.source",
    "runtime.overlays.target",
    "runtime.stack.mounts.type",
    "runtime.backend",
    "runtime.bundledExtensions",
    "runtime.name",
    "runtime.phpVersion",
    "runtime.wordpressInstallMode",
    "runtime.workers",
    "runtime.wp",
    // A mount's type is only validated. `expectStatus` changes the arguments of an HTTP or browser probe, but
    // `everything()` does not contain it.
    "distribution.sourceMounts.type",
    "distribution.startupProbes.expectStatus",
];

fn step(more: &Value) -> Value {
    let mut step = json!({
        "command": "wordpress.wp-cli",
        "args": ["command=option get home"],
        "timeoutMs": 1000,
        "metadata": {"a": 1},
        "allowFailure": true,
        "advisory": true,
    });
    for (name, value) in more.as_object().unwrap() {
        step[name] = value.clone();
    }
    step
}

fn everything() -> Value {
    let steps = json!([step(&json!({}))]);
    let looped = json!({
        "command": "command-agent-run",
        "args": ["command=php", "args-json=[\"a\"]"],
        "continuation": {
            "maxIterations": 3,
            "while": {"pointer": "/more", "equals": true},
            "inputMappings": [{"from": "/next", "to": {"arg": "args-json", "pointer": "/0"}}],
        },
    });
    json!({
        "schema": "wp-codebox/workspace-recipe/v1",
        "runtime": {
            "blueprint": {"steps": [{"step": "login"}]},
            "preview": {"port": 8080},
            "hostNodeHeap": {"minimumMiB": 256, "maximumMiB": 512},
            "stack": {"mounts": [
                {"type": "directory", "source": "./other", "target": "/opt/stack", "mode": "readonly", "git": "none", "phase": "pre-install", "metadata": {"a": 1}},
                {"source": "./other", "target": "/opt/other", "captureArtifacts": false},
            ]},
            "overlays": [{"kind": "runtime-overlay-bundle", "bundle": {
                "schema": "wp-codebox/runtime-overlay-bundle/v1",
                "id": "o",
                "files": [
                    {"path": "/wordpress/wp-content/o.txt", "contents": "o", "mode": "readwrite"},
                    {"path": "/opt/o.zip", "source": "./good.zip", "sha256": common::ZIP_SHA256},
                ],
                "configPreludes": [
                    {"target": "wp-config.php", "contents": "<?php", "order": 2},
                    {"target": "wp-config.php", "source": "./code.php", "order": 1},
                ],
            }}],
        },
        "distribution": {
            "name": "Shop",
            "sourceMounts": [{"type": "directory", "source": "./dir", "target": "/workspace/source", "mode": "readwrite", "metadata": {"a": 1}, "role": "r", "ref": "main"}],
            "wordpress": {"root": "/wordpress"},
            "env": {"REGION": "eu"},
            "constants": {"SHOP": true},
            "serviceFakes": [
                {"name": "mail", "source": "./code.php", "metadata": {"a": 1}},
                {"name": "pay", "source": "./code.php", "load": "pre-bootstrap", "sideEffectsArtifact": "/tmp/pay.json"},
            ],
            "setupArtifacts": [{"name": "dump", "type": "sql", "source": "./file.txt", "metadata": {"a": 1}}],
            "startupProbes": [
                {"name": "p", "type": "php", "code": "echo 1;", "metadata": {"a": 1}},
                {"name": "c", "type": "wp-cli", "command": "option get home"},
                {"name": "h", "type": "http", "url": "http://localhost/"},
            ],
            "artifacts": [{"path": "wp-content/a.txt", "kind": "log", "metadata": {"a": 1}}],
            "safety": {"network": "declared", "allowedHosts": ["api.example.org"], "secretEnv": ["API_KEY"]},
        },
        "inputs": {
            "mounts": [{"source": "./dir/sub", "target": "/workspace/a", "mode": "readwrite", "captureArtifacts": false, "git": "history", "metadata": {"a": 1}}, {"source": "./other", "target": "/workspace/b", "mode": "readonly", "phase": "pre-install"}],
            "workspaces": [
                {"target": "/workspace/site", "mode": "readonly", "sourceMode": "site-backed", "git": "none", "seed": {"type": "directory", "source": "./other", "excludePaths": ["build/**"]}},
                {"seed": {"type": "plugin_scaffold", "slug": "made", "name": "Made"}},
            ],
            "extra_plugins": [
                {"source": "./dir", "slug": "shop", "mountSlug": "store", "pluginFile": "other.php", "activate": false},
                {"source": "./good.zip", "slug": "packed", "sourceSubdir": "shop", "sha256": common::ZIP_SHA256, "loadAs": "mu-plugin"},
                {"source": "./other", "slug": "active"},
                {"source": "./needs", "slug": "bank"},
            ],
            "component_manifest": {"schema": "wp-codebox/component-manifest/v1", "components": [
                {"slug": "part", "source": "./other", "entrypoint": "main.php", "loadAs": "plugin", "activate": true},
                {"slug": "half", "source": "./other", "pluginFile": "main.php"},
            ]},
            "dependency_overlays": [{"kind": "composer-package", "package": "a/b", "source": "./dir/sub", "consumer": "bank", "reference": "a".repeat(40)}],
            "sourcePackages": [{"name": "lib", "source": "./other", "target": "/opt/lib", "deny": ["private"], "artifact": {"name": "own", "path": "/opt/lib/a.txt", "required": true}}],
            "runtimeEnv": {"MODE": "test"},
            "secretEnv": ["API_KEY"],
            "fixtureUsers": [{
                "name": "ann", "userId": 7, "username": "annie", "email": "ann@example.org", "role": "editor",
                "displayName": "Ann", "password": "correct horse", "metadata": {"a": 1},
            }],
            "userSessions": [{
                "name": "ann-session", "user": "ann", "metadata": {"a": 1},
                "artifacts": [{"kind": "storage-state", "path": "ann.json", "redactionRequired": true, "metadata": {"a": 1}}],
            }],
            "browserActors": [{"name": "writer", "userSession": "ann-session", "metadata": {"a": 1}}],
            "fixtureDatabases": [{
                "name": "shop", "version": "1", "source": "./file.txt", "format": "sql",
                "reset": {"strategy": "truncate-tables", "tables": ["wp_posts"]}, "metadata": {"a": 1},
            }],
            "agent_bundles": [
                {"source": "./file.txt", "slug": "a", "on_conflict": "skip", "owner_id": 2, "token_env": "API_KEY"},
                {"bundle": {"agent": 1}},
            ],
            "inherit": {"connectors": ["openai"]},
            "inheritance": {
                "connectors": [{"name": "openai", "status": "available", "provider": "openai", "model": "m", "secretEnv": ["OTHER_KEY"]}],
                "settings": [{"name": "a", "status": "missing", "scope": "site"}],
            },
            "pluginRuntime": {
                "php": {"memoryLimit": "256M", "maxExecutionTime": 30, "iniEntries": {"precision": 9}, "bootstrapIniEntries": {"precision": 5, "error_log": "/tmp/a"}},
                "wpConfigDefines": {"WP_DEBUG": true},
                "setup": steps,
                "healthProbes": [
                    {"name": "a", "type": "plugin-active", "pluginFile": "shop/shop.php"},
                    {"name": "b", "type": "php", "code": "echo 1;"},
                    {"name": "c", "type": "wp-cli", "command": "option get home"},
                ],
            },
            "siteSeeds": [{
                "format": "site-seed-fixture",
                "deterministicIds": {"strategy": "numeric", "onUnsupported": "warn"},
                "bootstrap": {"domains": [{"domain": "localhost", "path": "/shop/", "primary": true}], "multisite": {"enabled": true, "install": "subdirectory", "sites": [
                    {"domain": "localhost", "path": "/shop/", "title": "Shop"},
                ]}},
                "type": "fixture", "name": "small", "source": "./seed.json",
                "scopes": {
                    "posts": {"ids": [1], "slugs": ["a"], "postTypes": ["page"], "statuses": ["publish"], "maxRecords": 3},
                    "terms": {"ids": [1], "slugs": ["a"], "names": ["A"], "taxonomies": ["category"], "maxRecords": 3},
                    "options": {"names": ["blogname"], "maxRecords": 3},
                    "users": {"ids": [1], "names": ["a"], "roles": ["author"], "anonymize": true, "maxRecords": 3},
                    "media": {"ids": [1], "slugs": ["a"], "statuses": ["inherit"], "includeFiles": false, "maxRecords": 3},
                    "activePlugins": true,
                    "activeTheme": true,
                },
            }],
            "services": [
                {"id": "db", "kind": "mysql", "outputs": {"host": "DB_A"}, "configuration": {
                    "provider": "native", "engine": "mariadb", "storage": "tmpfs",
                    "rootAuthentication": "empty-password", "foreignKeyTargetPolicy": "indexed",
                }},
                {"id": "api", "kind": "http", "outputs": {"url": "API_A"}, "configuration": {
                    "responseStatus": 503, "responseBody": "busy",
                }},
            ],
            "stagedFiles": [{"source": "./file.txt", "target": "/workspace/inputs/file.txt"}],
        },
        "workflow": {"before": steps, "steps": [step(&json!({})), looped], "after": steps},
        "artifacts": {
            "workspacePolicy": {"enabled": true, "strict": true, "writableRoots": ["a"], "hiddenPaths": ["b"]},
            "paths": [{"name": "a", "path": "/workspace/a/a.json", "required": false, "parseJson": true, "metadata": {"a": 1}}],
            "typed": [{"name": "b", "type": "report", "path": "/workspace/a/b.json", "required": false, "contentType": "x", "parseJson": true, "payloadSchema": "x/v1", "metadata": {"a": 1}}],
        },
        "probes": [{"name": "p", "step": step(&json!({})), "expectJson": true, "allowFailure": true, "metadata": {"b": 1}}],
    })
}

fn lowered(document: &Value) -> Option<Lowered> {
    let recipe = parse(document.to_string().as_bytes()).ok()?;
    let host = FakeHost::default();
    let context = Context {
        sources: &host,
        policy: PolicyChoice::Derived,
    };
    if !validate(&recipe, context).is_empty() {
        return None;
    }
    Some(lower(&recipe, context).unwrap())
}

/// Returns the field that a JSON pointer names, without list indices, as in `REFUSED` and
/// `DESCRIPTIVE`: `/inputs/mounts/0/type` gives `inputs.mounts.type`.
fn plain(pointer: &str) -> String {
    let parts: Vec<_> = pointer
        .split('/')
        .skip(1)
        .filter(|p| p.parse::<usize>().is_err())
        .collect();
    parts.join(".")
}

fn members(value: &Value, at: &str, all: &mut Vec<String>) {
    match value {
        Value::Object(rows) => {
            for (name, value) in rows {
                let at = format!("{at}/{name}");
                all.push(at.clone());
                // These members may contain arbitrary JSON, so the grammar has no fields in them.
                let is_free = ["metadata", "equals", "blueprint"].contains(&name.as_str())
                    || name == "bundle" && at.contains("/agent_bundles/");
                if !is_free {
                    members(value, &at, all);
                }
            }
        }
        Value::Array(rows) => {
            for (index, value) in rows.iter().enumerate() {
                members(value, &format!("{at}/{index}"), all);
            }
        }
        _ => {}
    }
}

fn without(document: &Value, pointer: &str) -> Value {
    let mut document = document.clone();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    if let Some(rows) = document.pointer_mut(parent).and_then(Value::as_object_mut) {
        rows.remove(name);
    }
    document
}

fn listed(list: &[&str], path: &str) -> bool {
    list.iter().any(|row| {
        let own = row
            .strip_prefix("*.")
            .is_some_and(|last| path.rsplit('.').next() == Some(last));
        own || path == *row || path.strip_prefix(row).is_some_and(|r| r.starts_with('.'))
    })
}

#[test]
fn removing_any_implemented_recipe_field_changes_or_invalidates_the_run_request() {
    let document = everything();
    let all = lowered(&document).unwrap_or_else(|| {
        let recipe = parse(document.to_string().as_bytes()).unwrap();
        let host = FakeHost::default();
        let context = Context {
            sources: &host,
            policy: PolicyChoice::Derived,
        };
        panic!(
            "the largest recipe is not valid: {:?}",
            validate(&recipe, context)
        )
    });
    let mut places = Vec::new();
    members(&document, "", &mut places);
    let mut forgotten = Vec::new();
    let mut done = BTreeSet::new();
    for place in &places {
        match lowered(&without(&document, place)) {
            // Without the field the recipe is invalid, so the field has an effect.
            None => {
                done.insert(plain(place));
            }
            Some(other) if other != all => {
                done.insert(plain(place));
            }
            Some(_) if listed(DESCRIPTIVE, &plain(place)) => {}
            Some(_) => forgotten.push(place),
        }
    }
    // In some list entries a field has its default value or is overridden, so removing it changes
    // nothing. It is enough that removing it from one entry changes the run request.
    forgotten.retain(|place| !done.contains(&plain(place)));
    // Removing one of these fields has no effect in this recipe, because another field has the same
    // effect: `advisory` also permits a failure, `payloadSchema` also implies JSON, and the object
    // `workspacePolicy` also enables the check. `truncate-tables` is the default strategy.
    forgotten.retain(|place| {
        !(place.ends_with("/allowFailure")
            || place.ends_with("/reset/strategy")
            || place.ends_with("/typed/0/parseJson")
            || place.ends_with("/workspacePolicy/enabled"))
    });
    assert!(forgotten.is_empty(), "nothing is done about {forgotten:#?}");
    assert!(done.len() > 80, "{}", done.len());
}

/// Collects the paths of the schema's properties. Does not descend into refused, descriptive or
/// free-form properties.
fn properties(schema: &Value, at: &str, all: &mut BTreeSet<String>) {
    for list in ["anyOf", "oneOf"] {
        for row in schema[list].as_array().into_iter().flatten() {
            properties(row, at, all);
        }
    }
    if schema["items"].is_object() {
        properties(&schema["items"], at, all);
    }
    for (name, sub) in schema["properties"].as_object().into_iter().flatten() {
        let at = if at.is_empty() {
            name.clone()
        } else {
            format!("{at}.{name}")
        };
        if listed(REFUSED, &at) || listed(DESCRIPTIVE, &at) {
            continue;
        }
        all.insert(at.clone());
        properties(sub, &at, all);
    }
}

#[test]
fn every_recipe_schema_field_is_in_the_full_test_recipe_or_refused() {
    let mut known = BTreeSet::new();
    let mut places = Vec::new();
    members(&everything(), "", &mut places);
    known.extend(places.iter().map(|place| plain(place)));
    let mut all = BTreeSet::new();
    properties(&recipe_schema(), "", &mut all);
    let mut missing: Vec<_> = all.difference(&known).collect();
    // `everything()` has a continuation in one list of steps; steps have the same fields in every
    // list.
    missing.retain(|path| {
        let rest = path.split_once(".continuation").map(|(_, rest)| rest);
        !rest.is_some_and(|rest| known.contains(&format!("workflow.steps.continuation{rest}")))
    });
    // `everything()` lacks the members of a site seed that the selected kind of content does not
    // support: a recipe with one of them is invalid.
    missing.retain(|path| {
        let Some(at) = path.strip_prefix("inputs.siteSeeds.scopes.") else {
            return true;
        };
        let (kind, field) = at.split_once('.').unwrap();
        let value = match field {
            "ids" => json!([1]),
            "includeFiles" | "anonymize" => json!(true),
            _ => json!(["a"]),
        };
        let mut document = everything();
        document["inputs"]["siteSeeds"][0]["scopes"][kind][field] = value;
        lowered(&document).is_some()
    });
    assert!(missing.is_empty(), "neither done nor refused: {missing:#?}");
}
