//! Row of an ended task in the result of a batch or fan-out.

use serde_json::{Map, Value};

/// Members of `agent-task-run/v1` that a row contains under the same name.
const MEMBERS: &[&str] = &[
    "exit_code",
    "summary",
    "session",
    "task_input",
    "changed_files",
    "approvable",
    "artifact_id",
    "artifact_result",
    "outputs",
    "agent_task_run_result",
    "agent_result",
    "agent_task_result",
    "completion_outcome",
    "outcome",
    "evidence_refs",
    "cost",
    "run",
    "error",
];

/// Returns the members of a task's row that describe its run, from its `agent-task-run/v1`. The
/// batch or fan-out adds the status of the row.
#[must_use]
pub fn agent_task_row(document: &Map<String, Value>) -> Map<String, Value> {
    let mut row = Map::new();
    let run_id = document.get("run").and_then(|run| run.get("run_id"));
    if let Some(run_id) = run_id {
        row.insert("run_id".to_owned(), run_id.clone());
    }
    for name in MEMBERS {
        if let Some(value) = document.get(*name) {
            row.insert((*name).to_owned(), value.clone());
        }
    }
    let directory = document.get("artifacts").and_then(Value::as_str);
    if let Some(directory) = directory.filter(|path| !path.is_empty()) {
        let artifacts = Map::from_iter([("path".to_owned(), directory.into())]);
        row.insert("artifacts".to_owned(), Value::Object(artifacts));
    }
    let preview = document.get("preview");
    if let Some(url) = preview.and_then(|preview| preview.get("url")) {
        row.insert("preview_url".to_owned(), url.clone());
    }
    row
}
