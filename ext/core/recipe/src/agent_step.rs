//! Reads the step of a recipe that runs the agent: converts its arguments to the fields of a task,
//! and lists the plugins that the step requires.
//!
//! This module only renames the arguments to fields of a task. `normalise_task` and `read_task` of
//! the crate `policy` read these fields, as they do for every other task.

use crate::layout;
use crate::model::{Recipe, Step};
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{CommandCall, parse_json, schema_id};
use wp_codebox_policy::{Handler, arg_value, descriptor};

/// Names of the built-in agent, and names that other systems give their default agent.
const DEFAULT_AGENTS: [&str; 4] = [
    "built-in",
    "sandbox-agent",
    "wp-codebox-agent",
    "wp-codebox-sandbox",
];
/// Schemas of a task that the argument `task` may contain as JSON.
const TASK_DOCUMENTS: [&str; 2] = [schema_id::TASK_INPUT, "wp-codebox/agent-workload/v1"];
/// Arguments that name plugins.
const PLUGINS: [&str; 4] = [
    "component",
    "provider-plugin-slugs",
    "provider-plugin-contracts-json",
    "runtime-component-contracts-json",
];

/// Returns whether this registry command starts the agent.
pub(crate) fn is_agent(command: &str) -> bool {
    descriptor(command).is_some_and(|found| found.handler == Handler::Agent)
}

/// Returns the call of the recipe's first step that runs the agent.
pub(crate) fn call(recipe: &Recipe) -> Option<CommandCall> {
    let steps = layout::workflow(recipe);
    let placed = steps.iter().find(|placed| is_agent(&placed.step.command))?;
    Some(placed.call())
}

/// Returns the timeout of a step in milliseconds: for an agent the shorter one of `timeoutMs` and
/// its argument `timeout-seconds`.
pub(crate) fn timeout_ms(step: &Step, call: &CommandCall) -> Option<u64> {
    let seconds = is_agent(&call.command)
        .then(|| arg_value(call, "timeout-seconds")?.trim().parse().ok())
        .flatten();
    let own = seconds.map(|seconds: u64| seconds.saturating_mul(1000));
    step.timeout_ms.into_iter().chain(own).min()
}

/// Returns the text of an argument without white space at its ends; `None` if it is blank.
fn text<'a>(call: &'a CommandCall, name: &str) -> Option<&'a str> {
    let text = arg_value(call, name)?.trim();
    (!text.is_empty()).then_some(text)
}

fn document(call: &CommandCall, name: &str) -> Option<Value> {
    let document = parse_json(text(call, name)?.as_bytes()).ok()?;
    (!is_empty(&document)).then_some(document)
}

/// Returns whether a value counts as absent. PHP writes an empty object as an empty list.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns the arguments of the step as the input of a task.
pub(crate) fn task(call: &CommandCall) -> Map<String, Value> {
    let mut task = Map::new();
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            task.insert(name.to_owned(), value);
        }
    };
    match task_document(call) {
        Some(document) => add("parent_request", Some(Value::Object(document))),
        None => add("goal", text(call, "task").map(Value::from)),
    }
    let agent = text(call, "agent").filter(|name| !DEFAULT_AGENTS.contains(name));
    add("agent", agent.map(Value::from));
    for (argument, field) in [
        ("provider", "provider"),
        ("model", "model"),
        ("session-id", "session_id"),
    ] {
        add(field, text(call, argument).map(Value::from));
    }
    let turns = text(call, "max-turns").and_then(|turns| turns.parse::<u64>().ok());
    add("max_turns", turns.map(Value::from));
    for (argument, field) in [
        ("sandbox-tool-policy-json", "sandbox_tool_policy"),
        ("agent-bundles-json", "agent_bundles"),
    ] {
        add(field, document(call, argument));
    }
    let mode = text(call, "mode");
    add("context", mode.map(|mode| json!({ "mode": mode })));
    let mut runtime_task = document(call, "runtime-task-json");
    if let (Some(Value::Object(runtime_task)), Some(mode)) = (&mut runtime_task, mode) {
        let input = runtime_task.entry("input").or_insert_with(|| json!({}));
        if is_empty(input) {
            *input = json!({});
        }
        if let Value::Object(input) = input {
            input.entry("mode").or_insert_with(|| mode.into());
        }
    }
    add("runtime_task", runtime_task);
    task
}

/// Returns the JSON document in the argument `task`, without its empty members; `None` if its
/// schema is not one of [`TASK_DOCUMENTS`].
fn task_document(call: &CommandCall) -> Option<Map<String, Value>> {
    let Value::Object(mut document) = document(call, "task")? else {
        return None;
    };
    let schema = document.get("schema").and_then(Value::as_str)?;
    if !TASK_DOCUMENTS.contains(&schema) {
        return None;
    }
    document.retain(|_, value| !is_empty(value));
    Some(document)
}

/// A plugin that an argument of the step requires.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RequiredPlugin {
    /// Index of the argument in the step's list of arguments.
    pub at: usize,
    /// Name of the argument.
    pub argument: &'static str,
    /// Slug of the plugin, or what is wrong with the argument.
    pub slug: Result<String, String>,
}

/// Returns the plugins that the arguments of the step require.
pub(crate) fn required_plugins(call: &CommandCall) -> Vec<RequiredPlugin> {
    let mut all = Vec::new();
    for (at, arg) in call.args.iter().enumerate() {
        let Some((name, value)) = arg.split_once('=') else {
            continue;
        };
        let Some(argument) = PLUGINS.into_iter().find(|known| *known == name) else {
            continue;
        };
        let slugs = match argument {
            "component" => vec![component(value)],
            "provider-plugin-slugs" => value
                .split(',')
                .map(|slug| Ok(slug.trim().to_owned()))
                .collect(),
            _ => contracts(value),
        };
        let named = slugs.into_iter().filter(|slug| slug.as_deref() != Ok(""));
        all.extend(named.map(|slug| RequiredPlugin { at, argument, slug }));
    }
    all
}

/// Returns the slug of a component `PATH[,slug=SLUG,pluginFile=FILE,loadAs=plugin|mu-plugin]`; an
/// empty one if the value is blank.
fn component(value: &str) -> Result<String, String> {
    let mut parts = value.split(',').map(str::trim);
    let path = parts.next().unwrap_or_default();
    let mut slug = layout::base(path);
    for part in parts {
        match part.split_once('=') {
            Some(("slug", given)) => slug = given,
            Some(("pluginFile", _) | ("loadAs", "plugin" | "mu-plugin")) => {}
            _ => {
                return Err(format!(
                    "{part:?} must be slug=SLUG, pluginFile=FILE, loadAs=plugin or loadAs=mu-plugin"
                ));
            }
        }
    }
    Ok(slug.to_owned())
}

/// Returns the slugs in a JSON list whose rows are slugs, or objects with `slug` or `path`. Returns
/// none for a value that is no JSON list; validation refuses it as an argument of the wrong format.
fn contracts(value: &str) -> Vec<Result<String, String>> {
    let rows: Vec<Value> = serde_json::from_str(value).unwrap_or_default();
    let member = |row: &Value, name: &str| row.get(name).and_then(Value::as_str).map(str::to_owned);
    rows.iter()
        .map(|row| {
            let path = || member(row, "path").map(|path| layout::base(&path).to_owned());
            let slug = row.as_str().map(str::to_owned);
            let slug = slug.or_else(|| member(row, "slug")).or_else(path);
            slug.filter(|slug| !slug.trim().is_empty())
                .ok_or_else(|| "each entry of the list must be a slug, or an object with the member slug or path".to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(args: &[&str]) -> CommandCall {
        CommandCall {
            command: "wp-codebox.agent-sandbox-run".to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        }
    }

    #[test]
    fn arguments_of_an_agent_step_become_the_fields_of_a_task() {
        let all = call(&[
            "task= Fix it ",
            "agent=codex",
            "mode=review",
            "provider=p",
            "model=m",
            "session-id=s",
            "max-turns=7",
            "timeout-seconds=9",
            "agent-bundles-json=[]",
            "runtime-task-json={\"ability\":\"a/b\",\"input\":[]}",
        ]);
        assert_eq!(
            Value::Object(task(&all)),
            json!({"goal": "Fix it", "agent": "codex", "provider": "p", "model": "m",
                "session_id": "s", "max_turns": 7, "context": {"mode": "review"},
                "runtime_task": {"ability": "a/b", "input": {"mode": "review"}}})
        );
        let plain = call(&["task=x", "agent=wp-codebox-sandbox", "model= "]);
        assert_eq!(Value::Object(task(&plain)), json!({"goal": "x"}));
    }

    #[test]
    fn task_given_as_json_is_a_parent_request_without_its_empty_members() {
        let document = json!({"schema": schema_id::TASK_INPUT, "version": 1, "goal": "g",
            "policy": [], "target": {"ref": "a"}});
        let given = task(&call(&[&format!("task={document}")]));
        assert_eq!(
            Value::Object(given),
            json!({"parent_request": {"schema": schema_id::TASK_INPUT, "version": 1, "goal": "g",
                "target": {"ref": "a"}}})
        );
        let text = "task={\"goal\": \"a JSON text without a schema is a goal\"}";
        assert!(task(&call(&[text])).contains_key("goal"));
    }

    #[test]
    fn shorter_of_timeout_ms_and_timeout_seconds_applies_to_an_agent_step() {
        let step = |ms: Option<u64>| -> Step {
            let step = json!({"command": "x", "timeoutMs": ms});
            serde_json::from_value(step).unwrap()
        };
        let nine = call(&["task=x", "timeout-seconds=9"]);
        assert_eq!(timeout_ms(&step(Some(5)), &nine), Some(5));
        assert_eq!(timeout_ms(&step(Some(10_000)), &nine), Some(9000));
        assert_eq!(timeout_ms(&step(None), &nine), Some(9000));
        let other = CommandCall {
            command: "wordpress.run-php".to_owned(),
            ..nine
        };
        assert_eq!(timeout_ms(&step(None), &other), None);
    }

    #[test]
    fn required_plugins_of_an_agent_step_are_read_from_every_argument_that_names_them() {
        let slugs = |arg: &str| -> Vec<Result<String, String>> {
            let found = required_plugins(&call(&["task=x", arg]));
            found.into_iter().map(|plugin| plugin.slug).collect()
        };
        for (arg, wanted) in [
            ("component=../runtime/", "runtime"),
            (
                "component=../x,slug=a,pluginFile=a/a.php,loadAs=mu-plugin",
                "a",
            ),
            ("provider-plugin-slugs= a , ", "a"),
            ("provider-plugin-contracts-json=[\"a\"]", "a"),
            (
                "runtime-component-contracts-json=[{\"slug\":\"a\",\"path\":\"/x\"}]",
                "a",
            ),
            (
                "runtime-component-contracts-json=[{\"path\":\"/srv/b\"}]",
                "b",
            ),
        ] {
            assert_eq!(slugs(arg), [Ok(wanted.to_owned())], "{arg}");
        }
        assert!(slugs("component=x,colour=red")[0].is_err());
        assert!(slugs("provider-plugin-contracts-json=[1]")[0].is_err());
        assert!(slugs("component=").is_empty() && slugs("provider-plugin-slugs=").is_empty());
    }
}
