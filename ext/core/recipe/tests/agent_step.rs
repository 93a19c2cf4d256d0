//! The step of a recipe that runs an agent: validation and conversion.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{FakeHost, issues, with};
use serde_json::{Value, json};
use wp_codebox_recipe::{Context, Lowered, PolicyChoice, lower, parse};

const STEP: &str = "wp-codebox.agent-sandbox-run";

fn agent(args: &[&str], more: &Value) -> Value {
    let args = [&["task=Fix it"][..], args].concat();
    let mut step = json!({"command": STEP, "args": args});
    for (key, value) in more.as_object().unwrap() {
        step[key] = value.clone();
    }
    step
}

fn recipe(steps: &[Value]) -> Value {
    with(
        &json!({"workflow": {"steps": steps}, "inputs": {"extra_plugins": [
            {"source": "./dir", "slug": "runtime"},
            {"source": "./other", "slug": "idle", "activate": false},
        ]}}),
    )
}

fn found(document: &Value) -> Vec<(&'static str, String, String)> {
    issues(document, &FakeHost::default(), PolicyChoice::Derived)
        .into_iter()
        .map(|issue| (issue.code.as_str(), issue.path, issue.message))
        .collect()
}

fn lowered(document: &Value) -> Lowered {
    let recipe = parse(document.to_string().as_bytes()).unwrap();
    let context = Context {
        sources: &FakeHost::default(),
        policy: PolicyChoice::Derived,
    };
    lower(&recipe, context).unwrap()
}

#[test]
fn agent_step_is_valid_in_every_phase_and_with_each_of_its_arguments() {
    let step = agent(&["provider=p", "model=m"], &json!({}));
    for phase in ["before", "steps", "after"] {
        let mut document = recipe(&[json!({"command": "wordpress.run-php", "args": ["code=1;"]})]);
        let steps = document["workflow"][phase].as_array().cloned();
        let mut steps = steps.unwrap_or_default();
        steps.push(step.clone());
        document["workflow"][phase] = json!(steps);
        assert_eq!(found(&document), [], "{phase}");
    }
    for arg in [
        "component=../runtime",
        "component=../x,slug=runtime,pluginFile=runtime/main.php,loadAs=plugin",
        "provider-plugin-slugs=runtime",
        "provider-plugin-contracts-json=[{\"slug\":\"runtime\"}]",
        "runtime-component-contracts-json=[]",
        "agent-bundles-json=[{\"source\":\"./seed.json\"}]",
        "runtime-task-json={\"ability\":\"a/b\"}",
        "sandbox-tool-policy-json={\"schema\":\"wp-codebox/sandbox-tool-policy/v1\",\"version\":1,\"tools\":[]}",
        "max-turns=",
    ] {
        assert_eq!(found(&recipe(&[agent(&[arg], &json!({}))])), [], "{arg}");
    }
}

#[test]
fn invalid_agent_step_is_refused_with_the_reason() {
    let step = |arg: &str| recipe(&[agent(&[arg], &json!({}))]);
    let task = |text: &str| recipe(&[json!({"command": STEP, "args": [format!("task={text}")]})]);
    let continued = json!({"continuation": {"maxIterations": 3, "while": {"pointer": "/a", "equals": 1},
        "inputMappings": [{"from": "/a", "to": {"arg": "sandbox-tool-policy-json", "pointer": "/tools"}}]}});
    let with_policy = r#"{"schema":"wp-codebox/task-input/v1","goal":"g","policy":{"network":"deny","filesystem":"sandbox","commands":[],"secrets":"none","approvals":"never"}}"#;
    for (document, code, path, says) in [
        (
            recipe(&[agent(&[], &json!({})), agent(&[], &json!({}))]),
            "unsupported-command",
            "$.workflow.steps[1].command",
            "$.workflow.steps[0] already runs it",
        ),
        (
            task(""),
            "invalid-step",
            "$.workflow.steps[0].args",
            "needs task",
        ),
        (
            step("code=1;"),
            "invalid-step",
            "$.workflow.steps[0].args[1]",
            "wordpress.run-php",
        ),
        (
            step("code-file=a.php"),
            "invalid-step",
            "$.workflow.steps[0].args[1]",
            "wordpress.run-php",
        ),
        (
            step("component=../none"),
            "invalid-reference",
            "$.workflow.steps[0].args[1]",
            "inputs.extra_plugins",
        ),
        (
            step("provider-plugin-slugs=idle"),
            "invalid-reference",
            "$.workflow.steps[0].args[1]",
            "does not activate",
        ),
        (
            step("component=../runtime,x=1"),
            "invalid-step",
            "$.workflow.steps[0].args[1]",
            "slug=SLUG",
        ),
        (
            step("agent-bundles-json=[{\"source\":\"./none\"}]"),
            "missing-source",
            "$.workflow.steps[0].args",
            "does not exist",
        ),
        (
            step("agent-bundles-json=[{\"colour\":1}]"),
            "invalid-step",
            "$.workflow.steps[0].args",
            "agent_bundles",
        ),
        (
            step("runtime-task-json={\"input\":{}}"),
            "invalid-step",
            "$.workflow.steps[0].args",
            "{ability, input}",
        ),
        (
            step("sandbox-tool-policy-json={\"a\":1}"),
            "invalid-step",
            "$.workflow.steps[0].args",
            "",
        ),
        (
            recipe(&[agent(
                &["agent=codex", "runtime-task-json={\"ability\":\"a/b\"}"],
                &json!({}),
            )]),
            "invalid-step",
            "$.workflow.steps[0].args",
            "remove one of them",
        ),
        (
            task(with_policy),
            "invalid-step",
            "$.workflow.steps[0].args",
            "--policy",
        ),
        (
            recipe(&[agent(
                &[
                    "sandbox-tool-policy-json={\"schema\":\"wp-codebox/sandbox-tool-policy/v1\",\"version\":1,\"tools\":[]}",
                ],
                &continued,
            )]),
            "invalid-continuation",
            "$.workflow.steps[0].continuation",
            "runs once",
        ),
    ] {
        let found = found(&document);
        let first: Vec<_> = found.iter().map(|row| (row.0, row.1.as_str())).collect();
        assert_eq!(first, [(code, path)], "{document}: {found:?}");
        assert!(found[0].2.contains(says), "{}", found[0].2);
    }
    let mut probe = recipe(&[]);
    probe["workflow"] = common::base()["workflow"].clone();
    probe["probes"] = json!([{"name": "a", "step": agent(&[], &json!({}))}]);
    let found = found(&probe);
    assert_eq!(
        (found.len(), found[0].1.as_str()),
        (1, "$.probes[0].step.command")
    );
}

#[test]
fn agent_step_gives_the_run_request_an_agent_task_a_step_timeout_and_the_commands_of_its_tools() {
    let step = agent(
        &["timeout-seconds=9", "model=m"],
        &json!({"timeoutMs": 60_000}),
    );
    let lowered = lowered(&recipe(&[step]));
    assert_eq!(
        Value::Object(lowered.agent_task.unwrap()),
        json!({"goal": "Fix it", "model": "m"})
    );
    let steps = &lowered.workflow.steps;
    let step = steps.iter().find(|step| step.call.command == STEP).unwrap();
    assert_eq!(step.timeout_ms, Some(9000));
    for command in [STEP, "command-agent-run", "wordpress.run-php"] {
        assert!(
            lowered.policy.commands.iter().any(|c| c == command),
            "{command}"
        );
    }
    let plain = self::lowered(&common::base());
    assert_eq!(plain.agent_task, None);
    assert!(
        !plain
            .policy
            .commands
            .iter()
            .any(|c| c == "command-agent-run")
    );
}
