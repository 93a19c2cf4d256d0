//! Files of a fan-out below the directory of `--artifacts`:
//!
//! ```text
//! fanout/plan.json                     agent-fanout-plan/v1
//! fanout/events.jsonl                  agent-fanout-event/v1, one event a line
//! fanout/result.json                   agent-fanout-result/v1
//! fanout/workers/<id>/result.json      row of the worker
//! fanout/workers/<id>/artifacts/<run>  its bundle
//! fanout/aggregate/result.json         agent-fanout-aggregation-output/v1
//! aggregate/final/result.json          the same
//! ```
//!
//! The files are written after the last worker has ended. An id of a worker is a safe file name:
//! it begins with a letter or digit and has no separator.

use super::spool::{Spool, replace};
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{ErrorBody, ErrorCode, schema_id};

/// Returns the directory of a worker, relative to that of `--artifacts`.
pub(super) fn worker(id: &str) -> PathBuf {
    Path::new("fanout/workers").join(id)
}

/// Writes the files, and adds their paths to `artifacts` and `session.artifacts` of the result.
/// `ids` are the workers in the order of their rows.
pub(super) fn write(
    root: &Path,
    answer: &mut Map<String, Value>,
    ids: &[&str],
    rows: &mut Spool,
) -> io::Result<()> {
    let root = std::path::absolute(root)?;
    let fanout = root.join("fanout");
    let names = json!({
        "schema": schema_id::AGENT_FANOUT_ARTIFACTS,
        "path": fanout,
        "plan": fanout.join("plan.json"),
        "events": fanout.join("events.jsonl"),
        "result": fanout.join("result.json"),
        "aggregate": fanout.join("aggregate/result.json"),
    });
    if let Some(Value::Object(session)) = answer.get_mut("session") {
        session.insert("artifacts".to_owned(), names.clone());
    }
    answer.insert("artifacts".to_owned(), names);
    put(&fanout.join("plan.json"), |out| {
        document(out, &answer["plan"])
    })?;
    put(&fanout.join("events.jsonl"), |out| {
        for event in answer["events"].as_array().into_iter().flatten() {
            serde_json::to_writer(&mut *out, event)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    })?;
    for (at, id) in ids.iter().enumerate() {
        let path = root.join(worker(id)).join("result.json");
        put(&path, |out| rows.row(at, out))?;
    }
    for directory in [fanout.join("aggregate"), root.join("aggregate/final")] {
        let path = directory.join("result.json");
        put(&path, |out| document(out, &answer["aggregate"]))?;
    }
    let path = fanout.join("result.json");
    put(&path, |out| rows.document(answer, out))
}

fn document(out: &mut dyn Write, value: &Value) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    out.write_all(b"\n")
}

fn put(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    replace(path, write)
}

/// Puts the error of [`write`] into the result, in place of the paths of the written files.
pub(super) fn note_failure(answer: &mut Map<String, Value>, root: &Path, e: &io::Error) {
    let message = format!(
        "the files of the fan-out cannot be written to {}: {e}",
        root.display()
    );
    let error = ErrorBody::new(ErrorCode::BundleWriteFailed, message)
        .hint("choose an artifacts directory that this user may write (--artifacts)");
    let row = json!({"schema": schema_id::AGENT_FANOUT_ARTIFACTS, "error": error});
    if let Some(Value::Object(session)) = answer.get_mut("session") {
        session.shift_remove("artifacts");
    }
    answer.insert("artifacts".to_owned(), row);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Map<String, Value> {
        let value = json!({"session": {"id": "f"}, "plan": {"workers": []},
            "events": [{"event": "fanout.started"}, {"event": "fanout.completed"}],
            "aggregate": {"status": "succeeded"}});
        value.as_object().unwrap().clone()
    }

    fn spool() -> Spool {
        let mut rows = Spool::new(2).unwrap();
        for (at, id) in ["a", "b"].into_iter().enumerate() {
            let row = json!({"worker_id": id});
            rows.put(at, row.as_object().unwrap()).unwrap();
        }
        rows
    }

    #[test]
    fn files_of_a_fanout_exist_at_the_paths_in_its_result() {
        let temp = tempfile::tempdir().unwrap();
        let mut answer = answer();
        write(temp.path(), &mut answer, &["a", "b"], &mut spool()).unwrap();
        let read = |path: &str| std::fs::read_to_string(path).unwrap();
        let json = |path: &str| serde_json::from_str::<Value>(&read(path)).unwrap();
        let named = |name: &str| answer["artifacts"][name].as_str().unwrap();
        assert_eq!(json(named("plan")), json!({"workers": []}));
        assert_eq!(read(named("events")).lines().count(), 2);
        assert_eq!(json(named("aggregate"))["status"], "succeeded");
        let result = json(named("result"));
        assert_eq!(result["artifacts"]["plan"], named("plan"));
        assert_eq!(result["runs"][1]["worker_id"], "b");
        assert_eq!(answer["session"]["artifacts"], answer["artifacts"]);
        let below = |name: &str| json(temp.path().join(name).to_str().unwrap());
        assert_eq!(
            below("fanout/workers/b/result.json"),
            json!({"worker_id": "b"})
        );
        assert_eq!(
            below("aggregate/final/result.json"),
            json!({"status": "succeeded"})
        );
    }

    #[test]
    fn result_contains_the_error_instead_of_paths_if_files_cannot_be_written() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("file");
        std::fs::write(&root, "").unwrap();
        let mut answer = answer();
        let error = write(&root, &mut answer, &["a", "b"], &mut spool()).unwrap_err();
        note_failure(&mut answer, &root, &error);
        assert_eq!(
            answer["artifacts"]["error"]["code"],
            "wp_codebox_bundle_write_failed"
        );
        assert!(answer["session"].get("artifacts").is_none());
    }
}
