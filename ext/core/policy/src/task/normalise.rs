//! Brings the input of a task into one form: unpacks the documents in which other programs wrap a
//! task, and trims texts and lists.
//!
//! A task may come as the fields of a task, as a whole `task-input/v1`, or inside
//! `agent-workload/v1`. Fields given beside such a document replace those in the document; lists
//! are joined. Members of the document that are no fields of a task are dropped, except program
//! code, which is refused.

use super::issues::Issues;
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, Shape, TASK_FIELDS, TaskAuthority, TaskTexts, schema_id,
};

/// Names under which a task may carry an `agent-workload/v1`.
const WORKLOADS: [&str; 3] = ["agent_workload", "agentWorkload", "workload"];
/// Members of a workload that are fields of a task, with the names of these fields.
const WORKLOAD_FIELDS: [(&str, &str); 7] = [
    ("tools", "allowed_tools"),
    ("artifacts", "expected_artifacts"),
    ("provider", "provider"),
    ("model", "model"),
    ("target", "target"),
    ("policy", "policy"),
    ("context", "context"),
];
/// Members of `agent_runtime` of a workload that become fields of the task; all others are dropped.
const RUNTIME_FIELDS: [&str; 6] = [
    "agent",
    "mode",
    "provider",
    "model",
    "runtime_profile",
    "runtime_task",
];
/// Members that are read from a `task-input/v1` inside another input, beside the texts that lists of
/// runs show; all others are dropped.
const DOCUMENT: [&str; 13] = [
    "target",
    "allowed_tools",
    "expected_artifacts",
    "structured_artifacts",
    "staged_files",
    "agent_bundles",
    "tool_bridge",
    "parent_tool_bridge",
    "sandbox_tool_policy",
    "policy",
    "context",
    "provider",
    "model",
];
/// Members with program code, which a task never carries.
const CODE: [&str; 2] = ["code", "code_file"];
/// Names under which the task of a workload may carry its goal, most specific first.
const GOALS: [&str; 3] = ["goal", "message", "prompt"];
/// Lists that are joined when several documents have them.
const JOINED: [&str; 5] = [
    "allowed_tools",
    "expected_artifacts",
    "structured_artifacts",
    "staged_files",
    "agent_bundles",
];
/// Ends of the error sentences about a workload and about a parent request without a goal; the
/// sentences begin with the name of the missing field.
const GOAL_OF_WORKLOAD: &str =
    "names no task; give a text, or an object with \"goal\", \"message\" or \"prompt\"";
const GOAL_OF_PARENT: &str = "is missing or blank; describe there what the agent shall do";
/// Schema of a row of `structured_artifacts`.
const STRUCTURED_ARTIFACT: &str = "wp-codebox/structured-artifact/v1";
/// Schema of a workload.
const AGENT_WORKLOAD: &str = "wp-codebox/agent-workload/v1";

/// Returns the input of a task with only the fields of a task. Normalising a normalised input
/// changes nothing.
///
/// # Errors
/// Fails with the first issue; if there are several, its `data.issues` lists all of them. Values
/// with a wrong type that [`super::read_task`] refuses are left unchanged.
pub fn normalise_task(input: Map<String, Value>) -> Result<Map<String, Value>, ErrorBody> {
    let mut issues = Issues::default();
    let mut task = input;
    // First document that could contain the goal: its name, its member for the goal, and the end of
    // the error sentence if the goal is missing.
    let mut goalless = None;
    match schema(&task) {
        None => {
            task.shift_remove("schema");
        }
        Some(schema_id::TASK_INPUT) => {
            version(&mut task, "version", &mut issues);
            task.shift_remove("schema");
        }
        Some(AGENT_WORKLOAD) => {
            task = workload("", task, &mut issues);
            goalless = Some(("", "task", GOAL_OF_WORKLOAD));
        }
        Some(_) => {
            let rule = format!("{} or {AGENT_WORKLOAD}", schema_id::TASK_INPUT);
            issues.refuse(ErrorCode::InputInvalid, "schema", &rule);
            task.shift_remove("schema");
        }
    }
    for name in WORKLOADS {
        if let Some(document) = document(&mut task, name, &mut issues) {
            match document.get("schema") {
                None | Some(Value::Null) => {}
                Some(Value::String(id)) if id == AGENT_WORKLOAD => {}
                Some(_) => {
                    let at = format!("{name}.schema");
                    issues.refuse(ErrorCode::InputInvalid, &at, AGENT_WORKLOAD);
                    continue;
                }
            }
            let lower = workload(name, document, &mut issues);
            merge(&mut task, lower);
            goalless.get_or_insert((name, "task", GOAL_OF_WORKLOAD));
        }
    }
    if let Some(parent) = document(&mut task, "parent_request", &mut issues) {
        let lower = parent_request(parent, &mut issues);
        merge(&mut task, lower);
        goalless.get_or_insert(("parent_request", "goal", GOAL_OF_PARENT));
    }
    // Each document may lack the goal if another one, or the task itself, has it.
    if let (Some((document, member, what)), true) = (goalless, blank(task.get("goal"))) {
        let field = match document {
            "" => member.to_owned(),
            document => format!("{document}.{member}"),
        };
        let issue = ErrorBody::new(ErrorCode::TaskMissing, format!("{field} {what}"));
        issues.push(issue.with("field", field));
    }
    trim(&mut task);
    structured_artifacts(&mut task, &mut issues);
    issues.into_result()?;
    Ok(task)
}

fn schema(document: &Map<String, Value>) -> Option<&str> {
    document.get("schema")?.as_str()
}

/// Removes a document from the task and returns it. `null` and an empty document count as absent.
fn document(
    task: &mut Map<String, Value>,
    name: &str,
    issues: &mut Issues,
) -> Option<Map<String, Value>> {
    match task.shift_remove(name)? {
        Value::Null => None,
        Value::Array(items) if items.is_empty() => None,
        Value::Object(members) => (!members.is_empty()).then_some(members),
        _ => {
            issues.refuse(ErrorCode::InputInvalid, name, "an object");
            None
        }
    }
}

fn version(document: &mut Map<String, Value>, at: &str, issues: &mut Issues) {
    if document.shift_remove("version").is_some_and(|v| v != 1) {
        issues.refuse(ErrorCode::InputInvalid, at, "1");
    }
}

/// Converts a parent request to fields of a task. It is a `task-input/v1`, a workload, or any other
/// document, which the agent reads in the context of its task.
fn parent_request(mut parent: Map<String, Value>, issues: &mut Issues) -> Map<String, Value> {
    let name = "parent_request";
    match schema(&parent) {
        Some(AGENT_WORKLOAD) => return workload(name, parent, issues),
        Some(schema_id::TASK_INPUT) => {}
        _ => {
            let context = json!({name: parent});
            return Map::from_iter([("context".to_owned(), context)]);
        }
    }
    parent.shift_remove("schema");
    version(&mut parent, "parent_request.version", issues);
    select(name, &mut parent, &document_members(), issues);
    parent
}

/// Converts a workload to fields of a task. `at` is its name in the input; empty for the input
/// itself.
fn workload(at: &str, mut given: Map<String, Value>, issues: &mut Issues) -> Map<String, Value> {
    let place = |name: &str| match at {
        "" => name.to_owned(),
        at => format!("{at}.{name}"),
    };
    given.shift_remove("schema");
    let mut task = Map::new();
    let goal = match given.shift_remove("task") {
        Some(Value::String(goal)) => Some(goal.into()),
        Some(Value::Object(mut own)) => {
            let goals = GOALS.map(|name| own.shift_remove(name));
            let goal = goals.into_iter().flatten().find(|goal| !blank(Some(goal)));
            select(&place("task"), &mut own, &document_members(), issues);
            task.extend(own);
            goal
        }
        _ => None,
    };
    if let Some(goal) = goal.filter(|goal| !blank(Some(goal))) {
        task.insert("goal".to_owned(), goal);
    }
    let mut lower = Map::new();
    for (from, to) in WORKLOAD_FIELDS {
        if let Some(value) = given.shift_remove(from) {
            lower.insert(to.to_owned(), value);
        }
    }
    merge(&mut task, lower);
    let runtime = match given.shift_remove("agent_runtime") {
        Some(Value::String(agent)) => Map::from_iter([("agent".to_owned(), agent.into())]),
        Some(Value::Object(mut runtime)) => {
            if runtime
                .get("runtime_packages")
                .is_some_and(|packages| !empty(packages))
            {
                let field = place("agent_runtime.runtime_packages");
                let message = format!(
                    "{field} is not accepted, because a task loads no packages; give plugins in component_contracts, or use the ability run-runtime-package"
                );
                let issue = ErrorBody::new(ErrorCode::InputInvalid, message);
                issues.push(issue.with("field", field));
            }
            select(
                &place("agent_runtime"),
                &mut runtime,
                &RUNTIME_FIELDS,
                issues,
            );
            runtime
        }
        Some(Value::Null) | None => Map::new(),
        Some(Value::Array(items)) if items.is_empty() => Map::new(),
        Some(_) => {
            let rule = "the name of an agent, or an object";
            issues.refuse(ErrorCode::InputInvalid, &place("agent_runtime"), rule);
            Map::new()
        }
    };
    merge(&mut task, runtime);
    if at.is_empty() {
        // The input itself is the workload. Its other members are fields of the task and have
        // precedence.
        merge(&mut given, task);
        return given;
    }
    select(at, &mut given, &[], issues);
    task
}

/// Keeps only the listed members of a document, and refuses program code.
fn select(at: &str, document: &mut Map<String, Value>, names: &[&str], issues: &mut Issues) {
    for name in CODE.iter().filter(|name| document.contains_key(**name)) {
        let field = format!("{at}.{name}");
        let message = format!(
            "{field} is not accepted: a task carries a goal, never code; mount the code and describe the goal"
        );
        let issue = ErrorBody::new(ErrorCode::RawCodeForbidden, message);
        issues.push(issue.with("field", field));
    }
    document.retain(|name, _| names.contains(&name.as_str()));
}

/// Refuses every member that is not listed: its value would have no effect.
fn known(at: &str, document: &Map<String, Value>, names: &[&str], issues: &mut Issues) {
    for name in document.keys().filter(|n| !names.contains(&n.as_str())) {
        let field = format!("{at}.{name}");
        let message = format!(
            "{field} has no effect; remove it, or move it into \"payload\" or \"metadata\""
        );
        let issue = ErrorBody::new(ErrorCode::InputInvalid, message);
        issues.push(issue.with("field", field));
    }
}

/// Adds the fields of a document to a task. A field that the task already has stays, but lists of
/// [`JOINED`] are joined, and `context` gets the members that it lacks.
fn merge(task: &mut Map<String, Value>, lower: Map<String, Value>) {
    for (name, value) in lower {
        let joined = JOINED.contains(&name.as_str());
        match (task.get_mut(&name), value) {
            (Some(Value::Array(own)), Value::Array(more)) if joined => own.extend(more),
            (Some(Value::Object(own)), Value::Object(more)) if name == "context" => {
                for (member, value) in more {
                    own.entry(member).or_insert(value);
                }
            }
            (Some(own), value) if empty(own) => *own = value,
            (Some(_), _) => {}
            (None, value) => {
                task.insert(name, value);
            }
        }
    }
}

/// Returns whether a value counts as absent. PHP gives an empty object as an empty list.
fn empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn blank(value: Option<&Value>) -> bool {
    value
        .and_then(Value::as_str)
        .is_none_or(|text| text.trim().is_empty())
}

/// Returns the members that are read from a `task-input/v1` inside another input.
fn document_members() -> Vec<&'static str> {
    TaskTexts::NAMES.iter().copied().chain(DOCUMENT).collect()
}

/// Returns the fields of the caller that have the shape [`Shape::Text`] or [`Shape::Texts`].
fn fields_of(shape: Shape) -> impl Iterator<Item = &'static str> {
    let callers = TASK_FIELDS
        .iter()
        .filter(|field| field.authority == TaskAuthority::Caller);
    callers
        .filter(move |field| std::mem::discriminant(&field.shape) == std::mem::discriminant(&shape))
        .map(|field| field.name)
}

/// Removes white space at both ends of texts, and in lists of texts also empty texts and repetitions.
fn trim(task: &mut Map<String, Value>) {
    for name in fields_of(Shape::Text) {
        if let Some(Value::String(text)) = task.get_mut(name) {
            trim_text(text);
        }
    }
    if let Some(Value::Object(target)) = task.get_mut("target") {
        for value in target.values_mut() {
            if let Value::String(text) = value {
                trim_text(text);
            }
        }
    }
    for name in fields_of(Shape::Texts) {
        let Some(Value::Array(items)) = task.get_mut(name) else {
            continue;
        };
        for item in items.iter_mut() {
            if let Value::String(text) = item {
                trim_text(text);
            }
        }
        let mut kept: Vec<Value> = Vec::with_capacity(items.len());
        let mut seen = std::collections::HashSet::new();
        for item in items.drain(..) {
            let is_new = match &item {
                Value::String(text) => !text.is_empty() && seen.insert(text.clone()),
                // The reader refuses an item that is not a text.
                _ => true,
            };
            if is_new {
                kept.push(item);
            }
        }
        *items = kept;
    }
}

fn trim_text(text: &mut String) {
    let trimmed = text.trim();
    if trimmed.len() != text.len() {
        *text = trimmed.to_owned();
    }
}

/// Checks each structured artifact, and adds the members that have a default.
fn structured_artifacts(task: &mut Map<String, Value>, issues: &mut Issues) {
    let Some(Value::Array(rows)) = task.get_mut("structured_artifacts") else {
        return;
    };
    for (index, row) in rows.iter_mut().enumerate() {
        let at = format!("structured_artifacts[{index}]");
        match row {
            Value::Object(row) => structured_artifact(&at, row, issues),
            _ => issues.refuse(ErrorCode::InputInvalid, &at, "an object"),
        }
    }
}

fn structured_artifact(at: &str, row: &mut Map<String, Value>, issues: &mut Issues) {
    let mut refuse = |name: &str, rule: &str| {
        issues.refuse(ErrorCode::InputInvalid, &format!("{at}.{name}"), rule);
    };
    let schema = row.entry("schema").or_insert(STRUCTURED_ARTIFACT.into());
    if *schema != STRUCTURED_ARTIFACT {
        refuse("schema", STRUCTURED_ARTIFACT);
    }
    for name in ["name", "type"] {
        match row.get_mut(name) {
            Some(Value::String(text)) if !text.trim().is_empty() => trim_text(text),
            _ => refuse(name, "a text that is not blank"),
        }
    }
    if !row.contains_key("payload") {
        refuse("payload", "given; it may have any type");
    }
    let payload_schema = row.get("payload_schema");
    if payload_schema.is_some_and(|schema| !schema.is_string() && !schema.is_object()) {
        refuse("payload_schema", "the id of a schema, or a schema");
    }
    for name in ["metadata", "provenance"] {
        let members = row.entry(name).or_insert_with(|| json!({}));
        if empty(members) {
            *members = json!({});
        }
        match members {
            Value::Object(members) if name == "provenance" => {
                members.entry("direction").or_insert("input".into());
            }
            Value::Object(_) => {}
            _ => refuse(name, "an object"),
        }
    }
    let names = [
        "schema",
        "name",
        "type",
        "payload",
        "payload_schema",
        "metadata",
        "provenance",
    ];
    known(at, row, &names, issues);
}

#[cfg(test)]
mod tests;
