//! Recipes with one fault each: the test expects exactly the code and path of that fault.
//!
//! Each row is merged into a valid recipe. A second test checks that similar recipes without the
//! faults are valid, so that no row can be refused for another reason.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{FakeHost, issues, with};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use wp_codebox_recipe::PolicyChoice;

/// What is merged into the valid recipe, the expected issue code, and the expected path.
type Row = (Value, &'static str, &'static str);

fn step(step: &Value) -> Value {
    json!({"workflow": {"steps": [step]}})
}
fn php(extra: &Value) -> Value {
    let mut row = json!({"command": "wordpress.run-php", "args": ["code=echo 1;"]});
    for (key, value) in extra.as_object().unwrap() {
        row[key] = value.clone();
    }
    step(&row)
}
fn browser(command: &str, argument: &str) -> Value {
    step(&json!({"command": command, "args": ["url=/", argument]}))
}
fn inputs(inputs: &Value) -> Value {
    json!({ "inputs": inputs })
}
fn plugin(plugin: &Value) -> Value {
    json!({"inputs": {"extra_plugins": [plugin]}})
}
fn mount(mount: &Value) -> Value {
    json!({"inputs": {"mounts": [mount]}})
}
fn runtime(runtime: &Value) -> Value {
    json!({ "runtime": runtime })
}
fn overlay(bundle: &Value) -> Value {
    let mut row = json!({"schema": "wp-codebox/runtime-overlay-bundle/v1", "id": "a"});
    for (key, value) in bundle.as_object().unwrap() {
        row[key] = value.clone();
    }
    runtime(&json!({"overlays": [{"kind": "runtime-overlay-bundle", "bundle": row}]}))
}
fn distribution(over: &Value) -> Value {
    let mut row = json!({"name": "Shop", "wordpress": {"root": "/wordpress"}});
    for (key, value) in over.as_object().unwrap() {
        row[key] = value.clone();
    }
    json!({ "distribution": row })
}
fn seed(over: &Value) -> Value {
    let mut row = json!({"type": "fixture", "name": "s", "source": "./seed.json", "scopes": {"posts": {"ids": [1]}}});
    for (key, value) in over.as_object().unwrap() {
        row[key] = value.clone();
    }
    json!({"inputs": {"siteSeeds": [row]}})
}
fn scopes(scopes: &Value) -> Value {
    seed(&json!({ "scopes": scopes }))
}
fn service(over: &Value) -> Value {
    let mut row = json!({"id": "mail", "environment": "fixture", "writes": "forbidden"});
    for (key, value) in over.as_object().unwrap() {
        row[key] = value.clone();
    }
    json!({"inputs": {"externalServices": [row]}})
}
fn continued(over: &Value, args: &Value) -> Value {
    let mut row = json!({
        "maxIterations": 3,
        "while": {"pointer": "/more", "equals": true},
        "inputMappings": [{"from": "/next", "to": {"arg": "args-json", "pointer": "/0"}}],
    });
    for (key, value) in over.as_object().unwrap() {
        row[key] = value.clone();
    }
    step(&json!({"command": "command-agent-run", "args": args, "continuation": row}))
}
fn mapping(mapping: &Value) -> Value {
    continued(
        &json!({ "inputMappings": [mapping] }),
        &json!(["command=true", "args-json=[\"0\"]"]),
    )
}

fn shape() -> Vec<Row> {
    let many: Vec<_> = (0..101).map(|i| json!(i + 1)).collect();
    vec![
        (
            json!({"schema": "wp-codebox/workspace-recipe/v2"}),
            "invalid-recipe",
            "$.schema",
        ),
        (json!({"extra": 1}), "invalid-recipe", "$.extra"),
        (
            json!({"workflow": {"steps": []}}),
            "invalid-recipe",
            "$.workflow.steps",
        ),
        (
            json!({"workflow": {"steps": {}}}),
            "invalid-recipe",
            "$.workflow.steps",
        ),
        (
            json!({"workflow": {"during": []}}),
            "invalid-recipe",
            "$.workflow.during",
        ),
        (json!({"workflow": []}), "invalid-recipe", "$.workflow"),
        (
            step(&json!({"args": []})),
            "missing-command",
            "$.workflow.steps[0].command",
        ),
        (
            step(&json!({"command": ""})),
            "invalid-recipe",
            "$.workflow.steps[0].command",
        ),
        (
            php(&json!({"args": "code=1"})),
            "invalid-recipe",
            "$.workflow.steps[0].args",
        ),
        (
            php(&json!({"args": ["code=1", 2]})),
            "invalid-recipe",
            "$.workflow.steps[0].args[1]",
        ),
        (
            php(&json!({"timeoutMs": 0})),
            "invalid-timeout-ms",
            "$.workflow.steps[0].timeoutMs",
        ),
        (
            php(&json!({"timeoutMs": 1.5})),
            "invalid-timeout-ms",
            "$.workflow.steps[0].timeoutMs",
        ),
        (
            php(&json!({"timeoutMs": "1s"})),
            "invalid-timeout-ms",
            "$.workflow.steps[0].timeoutMs",
        ),
        (
            php(&json!({"allowFailure": "yes"})),
            "invalid-recipe",
            "$.workflow.steps[0].allowFailure",
        ),
        (
            php(&json!({"retries": 3})),
            "invalid-recipe",
            "$.workflow.steps[0].retries",
        ),
        (
            php(&json!({"args": ["code=\u{0}"]})),
            "invalid-recipe",
            "$.workflow.steps[0].args[0]",
        ),
        (
            inputs(&json!({"extraPlugins": []})),
            "invalid-recipe",
            "$.inputs.extraPlugins",
        ),
        (
            mount(&json!({"target": "/workspace/a"})),
            "missing-source",
            "$.inputs.mounts[0].source",
        ),
        (
            mount(&json!({"source": "./dir", "target": "a"})),
            "invalid-sandbox-path",
            "$.inputs.mounts[0].target",
        ),
        (
            mount(&json!({"source": "./dir", "target": "/workspace/a", "mode": "rw"})),
            "invalid-recipe",
            "$.inputs.mounts[0].mode",
        ),
        (
            mount(&json!({"source": "./dir", "target": "/workspace/a", "modes": 1})),
            "invalid-recipe",
            "$.inputs.mounts[0].modes",
        ),
        (
            plugin(&json!({"slug": "a"})),
            "missing-source",
            "$.inputs.extra_plugins[0]",
        ),
        (
            plugin(&json!({"source": "./dir", "slug": "../a"})),
            "invalid-slug",
            "$.inputs.extra_plugins[0].slug",
        ),
        (
            plugin(&json!({"source": "./good.zip", "sha256": "ab"})),
            "invalid-source-sha256",
            "$.inputs.extra_plugins[0].sha256",
        ),
        (
            inputs(&json!({"secretEnv": ["api-key"]})),
            "invalid-secret-env",
            "$.inputs.secretEnv[0]",
        ),
        (
            inputs(&json!({"runtimeEnv": {"A": 1}})),
            "invalid-runtime-env-value",
            "$.inputs.runtimeEnv.A",
        ),
        (
            mount(&json!({"source": "./dir", "target": "/workspace/a", "git": "clone"})),
            "invalid-recipe",
            "$.inputs.mounts[0].git",
        ),
        (
            inputs(
                &json!({"workspaces": [{"git": true, "seed": {"type": "plugin_scaffold", "slug": "a"}}]}),
            ),
            "invalid-recipe",
            "$.inputs.workspaces[0].git",
        ),
        (
            inputs(&json!({"workspaces": [{}]})),
            "invalid-recipe",
            "$.inputs.workspaces[0].seed",
        ),
        (
            inputs(&json!({"workspaces": [{"seed": {"type": "zip"}}]})),
            "invalid-recipe",
            "$.inputs.workspaces[0].seed.type",
        ),
        (
            inputs(&json!({"stagedFiles": [{"source": "./file.txt"}]})),
            "invalid-recipe",
            "$.inputs.stagedFiles[0].target",
        ),
        (
            scopes(&json!({"posts": {"ids": many}})),
            "invalid-site-seed-bound",
            "$.inputs.siteSeeds[0].scopes.posts.ids",
        ),
        (
            scopes(&json!({"posts": {"maxRecords": 101}})),
            "invalid-site-seed-bound",
            "$.inputs.siteSeeds[0].scopes.posts.maxRecords",
        ),
        (
            scopes(&json!({"comments": {}})),
            "invalid-recipe",
            "$.inputs.siteSeeds[0].scopes.comments",
        ),
        (
            runtime(&json!({"phpVersion": "8"})),
            "invalid-recipe",
            "$.runtime.phpVersion",
        ),
        (
            runtime(&json!({"workers": 65})),
            "invalid-recipe",
            "$.runtime.workers",
        ),
        (
            runtime(
                &json!({"overlays": [{"kind": "bundled-library", "library": "php-ai-client", "strategy": "wordpress-scoped-bundle"}]}),
            ),
            "missing-source",
            "$.runtime.overlays[0].source",
        ),
        (
            json!({"artifacts": {"paths": [{"name": "a"}]}}),
            "missing-path",
            "$.artifacts.paths[0].path",
        ),
        (
            json!({"artifacts": {"verify": "strict"}}),
            "invalid-recipe",
            "$.artifacts.verify",
        ),
        (
            json!({"artifacts": {"verify": {"strictly": true}}}),
            "invalid-recipe",
            "$.artifacts.verify.strictly",
        ),
        (
            json!({"distribution": {"name": "Shop"}}),
            "missing-distribution-wordpress",
            "$.distribution.wordpress",
        ),
        (
            continued(
                &json!({"maxIterations": 1}),
                &json!(["command=true", "args-json=[]"]),
            ),
            "invalid-continuation",
            "$.workflow.steps[0].continuation.maxIterations",
        ),
        (
            mapping(&json!({"from": "/a/__proto__", "to": {"arg": "args-json", "pointer": "/0"}})),
            "invalid-continuation",
            "$.workflow.steps[0].continuation.inputMappings[0].from",
        ),
        (
            mapping(&json!({"from": "next", "to": {"arg": "args-json", "pointer": "/0"}})),
            "invalid-continuation",
            "$.workflow.steps[0].continuation.inputMappings[0].from",
        ),
    ]
}

fn meaning() -> Vec<Row> {
    vec![
        (
            step(&json!({"command": "wordpress.nope"})),
            "unsupported-command",
            "$.workflow.steps[0].command",
        ),
        (
            step(&json!({"command": "host/smtp.other", "args": ["service=mail"]})),
            "unsupported-command",
            "$.workflow.steps[0].command",
        ),
        (
            step(&json!({"command": "host/smtp.inspect", "args": ["service=a"]})),
            "invalid-reference",
            "$.workflow.steps[0].args[0]",
        ),
        (
            step(&json!({"command": "host/smtp.reset", "args": []})),
            "missing-smtp-service",
            "$.workflow.steps[0].args",
        ),
        (
            step(&json!({"command": "host/smtp.reset", "args": ["service=mail", "limit=1"]})),
            "unknown-smtp-operation-arg",
            "$.workflow.steps[0].args[1]",
        ),
        (
            step(
                &json!({"command": "host/smtp.inspect", "args": ["service=mail", "service=mail"]}),
            ),
            "duplicate-smtp-operation-arg",
            "$.workflow.steps[0].args[1]",
        ),
        (
            step(&json!({"command": "host/smtp.inspect", "args": ["service=mail", "limit=101"]})),
            "invalid-smtp-limit",
            "$.workflow.steps[0].args[1]",
        ),
        (
            step(
                &json!({"command": "host/smtp.inspect", "args": ["service=mail", "recipient=a@x", "recipient-label=a b"]}),
            ),
            "unsafe-smtp-recipient-label",
            "$.workflow.steps[0].args[2]",
        ),
        (
            php(&json!({"args": []})),
            "missing-code",
            "$.workflow.steps[0].args",
        ),
        (
            php(&json!({"args": ["code= "]})),
            "missing-code",
            "$.workflow.steps[0].args",
        ),
        (
            php(&json!({"args": ["code=1", "code-file=./code.php"]})),
            "ambiguous-code",
            "$.workflow.steps[0].args",
        ),
        (
            php(&json!({"args": ["code=1", "cod=2"]})),
            "invalid-step",
            "$.workflow.steps[0].args[1]",
        ),
        (
            php(&json!({"args": ["code=1", "loose"]})),
            "invalid-step",
            "$.workflow.steps[0].args[1]",
        ),
        (
            php(&json!({"args": ["code=1", "code=2"]})),
            "invalid-step",
            "$.workflow.steps[0].args",
        ),
        (
            browser(
                "wordpress.browser-actions",
                r#"steps-json=[{"kind":"evaluate","script":"1","asert":2}]"#,
            ),
            "invalid-steps-json",
            "$.workflow.steps[0].args[1]",
        ),
        (
            browser(
                "wordpress.browser-actions",
                r#"steps-json=[{"kind":"callTool"}]"#,
            ),
            "invalid-steps-json",
            "$.workflow.steps[0].args[1]",
        ),
        (
            browser(
                "wordpress.browser-scenario",
                r##"scenario-json={"steps":[{"kind":"hover","selector":"#a"}],"retries":2}"##,
            ),
            "invalid-scenario-json",
            "$.workflow.steps[0].args[1]",
        ),
        (
            php(&json!({"args": ["code-file=/workspaces/a.php"]})),
            "missing-source",
            "$.workflow.steps[0].args[0]",
        ),
        (
            php(&json!({"args": ["code-file=./none.php"]})),
            "missing-source",
            "$.workflow.steps[0].args[0]",
        ),
        (
            php(&json!({"args": ["code-file=./dir"]})),
            "not-file",
            "$.workflow.steps[0].args[0]",
        ),
        (
            php(&json!({"args": ["code-file=/etc/shadow"]})),
            "invalid-source",
            "$.workflow.steps[0].args[0]",
        ),
        (
            php(&json!({"timeoutMs": 90_000_000})),
            "invalid-timeout-ms",
            "$.workflow.steps[0].timeoutMs",
        ),
        (
            php(&json!({"diagnostics": {"capture": ["wpdb-queries"]}})),
            "unsupported-diagnostics",
            "$.workflow.steps[0].diagnostics.capture",
        ),
        (
            step(&json!({"command": "wordpress.wp-cli"})),
            "missing-command",
            "$.workflow.steps[0].args",
        ),
        (
            step(&json!({"command": "command-agent-run", "args": ["command=a", "args-json=["]})),
            "invalid-step",
            "$.workflow.steps[0].args[1]",
        ),
        (
            json!({"workflow": {"before": [{"command": "x"}]}}),
            "unsupported-command",
            "$.workflow.before[0].command",
        ),
        (
            mapping(&json!({"from": "/next", "to": {"arg": "input", "pointer": "/0"}})),
            "invalid-continuation",
            "$.workflow.steps[0].continuation.inputMappings[0].to.arg",
        ),
        (
            mapping(&json!({"from": "/next", "to": {"arg": "args-json", "pointer": ""}})),
            "invalid-continuation",
            "$.workflow.steps[0].continuation.inputMappings[0].to.pointer",
        ),
        (
            mount(&json!({"source": "", "target": "/workspace/a"})),
            "missing-source",
            "$.inputs.mounts[0].source",
        ),
        (
            mount(&json!({"source": "./none", "target": "/workspace/a"})),
            "missing-source",
            "$.inputs.mounts[0].source",
        ),
        (
            mount(&json!({"source": "./pipe", "target": "/workspace/a"})),
            "invalid-source",
            "$.inputs.mounts[0].source",
        ),
        (
            mount(&json!({"source": "./site-root", "target": "/workspace/a"})),
            "invalid-source",
            "$.inputs.mounts[0].source",
        ),
        (
            mount(&json!({"source": "./file.txt", "target": "/workspace/a", "type": "directory"})),
            "not-directory",
            "$.inputs.mounts[0].source",
        ),
        (
            mount(&json!({"source": "./dir", "target": "/workspace/a", "type": "file"})),
            "not-file",
            "$.inputs.mounts[0].source",
        ),
        (
            mount(&json!({"source": "./file.txt", "target": "/workspace/a", "mode": "readwrite"})),
            "unsupported-mount",
            "$.inputs.mounts[0].mode",
        ),
        (
            mount(
                &json!({"source": "./file.txt", "target": "/workspace/a", "mode": "readonly", "git": "baseline"}),
            ),
            "unsupported-mount",
            "$.inputs.mounts[0].git",
        ),
        (
            inputs(
                &json!({"workspaces": [{"git": "history", "seed": {"type": "plugin_scaffold", "slug": "a"}}]}),
            ),
            "unsupported-mount",
            "$.inputs.workspaces[0].git",
        ),
        (
            inputs(
                &json!({"workspaces": [{"git": "history", "seed": {"type": "directory", "slug": "a", "source": "./dir", "excludePaths": ["build"]}}]}),
            ),
            "unsupported-mount",
            "$.inputs.workspaces[0].git",
        ),
        (
            mount(&json!({"source": "./dir", "target": "/workspace/../etc"})),
            "invalid-sandbox-path",
            "$.inputs.mounts[0].target",
        ),
        (
            mount(&json!({"source": "./dir", "target": "/wordpress/wp-includes/x"})),
            "invalid-sandbox-path",
            "$.inputs.mounts[0].target",
        ),
        (
            mount(&json!({"source": "./dir", "target": "/etc"})),
            "invalid-sandbox-path",
            "$.inputs.mounts[0].target",
        ),
        (
            inputs(
                &json!({"mounts": [{"source": "./dir", "target": "/workspace/a"}, {"source": "./other", "target": "/workspace/a/b"}]}),
            ),
            "overlapping-target",
            "$.inputs.mounts[1].target",
        ),
        (
            inputs(
                &json!({"mounts": [{"source": "./other", "target": "/wordpress/wp-content/plugins/a/sub"}], "extra_plugins": [{"source": "./dir", "slug": "a"}]}),
            ),
            "overlapping-target",
            "$.inputs.extra_plugins[0]",
        ),
        (
            inputs(
                &json!({"mounts": [{"source": "./other", "target": "/wordpress/wp-content/plugins/a/none", "mode": "readonly"}], "extra_plugins": [{"source": "./dir", "slug": "a"}]}),
            ),
            "overlapping-target",
            "$.inputs.extra_plugins[0]",
        ),
        (
            inputs(
                &json!({"mounts": [{"source": "./dir", "target": "/workspace/a"}], "stagedFiles": [{"source": "./file.txt", "target": "/workspace/a/f"}]}),
            ),
            "overlapping-target",
            "$.inputs.stagedFiles[0].target",
        ),
        (
            inputs(&json!({"workspaces": [{"seed": {"type": "plugin_scaffold"}}]})),
            "invalid-slug",
            "$.inputs.workspaces[0].seed.slug",
        ),
        (
            inputs(&json!({"workspaces": [{"seed": {"type": "directory", "slug": "a"}}]})),
            "missing-source",
            "$.inputs.workspaces[0].seed.source",
        ),
        (
            inputs(
                &json!({"workspaces": [{"seed": {"type": "theme_scaffold", "slug": "a", "source": "./dir"}}]}),
            ),
            "invalid-source",
            "$.inputs.workspaces[0].seed.source",
        ),
        (
            inputs(
                &json!({"workspaces": [{"seed": {"type": "directory", "source": "./dir", "excludePaths": ["../x"]}}]}),
            ),
            "invalid-source",
            "$.inputs.workspaces[0].seed.excludePaths[0]",
        ),
        (
            plugin(&json!({"source": "https://downloads.wordpress.org/plugin/a.zip", "slug": "a"})),
            "network-downloads-disabled",
            "$.inputs.extra_plugins[0].source",
        ),
        (
            plugin(&json!({"source": "akismet"})),
            "network-downloads-disabled",
            "$.inputs.extra_plugins[0].source",
        ),
        (
            plugin(&json!({"source": "./none", "slug": "a"})),
            "missing-source",
            "$.inputs.extra_plugins[0].source",
        ),
        (
            plugin(&json!({"source": "./file.txt", "slug": "a"})),
            "not-directory",
            "$.inputs.extra_plugins[0].source",
        ),
        (
            plugin(&json!({"source": "./slip.zip"})),
            "invalid-source",
            "$.inputs.extra_plugins[0].source",
        ),
        (
            plugin(&json!({"source": "./bomb.zip"})),
            "invalid-source",
            "$.inputs.extra_plugins[0].source",
        ),
        (
            plugin(&json!({"source": "./link.zip"})),
            "invalid-source",
            "$.inputs.extra_plugins[0].source",
        ),
        (
            plugin(&json!({"source": "./torn.zip"})),
            "invalid-source",
            "$.inputs.extra_plugins[0].source",
        ),
        (
            plugin(&json!({"source": "./good.zip", "sha256": "b".repeat(64)})),
            "invalid-source-sha256",
            "$.inputs.extra_plugins[0].sha256",
        ),
        (
            plugin(&json!({"source": "./dir", "sha256": "b".repeat(64)})),
            "invalid-source-sha256",
            "$.inputs.extra_plugins[0].sha256",
        ),
        (
            plugin(&json!({"source": "./dir", "slug": "a", "sourceSubdir": "../x"})),
            "invalid-source-subdir",
            "$.inputs.extra_plugins[0].sourceSubdir",
        ),
        (
            plugin(&json!({"source": "./dir", "slug": "a", "sourceSubdir": "none"})),
            "not-directory",
            "$.inputs.extra_plugins[0].sourceSubdir",
        ),
        (
            plugin(&json!({"source": "./dir", "pluginFile": "other/main.php"})),
            "invalid-plugin-file",
            "$.inputs.extra_plugins[0].pluginFile",
        ),
        (
            plugin(&json!({"source": "./dir", "pluginFile": "dir/../x.php"})),
            "invalid-plugin-file",
            "$.inputs.extra_plugins[0].pluginFile",
        ),
        (
            plugin(&json!({"source": "./needs", "composer": "install"})),
            "unsupported-composer-install",
            "$.inputs.extra_plugins[0].composer",
        ),
        (
            inputs(&json!({"pluginRuntime": {"setup": [{"command": "inspect-mounted-inputs"}]}})),
            "unsupported-plugin-runtime-setup-command",
            "$.inputs.pluginRuntime.setup[0].command",
        ),
        (
            inputs(&json!({"pluginRuntime": {"healthProbes": [{"name": "a", "type": "php"}]}})),
            "missing-plugin-runtime-health-probe-code",
            "$.inputs.pluginRuntime.healthProbes[0].code",
        ),
        (
            inputs(&json!({"pluginRuntime": {"healthProbes": [{"name": "a", "type": "wp-cli"}]}})),
            "missing-plugin-runtime-health-probe-command",
            "$.inputs.pluginRuntime.healthProbes[0].command",
        ),
        (
            inputs(
                &json!({"pluginRuntime": {"healthProbes": [{"name": "a", "type": "plugin-active", "pluginFile": "a b.php"}]}}),
            ),
            "invalid-plugin-file",
            "$.inputs.pluginRuntime.healthProbes[0].pluginFile",
        ),
        (
            inputs(&json!({"pluginRuntime": {"php": {"memoryLimit": "much"}}})),
            "invalid-plugin-runtime-memory-limit",
            "$.inputs.pluginRuntime.php.memoryLimit",
        ),
        (
            inputs(&json!({"pluginRuntime": {"php": {"iniEntries": {"extension": "x.so"}}}})),
            "invalid-plugin-runtime-ini",
            "$.inputs.pluginRuntime.php.iniEntries.extension",
        ),
        (
            inputs(
                &json!({"pluginRuntime": {"php": {"bootstrapIniEntries": {"precision": 1, "extension": "x"}}}}),
            ),
            "invalid-plugin-runtime-ini",
            "$.inputs.pluginRuntime.php.bootstrapIniEntries.extension",
        ),
        (
            inputs(&json!({"pluginRuntime": {"wpConfigDefines": {"DB_NAME": "x"}}})),
            "invalid-plugin-runtime-define",
            "$.inputs.pluginRuntime.wpConfigDefines.DB_NAME",
        ),
        (
            json!({"probes": [{"name": "a", "step": {"command": "nope"}}]}),
            "unsupported-command",
            "$.probes[0].step.command",
        ),
        (
            inputs(&json!({"secretEnv": ["NOT_THERE", "NOT_THERE"]})),
            "invalid-secret-env",
            "$.inputs.secretEnv[1]",
        ),
        (
            json!({"probes": [{"name": "a", "step": {"command": "command-agent-run", "args": ["command=x", "args-json=[1]"],
                "continuation": {"maxIterations": 2, "while": {"pointer": "/more", "equals": true}, "inputMappings": [{"from": "/a", "to": {"arg": "args-json", "pointer": "/0"}}]}}}]}),
            "invalid-continuation",
            "$.probes[0].step.continuation",
        ),
        (
            inputs(&json!({"secretEnv": ["NOT_THERE"], "runtimeEnv": {"NOT_THERE": "b"}})),
            "invalid-secret-env",
            "$.inputs.secretEnv[0]",
        ),
        (
            inputs(&json!({"secretEnv": ["LD_PRELOAD"]})),
            "invalid-secret-env",
            "$.inputs.secretEnv[0]",
        ),
        (
            inputs(&json!({"secretEnv": ["HTTPS_PROXY"]})),
            "invalid-secret-env",
            "$.inputs.secretEnv[0]",
        ),
        (
            inputs(&json!({"runtimeEnv": {"PATH": "/x"}})),
            "invalid-runtime-env",
            "$.inputs.runtimeEnv.PATH",
        ),
        (
            inputs(&json!({"runtimeEnv": {"a b": "x"}})),
            "invalid-runtime-env",
            "$.inputs.runtimeEnv[\"a b\"]",
        ),
        (
            service(&json!({"allowedHosts": ["*.example.org"]})),
            "invalid-external-service-host",
            "$.inputs.externalServices[0].allowedHosts[0]",
        ),
        (
            service(&json!({"allowedHosts": ["a.example.org"], "blockedHosts": ["a.example.org"]})),
            "invalid-external-service-host",
            "$.inputs.externalServices[0].blockedHosts[0]",
        ),
        (
            service(&json!({"secretEnv": ["OTHER"]})),
            "invalid-external-service-secret-env",
            "$.inputs.externalServices[0].secretEnv[0]",
        ),
        (
            service(&json!({"writes": "allowed-with-approval"})),
            "runtime-policy-external-service-approval-required",
            "$.inputs.externalServices[0].writes",
        ),
        (
            service(&json!({"environment": "production", "allowedHosts": ["a.example.org"]})),
            "runtime-policy-external-service-network-denied",
            "$.inputs.externalServices[0].allowedHosts",
        ),
        (
            inputs(&json!({"stagedFiles": [{"source": "./dir", "target": "/workspace/f"}]})),
            "not-file",
            "$.inputs.stagedFiles[0].source",
        ),
        (
            inputs(&json!({"stagedFiles": [{"source": "./file.txt", "target": "/etc/passwd"}]})),
            "invalid-sandbox-path",
            "$.inputs.stagedFiles[0].target",
        ),
        (
            inputs(&json!({"stagedFiles": [{"source": "/etc/shadow", "target": "/workspace/f"}]})),
            "invalid-source",
            "$.inputs.stagedFiles[0].source",
        ),
        (
            json!({"artifacts": {"paths": [{"name": "a", "path": "/workspace/../a"}]}}),
            "invalid-sandbox-path",
            "$.artifacts.paths[0].path",
        ),
        (
            json!({"artifacts": {"paths": [{"name": "a", "path": "/workspace/a"}, {"name": "a", "path": "/workspace/b"}]}}),
            "duplicate-name",
            "$.artifacts.paths[1].name",
        ),
        (
            json!({"artifacts": {"directory": " "}}),
            "missing-path",
            "$.artifacts.directory",
        ),
    ]
}

fn seeds_and_distributions() -> Vec<Row> {
    vec![
        (
            seed(&json!({"source": "./none.json"})),
            "missing-source",
            "$.inputs.siteSeeds[0].source",
        ),
        (
            seed(&json!({"source": "./dir"})),
            "not-file",
            "$.inputs.siteSeeds[0].source",
        ),
        (
            seed(&json!({"type": "parent_site"})),
            "invalid-site-seed-source",
            "$.inputs.siteSeeds[0].source",
        ),
        (
            seed(
                &json!({"deterministicIds": {"strategy": "platform-identifiers", "onUnsupported": "block"}}),
            ),
            "unsupported-deterministic-site-seed-ids",
            "$.inputs.siteSeeds[0].deterministicIds",
        ),
        (
            seed(&json!({"bootstrap": {"multisite": {"enabled": true, "install": "subdomain"}}})),
            "unsupported-site-seed-multisite-bootstrap",
            "$.inputs.siteSeeds[0].bootstrap.multisite.install",
        ),
        (
            seed(
                &json!({"bootstrap": {"multisite": {"enabled": true, "sites": [{"domain": "shop.example", "path": "/shop/"}]}}}),
            ),
            "unsupported-site-seed-multisite-bootstrap",
            "$.inputs.siteSeeds[0].bootstrap.multisite.sites[0].domain",
        ),
        (
            seed(
                &json!({"bootstrap": {"multisite": {"enabled": true, "sites": [{"domain": "localhost", "path": "/a/b"}]}}}),
            ),
            "invalid-site-seed-bootstrap-path",
            "$.inputs.siteSeeds[0].bootstrap.multisite.sites[0].path",
        ),
        (
            seed(
                &json!({"bootstrap": {"multisite": {"enabled": true, "sites": [{"domain": "localhost", "path": "/wp-admin/"}]}}}),
            ),
            "invalid-site-seed-bootstrap-path",
            "$.inputs.siteSeeds[0].bootstrap.multisite.sites[0].path",
        ),
        (
            seed(
                &json!({"bootstrap": {"multisite": {"enabled": true, "sites": [{"domain": "localhost", "path": "/a/"}, {"domain": "localhost", "path": "/a"}]}}}),
            ),
            "duplicate-name",
            "$.inputs.siteSeeds[0].bootstrap.multisite.sites[1]",
        ),
        (
            scopes(&json!({})),
            "missing-site-seed-scopes",
            "$.inputs.siteSeeds[0].scopes",
        ),
        (
            scopes(&json!({"posts": {}})),
            "unbounded-site-seed-scope",
            "$.inputs.siteSeeds[0].scopes.posts",
        ),
        (
            scopes(&json!({"posts": {"postTypes": ["page"]}})),
            "unbounded-site-seed-scope",
            "$.inputs.siteSeeds[0].scopes.posts",
        ),
        (
            scopes(&json!({"options": {}})),
            "unbounded-site-seed-options",
            "$.inputs.siteSeeds[0].scopes.options",
        ),
        (
            scopes(&json!({"options": {"names": ["%"]}})),
            "invalid-site-seed-bound",
            "$.inputs.siteSeeds[0].scopes.options.names[0]",
        ),
        (
            scopes(&json!({"users": {"maxRecords": 1}})),
            "unsafe-site-seed-users",
            "$.inputs.siteSeeds[0].scopes.users",
        ),
        (
            scopes(&json!({"media": {"ids": [1], "includeFiles": true}})),
            "unsafe-site-seed-media-files",
            "$.inputs.siteSeeds[0].scopes.media.includeFiles",
        ),
        (
            scopes(&json!({"terms": {"ids": [1], "roles": ["x"]}})),
            "invalid-site-seed-scope",
            "$.inputs.siteSeeds[0].scopes.terms.roles",
        ),
        (
            distribution(&json!({"name": " "})),
            "invalid-distribution-name",
            "$.distribution.name",
        ),
        (
            distribution(&json!({"wordpress": {"root": "/var/www"}})),
            "unsupported-path",
            "$.distribution.wordpress.root",
        ),
        (
            distribution(&json!({"wordpress": {"root": "/wordpress", "config": "c.php"}})),
            "unsupported-path",
            "$.distribution.wordpress.config",
        ),
        (
            distribution(&json!({"env": {"PHPRC": "x"}})),
            "invalid-distribution-env",
            "$.distribution.env.PHPRC",
        ),
        (
            distribution(&json!({"constants": {"ABSPATH": "/"}})),
            "invalid-distribution-constant",
            "$.distribution.constants.ABSPATH",
        ),
        (
            distribution(&json!({"constants": {"a-b": 1}})),
            "invalid-distribution-constant",
            "$.distribution.constants.a-b",
        ),
        (
            distribution(&json!({"serviceFakes": [{"name": "a b", "source": "./code.php"}]})),
            "invalid-service-fake-name",
            "$.distribution.serviceFakes[0].name",
        ),
        (
            distribution(&json!({"routeAliases": [{"target": "x"}]})),
            "unsupported-route-alias",
            "$.distribution.routeAliases[0]",
        ),
        (
            distribution(&json!({"startupProbes": [{"name": "a", "type": "php"}]})),
            "missing-startup-probe-code",
            "$.distribution.startupProbes[0].code",
        ),
        (
            distribution(&json!({"startupProbes": [{"name": "a", "type": "wp-cli"}]})),
            "missing-startup-probe-command",
            "$.distribution.startupProbes[0].command",
        ),
        (
            distribution(&json!({"startupProbes": [{"name": "a", "type": "http"}]})),
            "missing-startup-probe-url",
            "$.distribution.startupProbes[0].url",
        ),
        (
            distribution(&json!({"startupProbes": [{"name": "a b", "type": "php", "code": "1;"}]})),
            "invalid-startup-probe-name",
            "$.distribution.startupProbes[0].name",
        ),
        (
            distribution(&json!({"artifacts": [{"path": "../a"}]})),
            "invalid-distribution-artifact",
            "$.distribution.artifacts[0].path",
        ),
        (
            distribution(&json!({"safety": {"allowedHosts": ["a.example.org"]}})),
            "undeclared-distribution-network",
            "$.distribution.safety.allowedHosts",
        ),
        (
            distribution(&json!({"safety": {"network": "declared"}})),
            "undeclared-distribution-network",
            "$.distribution.safety.network",
        ),
        (
            distribution(&json!({"safety": {"network": "declared", "allowedHosts": ["a b"]}})),
            "invalid-distribution-network-host",
            "$.distribution.safety.allowedHosts[0]",
        ),
        (
            distribution(&json!({"safety": {"secretEnv": ["OTHER"]}})),
            "invalid-distribution-secret-env",
            "$.distribution.safety.secretEnv[0]",
        ),
        (
            distribution(
                &json!({"sourceMounts": [{"source": "./none", "target": "/workspace/x"}]}),
            ),
            "missing-source",
            "$.distribution.sourceMounts[0].source",
        ),
    ]
}

fn unsupported() -> Vec<Row> {
    vec![
        (
            runtime(&json!({"backendPackage": {"kind": "x", "source": "y"}})),
            "unsupported-backend-package",
            "$.runtime.backendPackage",
        ),
        (
            runtime(&json!({"wp": "6.8"})),
            "unsupported-wordpress-version",
            "$.runtime.wp",
        ),
        (
            runtime(&json!({"phpVersion": "8.4"})),
            "unsupported-php-version",
            "$.runtime.phpVersion",
        ),
        (
            runtime(
                &json!({"blueprint": {"steps": [{"step": "login"}, {"step": "defineSiteUrl"}]}}),
            ),
            "unsupported-blueprint",
            "$.runtime.blueprint.steps[1]",
        ),
        (
            json!({"artifacts": {"workspacePolicy": {"gitBacked": true}}}),
            "unsupported-workspace-policy",
            "$.artifacts.workspacePolicy.gitBacked",
        ),
        (
            json!({"artifacts": {"typed": [{"name": "a", "type": "b", "path": "/tmp/a", "payloadSchema": {"type": "object"}}]}}),
            "unsupported-payload-schema",
            "$.artifacts.typed[0].payloadSchema",
        ),
        (
            runtime(
                &json!({"assets": {"wordpressZip": "./good.zip", "wordpressDirectory": "./dir"}}),
            ),
            "unsupported-runtime-assets",
            "$.runtime.assets.wordpressZip",
        ),
        (
            runtime(&json!({"assets": {"wordpressDirectory": "./file.txt"}})),
            "not-directory",
            "$.runtime.assets.wordpressDirectory",
        ),
        (
            runtime(&json!({"extensions": [{"manifest": "x"}]})),
            "unsupported-php-extension",
            "$.runtime.extensions[0]",
        ),
        (
            runtime(&json!({"bundledExtensions": ["intl", "redis"]})),
            "unsupported-php-extension",
            "$.runtime.bundledExtensions[1]",
        ),
        (
            overlay(
                &json!({"files": [{"path": "/tmp/a", "contents": "x", "mode": "readwrite"}, {"path": "/harness/a", "contents": "x", "mode": "readwrite"}]}),
            ),
            "unsupported-runtime-overlay",
            "$.runtime.overlays[0].bundle.files[1].mode",
        ),
        (
            overlay(
                &json!({"files": [{"path": "/tmp/a", "source": "./good.zip", "sha256": "b".repeat(64)}]}),
            ),
            "invalid-source-sha256",
            "$.runtime.overlays[0].bundle.files[0].sha256",
        ),
        (
            overlay(&json!({"files": [{"path": "/usr/a", "contents": "x"}]})),
            "invalid-sandbox-path",
            "$.runtime.overlays[0].bundle.files[0].path",
        ),
        (
            overlay(&json!({"configPreludes": [{"target": "wp-load.php", "contents": "1;"}]})),
            "unsupported-runtime-overlay",
            "$.runtime.overlays[0].bundle.configPreludes[0].target",
        ),
        (
            overlay(&json!({"localRoutes": [{"path": "/x", "target": "y", "localOnly": true}]})),
            "unsupported-runtime-overlay",
            "$.runtime.overlays[0].bundle.localRoutes[0]",
        ),
        (
            overlay(&json!({"patches": [{"id": "a", "source": "./file.txt"}]})),
            "unsupported-runtime-overlay",
            "$.runtime.overlays[0].bundle.patches[0]",
        ),
        (
            overlay(
                &json!({"capabilities": {"required": ["a"]}, "unsupportedGaps": [{"capability": "a", "reason": "r", "failureMode": "fail-closed"}]}),
            ),
            "unsupported-runtime-overlay",
            "$.runtime.overlays[0].bundle.unsupportedGaps[0].capability",
        ),
        (
            runtime(
                &json!({"blueprint": {"steps": [{"step": "installPlugin", "pluginData": {"resource": "wordpress.org/plugins", "slug": "a"}}]}}),
            ),
            "network-downloads-disabled",
            "$.runtime.blueprint.steps[0]",
        ),
        (
            runtime(
                &json!({"blueprint": {"steps": [{"step": "installPlugin", "pluginData": {"resource": "url", "url": "./none.zip"}}]}}),
            ),
            "missing-source",
            "$.runtime.blueprint.steps[0]",
        ),
        (
            runtime(&json!({"blueprint": {"preferredVersions": {"php": "9.9", "wp": "latest"}}})),
            "unsupported-php-version",
            "$.runtime.blueprint.preferredVersions.php",
        ),
        (
            runtime(&json!({"wp": "trunk"})),
            "unsupported-wordpress-version",
            "$.runtime.wp",
        ),
        (
            distribution(&json!({"wordpress": {"root": "/wordpress", "config": "own-config.php"}})),
            "unsupported-path",
            "$.distribution.wordpress.config",
        ),
        (
            inputs(
                &json!({"workspace_preloads": [{"type": "agent-runtime/workspace-preload", "payload": {"schema": "agent-runtime/workspace-preload/v1", "repositories": [{"name": "a", "url": "https://example.org/a.git"}]}}]}),
            ),
            "unsupported-workspace-preload",
            "$.inputs.workspace_preloads[0]",
        ),
        (
            inputs(
                &json!({"component_manifest": {"schema": "wp-codebox/component-manifest/v1", "components": [{"slug": "a"}]}}),
            ),
            "unsupported-component-manifest",
            "$.inputs.component_manifest.components[0].source",
        ),
        (
            inputs(
                &json!({"dependency_overlays": [{"kind": "composer-package", "package": "a/b", "source": "./dir", "consumer": "c"}]}),
            ),
            "unknown-dependency-overlay-consumer",
            "$.inputs.dependency_overlays[0].consumer",
        ),
        (
            inputs(
                &json!({"extra_plugins": [{"source": "./needs", "slug": "c"}], "dependency_overlays": [{"kind": "composer-package", "package": "a/c", "source": "./dir", "consumer": "c"}]}),
            ),
            "unsupported-dependency-overlay",
            "$.inputs.dependency_overlays[0].package",
        ),
        (
            inputs(
                &json!({"services": [{"id": "db", "kind": "mysql", "configuration": {"provider": "docker"}, "outputs": {"host": "DB_A"}}]}),
            ),
            "unsupported-runtime-service-provider",
            "$.inputs.services[0].configuration.provider",
        ),
        (
            inputs(
                &json!({"services": [{"id": "db", "kind": "mysql", "configuration": {"provider": "external", "externalService": "e", "hostEnv": "A", "usernameEnv": "B", "passwordEnv": "C"}, "outputs": {"host": "DB_A"}}]}),
            ),
            "unsupported-runtime-service-provider",
            "$.inputs.services[0].configuration.provider",
        ),
        (
            inputs(
                &json!({"services": [{"id": "db", "kind": "mysql", "configuration": {"hostEnv": "A"}, "outputs": {"host": "DB_A"}}]}),
            ),
            "unsupported-external-runtime-service-option",
            "$.inputs.services[0].configuration.hostEnv",
        ),
        (
            inputs(
                &json!({"services": [{"id": "db", "kind": "mysql", "configuration": {"engine": "mysql"}, "outputs": {"host": "DB_A"}}]}),
            ),
            "unsupported-native-runtime-service-engine",
            "$.inputs.services[0].configuration.engine",
        ),
        (
            inputs(
                &json!({"services": [{"id": "db", "kind": "mysql", "configuration": {"storage": "disk"}, "outputs": {"host": "DB_A"}}]}),
            ),
            "unsupported-native-runtime-service-option",
            "$.inputs.services[0].configuration.storage",
        ),
        (
            inputs(
                &json!({"services": [{"id": "db", "kind": "mysql", "configuration": {}, "outputs": {"hostname": "DB_A"}}]}),
            ),
            "unknown-runtime-service-output",
            "$.inputs.services[0].outputs.hostname",
        ),
        (
            inputs(
                &json!({"services": [{"id": "db", "kind": "mysql", "configuration": {}, "outputs": {"host": "PATH"}}]}),
            ),
            "invalid-runtime-service-env",
            "$.inputs.services[0].outputs.host",
        ),
        (
            inputs(
                &json!({"services": [{"id": "db", "kind": "mysql", "configuration": {}, "outputs": {"host": "DB_A", "port": ["DB_A"]}}]}),
            ),
            "duplicate-runtime-service-env",
            "$.inputs.services[0].outputs.port",
        ),
        (
            inputs(
                &json!({"services": [{"id": "db", "kind": "mysql", "configuration": {}, "outputs": {"host": "DB_A"}}], "runtimeEnv": {"DB_A": "x"}}),
            ),
            "duplicate-runtime-service-env",
            "$.inputs.services[0].outputs.host",
        ),
        (
            inputs(
                &json!({"services": [{"id": "db", "kind": "mysql", "configuration": {}, "outputs": {"host": "DB_A"}}], "secretEnv": ["DB_A"]}),
            ),
            "runtime-service-secret-target-collision",
            "$.inputs.services[0].outputs.host",
        ),
        (
            inputs(
                &json!({"services": [{"id": "a", "kind": "http", "outputs": {"url": "A"}}, {"id": "a", "kind": "smtp", "outputs": {"host": "B"}}]}),
            ),
            "duplicate-runtime-service-id",
            "$.inputs.services[1].id",
        ),
        (
            inputs(
                &json!({"services": [{"id": "a", "kind": "smtp", "outputs": {"host": "A"}}, {"id": "b", "kind": "smtp", "outputs": {"host": "B"}}]}),
            ),
            "native-runtime-service-budget-exceeded",
            "$.inputs.services[1].kind",
        ),
        (
            inputs(
                &json!({"services": [{"id": "cache", "kind": "redis", "outputs": {"host": "A"}}]}),
            ),
            "unsupported-runtime-service-kind",
            "$.inputs.services[0].kind",
        ),
        (
            inputs(
                &json!({"services": [{"id": "a".repeat(65), "kind": "http", "outputs": {"url": "A"}}]}),
            ),
            "invalid-runtime-service-id",
            "$.inputs.services[0].id",
        ),
        (
            inputs(
                &json!({"sourcePackages": [{"name": "a", "source": "./dir", "target": "x", "deny": ["build", "*.log"]}]}),
            ),
            "unsupported-source-package",
            "$.inputs.sourcePackages[0].deny[1]",
        ),
        (
            inputs(
                &json!({"sourcePackages": [{"name": "a", "source": "./dir", "target": "x", "allow": ["src/**"]}]}),
            ),
            "unsupported-source-package",
            "$.inputs.sourcePackages[0].allow[0]",
        ),
        (
            inputs(
                &json!({"sourcePackages": [{"name": "a", "source": "./dir", "target": "x", "artifact": true}]}),
            ),
            "unsupported-source-package",
            "$.inputs.sourcePackages[0].artifact",
        ),
        (
            inputs(
                &json!({"sourcePackages": [{"name": "a", "source": "./dir", "target": "/usr/x"}]}),
            ),
            "invalid-sandbox-path",
            "$.inputs.sourcePackages[0].target",
        ),
        (
            json!({"fuzzRun": {"schema": "wp-codebox/fuzz-run/v1", "cases": [{"case_id": "a", "phases": {"action": [{"command": "x"}]}}]}}),
            "unsupported-fuzz-run",
            "$.fuzzRun",
        ),
        (
            json!({"adversarialCampaigns": [{"schema": "wp-codebox/adversarial-recipe-campaign/v1", "id": "a", "seed": "1", "corpus": [{"id": "a", "actions": [{"type": "x"}]}], "caseTemplates": [{"id": "a", "phases": {}}], "mutators": ["scalar"], "oracles": [{"id": "runtime-status", "severity": "low"}]}]}),
            "unsupported-adversarial-campaign",
            "$.adversarialCampaigns",
        ),
    ]
}

#[test]
fn each_recipe_fault_yields_exactly_its_error_code_and_path() {
    let host = FakeHost::default();
    let groups = [
        ("shape", shape()),
        ("meaning", meaning()),
        ("seeds and distributions", seeds_and_distributions()),
        ("unsupported", unsupported()),
    ];
    let mut wrong = Vec::new();
    let mut codes = BTreeSet::new();
    let mut count = 0;
    for (group, rows) in groups {
        for (over, code, path) in rows {
            let found: Vec<_> = issues(&with(&over), &host, PolicyChoice::Derived)
                .into_iter()
                .map(|i| (i.code.as_str(), i.path))
                .collect();
            if found != [(code, path.to_owned())] {
                wrong.push(format!(
                    "{group}: {over}\n   wanted {code} {path}\n   found {found:?}"
                ));
            }
            codes.insert(code);
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 150, "{count}");
    assert!(codes.len() >= 60, "{}", codes.len());
}

#[test]
fn recipe_variants_without_the_tested_faults_are_valid() {
    let host = FakeHost::default();
    let good = [
        json!({}),
        php(
            &json!({"timeoutMs": 1, "allowFailure": true, "advisory": false, "metadata": {"a": [null]}}),
        ),
        php(&json!({"args": ["code-file=./code.php"]})),
        php(&json!({"args": ["code-file=/workspace/a/b.php"]})),
        mount(&json!({"source": "./dir", "target": "/workspace/a"})),
        mount(&json!({"source": "./file.txt", "target": "/workspace/f", "mode": "readonly"})),
        mount(&json!({"source": "./dir", "target": "/workspace", "phase": "pre-install"})),
        mount(&json!({"source": "./dir", "target": "/harness/"})),
        mount(&json!({"source": "./dir", "target": "/opt/x"})),
        mount(&json!({"source": "./dir", "target": "/wp-codebox-inputs"})),
        mount(&json!({"source": "./dir", "target": "//wordpress//wp-content/./mu-plugins/"})),
        mount(&json!({"source": "./file.txt", "target": "/wordpress/wp-content/mu-plugins/a.php"})),
        mount(&json!({"source": "./file.txt", "target": "/tmp/a.txt", "mode": "readwrite"})),
        mount(&json!({"source": "./file.txt", "target": "/harness/a.txt"})),
        runtime(&json!({"stack": {"mounts": [{"source": "./dir", "target": "/x"}]}})),
        runtime(
            &json!({"workers": 6, "wordpressInstallMode": "do-not-attempt-installing", "preview": {"port": 8080}, "hostNodeHeap": {"minimumMiB": 256, "maximumMiB": 512}, "assets": {"wordpressZip": "./good.zip"}, "phpVersion": "7.4"}),
        ),
        overlay(
            &json!({"files": [{"path": "/wordpress/wp-content/a.php", "contents": "x", "mode": "readwrite"}, {"path": "/harness/a", "source": "./good.zip", "sha256": common::ZIP_SHA256}], "configPreludes": [{"target": "wp-config.php", "contents": "<?php"}], "capabilities": {"required": ["a"], "provided": ["a"]}}),
        ),
        runtime(
            &json!({"blueprint": {"features": {"networking": true}, "preferredVersions": {"php": "8.0", "wp": "7.1"}, "steps": [
                {"step": "installPlugin", "pluginData": {"resource": "url", "url": "./good.zip"}},
                {"step": "installTheme", "themeData": {"resource": "wordpress.org/themes", "slug": "twentytwentyfive"}},
                {"step": "installPlugin", "pluginData": {"resource": "literal:directory", "name": "own", "files": {"own.php": "<?php"}}},
            ]}}),
        ),
        distribution(
            &json!({"wordpress": {"root": "/wordpress/", "config": "wp-config.php", "bootstrap": "/wordpress/wp-load.php"}, "serviceFakes": [{"name": "a", "source": "./code.php", "load": "pre-bootstrap", "sideEffectsArtifact": "wp-content/log.json"}, {"name": "b", "source": "./code.php", "load": "manual"}], "setupArtifacts": [{"name": "a", "type": "sql", "source": "./file.txt"}]}),
        ),
        inputs(
            &json!({"component_manifest": {"schema": "wp-codebox/component-manifest/v1", "components": [{"slug": "a", "source": "./dir"}, {"slug": "b"}]}, "extra_plugins": [{"source": "./other", "slug": "b"}]}),
        ),
        inputs(
            &json!({"sourcePackages": [{"name": "a", "source": "./dir", "target": "x", "allow": ["**"], "deny": ["build/**"], "artifact": {"path": "/workspace/x/a.json"}}]}),
        ),
        inputs(
            &json!({"extra_plugins": [{"source": "./needs", "slug": "c"}], "dependency_overlays": [{"kind": "composer-package", "package": "a/b", "source": "./dir", "consumer": "c"}]}),
        ),
        inputs(
            &json!({"mounts": [{"source": "./other", "target": "/wordpress/wp-content/plugins/a/sub", "mode": "readonly"}], "extra_plugins": [{"source": "./dir", "slug": "a"}]}),
        ),
        plugin(&json!({"source": "./dir", "loadAs": "mu-plugin", "activate": false})),
        plugin(&json!({"source": "./dir", "sourceSubpath": ".", "sourceSubdir": "."})),
        plugin(
            &json!({"source": "https://example.org/a.git", "sourcePath": "./dir", "slug": "a", "composer": "install"}),
        ),
        plugin(&json!({"source": "./dir"})),
        plugin(
            &json!({"source": "./dir", "slug": "a", "sourceSubdir": "sub", "pluginFile": "a/main.php"}),
        ),
        plugin(&json!({"source": "./good.zip", "sha256": common::ZIP_SHA256})),
        inputs(
            &json!({"workspaces": [{"seed": {"type": "plugin_scaffold", "slug": "a"}}, {"seed": {"type": "directory", "source": "./dir", "excludePaths": ["build/**"]}}]}),
        ),
        inputs(&json!({"stagedFiles": [{"source": "./file.txt", "target": "/workspace/f"}]})),
        inputs(&json!({"secretEnv": ["NOT_THERE"], "runtimeEnv": {"A": "b"}})),
        inputs(&json!({"services": [
                {"id": "db", "kind": "mysql", "configuration": {"provider": "native", "engine": "mariadb", "storage": "tmpfs"}, "outputs": {"host": ["A", "B"], "password": "C"}},
                {"id": "api", "kind": "http", "configuration": {"responseStatus": 503, "responseBody": "x"}, "outputs": {"url": "D"}},
                {"id": "mail", "kind": "smtp", "outputs": {"port": "E"}}]})),
        inputs(
            &json!({"services": [], "inherit": {"connectors": []}, "component_manifest": {"schema": "wp-codebox/component-manifest/v1"}}),
        ),
        service(&json!({"allowedHosts": ["a.example.org"], "blockedHosts": ["b.example.org"]})),
        seed(&json!({"deterministicIds": {"strategy": "numeric", "onUnsupported": "warn"}})),
        scopes(
            &json!({"options": {"names": ["blogname"]}, "users": {"ids": [1], "anonymize": true}, "activeTheme": true}),
        ),
        distribution(
            &json!({"constants": {"A": null}, "env": {"B": 1}, "safety": {"network": "declared", "allowedHosts": ["a.example.org"]}}),
        ),
        runtime(
            &json!({"backend": "wordpress-playground", "wp": "7.1", "phpVersion": "8.2", "workers": "auto", "bundledExtensions": ["intl"], "blueprint": {"steps": []}}),
        ),
        mapping(&json!({"from": "/next", "to": {"arg": "args-json", "pointer": "/0"}})),
        json!({"artifacts": {"verify": true, "workspacePolicy": {"strict": true}, "paths": [{"name": "a", "path": "/workspace/a"}]}}),
    ];
    for over in good {
        let found = issues(&with(&over), &host, PolicyChoice::Derived);
        assert_eq!(found, [], "{over}");
    }
}

#[test]
fn archive_without_required_sha256_is_refused() {
    let digest = json!({"source": "./good.zip", "sha256": common::ZIP_SHA256});
    let without = json!({"source": "./good.zip"});
    let directory = json!({"source": "./dir"});
    let free = FakeHost::default();
    let strict = FakeHost {
        requires_sha256: true,
        ..FakeHost::default()
    };
    let judge = |host, row| issues(&with(&plugin(row)), host, PolicyChoice::Derived);
    assert_eq!(judge(&free, &without), []);
    assert_eq!(judge(&strict, &digest), []);
    assert_eq!(judge(&strict, &directory), []);
    let found = judge(&strict, &without);
    let codes: Vec<_> = found
        .iter()
        .map(|i| (i.code.as_str(), i.path.as_str()))
        .collect();
    assert_eq!(
        codes,
        [("missing-source-sha256", "$.inputs.extra_plugins[0].sha256")]
    );
}

#[test]
fn recipe_issues_are_reported_in_the_section_order_of_the_recipe_format() {
    let host = FakeHost::default();
    let document = with(&json!({
        "distribution": {"name": "", "wordpress": {"root": "/x"}},
        "runtime": {"backendPackage": {"kind": "x", "source": "y"}, "overlays": [{"kind": "bundled-library", "library": "php-ai-client", "source": "x", "strategy": "wordpress-scoped-bundle"}]},
        "workflow": {"steps": [{"command": "nope"}]},
        "inputs": {
            "siteSeeds": [{"type": "fixture", "name": "s", "source": "./seed.json", "scopes": {}}],
            "mounts": [{"source": "./none", "target": "/workspace/a"}],
            "workspaces": [{"seed": {"type": "plugin_scaffold"}}],
            "extra_plugins": [{"source": "./none", "slug": "a"}],
            "runtimeEnv": {"PATH": "x"},
            "secretEnv": ["PATH"],
        },
        "artifacts": {"directory": ""},
    }));
    let policy = json!({"network": "deny", "filesystem": "sandbox", "commands": ["inspect-mounted-inputs"], "secrets": "none", "approvals": "never"});
    let codes: Vec<_> = issues(&document, &host, PolicyChoice::Given(&policy))
        .into_iter()
        .map(|i| i.code.as_str())
        .collect();
    assert_eq!(
        codes,
        [
            "invalid-distribution-name",
            "unsupported-path",
            "unsupported-backend-package",
            "unsupported-command",
            "missing-source",
            "unsupported-runtime-overlay",
            "invalid-slug",
            "missing-source",
            "invalid-secret-env",
            "invalid-secret-env",
            "invalid-runtime-env",
            "missing-site-seed-scopes",
            "missing-path",
            "runtime-policy-missing-command",
            "runtime-policy-missing-command",
        ]
    );
}

#[test]
fn policy_given_for_a_recipe_must_be_valid_and_list_every_command() {
    let host = FakeHost::default();
    let good = json!({"network": "deny", "filesystem": "readwrite-mounts", "commands": ["wordpress.run-php"], "secrets": "none", "approvals": "never"});
    let document = with(&json!({}));
    assert_eq!(issues(&document, &host, PolicyChoice::Given(&good)), []);
    let judge = |policy: &Value, document: &Value| -> Vec<(String, String)> {
        issues(document, &host, PolicyChoice::Given(policy))
            .into_iter()
            .map(|i| (i.code.to_string(), i.path))
            .collect()
    };
    let pair = |code: &str, path: &str| (code.to_owned(), path.to_owned());
    let mut none = good.clone();
    none["commands"] = json!(["wordpress.wp-cli", "wordpress.run-ph"]);
    assert_eq!(
        judge(&none, &document),
        [pair(
            "runtime-policy-missing-command",
            "$.workflow.steps[0].command"
        )]
    );
    let mut bad = good.clone();
    bad["network"] = json!("allow");
    assert_eq!(
        judge(&bad, &document),
        [pair("runtime-policy-invalid", "policy.network")]
    );
    let mut sandbox = good.clone();
    sandbox["filesystem"] = json!("readonly-mounts");
    let mounted = with(&mount(
        &json!({"source": "./dir", "target": "/workspace/a"}),
    ));
    assert_eq!(judge(&good, &mounted), []);
    assert_eq!(
        judge(&sandbox, &mounted),
        [pair(
            "runtime-policy-mount-denied",
            "$.inputs.mounts[0].target"
        )]
    );
    // A run can use a secret only if the policy lists it in `expose_secrets`, or opens a host to
    // which the recipe binds the secret.
    let secret = with(&inputs(&json!({"secretEnv": ["API_KEY"]})));
    let mut exposed = good.clone();
    exposed["secrets"] = json!("connector-scoped");
    assert_eq!(
        judge(&exposed, &secret),
        [pair(
            "runtime-policy-secret-withheld",
            "$.inputs.secretEnv[0]"
        )]
    );
    exposed["expose_secrets"] = json!(["API_KEY"]);
    assert_eq!(judge(&exposed, &secret), []);
    // A policy may permit neither writes that the recipe forbids nor access to its `blockedHosts`.
    let outside = with(&service(
        &json!({"environment": "external", "allowedHosts": ["a.example.org"], "blockedHosts": ["b.example.org"]}),
    ));
    let mut open = good.clone();
    open["network"] = json!({"rules": [{"host": "a.example.org", "methods": ["GET"]}]});
    assert_eq!(judge(&open, &outside), []);
    open["network"] = json!({"allowHosts": ["a.example.org", "b.example.org"]});
    assert_eq!(
        judge(&open, &outside),
        [
            pair(
                "runtime-policy-external-service-host-denied",
                "$.inputs.externalServices[0].allowedHosts[0]"
            ),
            pair(
                "runtime-policy-external-service-host-denied",
                "$.inputs.externalServices[0].blockedHosts[0]"
            ),
        ]
    );
    open["network"] = json!({"allowHosts": ["c.example.org"]});
    assert_eq!(judge(&open, &outside).len(), 1);
}

/// The check of members and types reports at most 500 issues. A list has at most 1000 entries,
/// which bounds the issues of the later checks.
#[test]
fn number_of_issues_is_bounded_for_hostile_recipes() {
    let host = FakeHost::default();
    let row = json!({"source": "./none", "target": "/workspace/a"});
    let document = with(&inputs(&json!({"mounts": vec![row.clone(); 1001]})));
    let found = issues(&document, &host, PolicyChoice::Derived);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].path, "$.inputs.mounts");
    // Each mount has a missing source and the same target as the previous one.
    let document = with(&inputs(&json!({"mounts": vec![row; 1000]})));
    assert_eq!(issues(&document, &host, PolicyChoice::Derived).len(), 1000);
    let document = with(&json!({"inputs": {"mounts": vec![json!({}); 900]}}));
    assert_eq!(issues(&document, &host, PolicyChoice::Derived).len(), 500);
}

#[test]
fn recipe_issues_never_repeat_secret_values() {
    // The user may have written a secret's value in place of its name, so no message repeats it.
    let host = FakeHost::default();
    let document = with(&inputs(
        &json!({"secretEnv": ["sk-live-abcdefghijklmnop"], "externalServices": [{"id": "a", "environment": "fixture", "writes": "forbidden", "secretEnv": ["sk-live-abcdefghijklmnop"]}]}),
    ));
    let text = serde_json::to_string(&issues(&document, &host, PolicyChoice::Derived)).unwrap();
    assert!(text.contains("invalid-secret-env"));
    assert!(!text.contains("sk-live"), "{text}");
}
