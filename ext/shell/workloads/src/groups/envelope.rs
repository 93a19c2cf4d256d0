//! Result document of a task, `agent-task-run/v1`, and its row in a group. The crate `contracts`
//! builds both, also for the WordPress abilities.

use serde_json::{Map, Value, json};
use wp_codebox_contracts::{
    AgentTaskFacts, ErrorBody, RunRequest, RunResult, agent_task_row, agent_task_run,
};
use wp_codebox_policy::GroupStatus;

/// Data that is only copied to the result document, and not stored with the run.
pub struct Echo<'a> {
    /// Input of the task, which may contain the caller's own ids.
    pub input: &'a Map<String, Value>,
    /// WordPress version of the guest.
    pub wordpress: &'a str,
    /// The preview that the run had; empty without one.
    pub preview: &'a Map<String, Value>,
}

/// Builds the result document of a task.
pub fn build(
    request: &RunRequest,
    result: &RunResult,
    echo: &Echo<'_>,
) -> Result<Map<String, Value>, ErrorBody> {
    let task = request.task.as_ref();
    let task = task.map(wp_codebox_supervisor::task_document);
    let model = request.model.as_ref();
    let model = model.map(|model| json!({"provider": model.provider, "model": model.model}));
    let facts = AgentTaskFacts {
        input: echo.input,
        task: &object(task),
        result: &object(Some(json!(result))),
        model: &object(model),
        preview: echo.preview,
        wordpress: echo.wordpress,
    };
    agent_task_run(&facts).map_err(ErrorBody::from)
}

fn object(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

/// Builds the row of a task in a group from its result document.
pub(super) fn row(result: &RunResult, document: &Map<String, Value>) -> Map<String, Value> {
    let status = GroupStatus::of_outcome(result.outcome);
    let mut row = Map::from_iter([
        (
            "success".to_owned(),
            (status == GroupStatus::Completed).into(),
        ),
        ("status".to_owned(), status.as_str().into()),
    ]);
    row.extend(agent_task_row(document));
    row
}
