//! The task: a goal, what it is about, and files put into the guest. Never code.

use super::rows::absolute_rule;
use crate::fields::Fields;
use crate::ini::is_absolute;
use serde_json::{Map, Value};
use wp_codebox_contracts::{ErrorBody, ErrorCode, StagedFile, TaskInput, schema_id};
use wp_codebox_policy as policy;

/// Longest goal, bytes. The task is one document for an agent, not a data channel.
const MAX_GOAL_BYTES: usize = 64 * 1024;
const RAW_CODE: [&str; 2] = ["code", "code_file"];
const TASK_FIELDS: &[&str] = &[
    "schema",
    "version",
    "goal",
    "target",
    "allowed_tools",
    "expected_artifacts",
    "structured_artifacts",
    "staged_files",
    "context",
];

pub(super) fn refuse_raw_code(map: &Map<String, Value>, place: &str) -> Result<(), ErrorBody> {
    match RAW_CODE.iter().find(|name| map.contains_key(**name)) {
        None => Ok(()),
        Some(name) => Err(ErrorBody::new(
            ErrorCode::RawCodeForbidden,
            format!(
                "{place}{name} is not accepted: a task carries a goal, never code; mount the code and describe the goal"
            ),
        )
        .with("field", format!("{place}{name}"))),
    }
}

pub(super) fn task(fields: &mut Fields) -> Result<TaskInput, ErrorBody> {
    let goal = fields.text("goal")?;
    let given = fields.object("task_input")?.unwrap_or_default();
    refuse_raw_code(&given, "task_input.")?;
    let mut inner = Fields::new(given, "task_input", TASK_FIELDS, ErrorCode::InputInvalid)?;
    let goal = match (goal, inner.text("goal")?) {
        (Some(outer), Some(inner_goal)) if outer != inner_goal => {
            return Err(fields.refuse("goal", "the same as task_input.goal, or left out"));
        }
        (Some(goal), _) | (None, Some(goal)) => goal,
        (None, None) => String::new(),
    };
    if goal.trim().is_empty() {
        return Err(ErrorBody::new(
            ErrorCode::TaskMissing,
            "no goal was given; say in `goal` what the agent shall do",
        ));
    }
    if goal.len() > MAX_GOAL_BYTES {
        return Err(fields.refuse("goal", &format!("at most {MAX_GOAL_BYTES} bytes long")));
    }
    let schema = inner.text("schema")?;
    if schema.is_some_and(|schema| schema != schema_id::TASK_INPUT) {
        return Err(inner.refuse("schema", schema_id::TASK_INPUT));
    }
    if inner.count("version")?.is_some_and(|version| version != 1) {
        return Err(inner.refuse("version", "1"));
    }
    let mut task = TaskInput::new(goal);
    task.target = inner.object("target")?.unwrap_or_default();
    task.allowed_tools = inner.texts("allowed_tools")?;
    task.expected_artifacts = inner.texts("expected_artifacts")?;
    task.structured_artifacts = inner.list("structured_artifacts")?.unwrap_or_default();
    task.context = inner.object("context")?.unwrap_or_default();
    task.staged_files = staged_files(&mut inner)?;
    Ok(task)
}

pub(super) fn staged_files(fields: &mut Fields) -> Result<Vec<StagedFile>, ErrorBody> {
    let rows = fields.rows(
        "staged_files",
        &["source", "target"],
        ErrorCode::MountInvalid,
    )?;
    let mut files = Vec::with_capacity(rows.len());
    for mut row in rows {
        let source = row.required_text("source")?;
        if !is_absolute(&source) {
            return Err(row.refuse("source", absolute_rule()));
        }
        let target = row.required_text("target")?;
        policy::check_staged_target(&target).map_err(|e| e.body())?;
        files.push(StagedFile { source, target });
    }
    Ok(files)
}
