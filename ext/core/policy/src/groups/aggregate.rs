//! Aggregates the results of a fan-out's workers. Their changes are not merged. Two workers that
//! changed the same file, and a required worker that did not complete, are conflicts of severity
//! `error`. With such a conflict, the conflict policy of the plan sets the status of the fan-out.

use super::plan::{FanoutPlan, FanoutWorker};
use super::rows::{GroupStatus, row_outcome, row_status};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use wp_codebox_contracts::{ChangedFile, schema_id};

/// Maximum number of file conflicts in the result; further ones are only counted.
const LISTED: usize = 200;

/// Files that a worker changed: maps the host path of each to its path in the worker's bundle.
pub type TouchedFiles = BTreeMap<String, String>;

/// Result of a worker that has ended, or that will never start.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WorkerResult {
    /// Status in the worker's result row.
    pub status: GroupStatus,
    /// Id of the worker's run, if one started.
    pub run_id: Option<String>,
    /// Id and directory of the bundle that the worker's run wrote, if there is one.
    pub bundle: Option<(String, String)>,
    /// Outcome of the worker's run, if it has one.
    pub outcome: Option<String>,
    /// Outcome of the worker's run as a sentence.
    pub summary: Option<String>,
    /// Member `error` of the worker's result row.
    pub error: Option<Value>,
    /// Ids of the dependencies that did not complete and because of which the worker did not start.
    pub lost: Vec<String>,
    /// Files that the worker changed; empty unless it completed.
    pub touched: TouchedFiles,
}

impl WorkerResult {
    /// Reads the result of a worker from its result row.
    pub(super) fn of_row(row: &Map<String, Value>, touched: TouchedFiles) -> Self {
        let text = |key: &str| row.get(key).and_then(Value::as_str).map(str::to_owned);
        let status = row_status(row);
        let path = row.get("artifacts").and_then(|a| a["path"].as_str());
        let lost = row.get("dependencies").and_then(Value::as_array);
        let lost = lost.into_iter().flatten();
        Self {
            status,
            run_id: text("run_id"),
            bundle: text("artifact_id").zip(path.map(str::to_owned)),
            outcome: row_outcome(row).map(str::to_owned),
            summary: text("summary"),
            error: row.get("error").filter(|error| !error.is_null()).cloned(),
            lost: lost.filter_map(Value::as_str).map(str::to_owned).collect(),
            touched: if status == GroupStatus::Completed {
                touched
            } else {
                TouchedFiles::new()
            },
        }
    }
}

/// Maps the paths that a run changed to host files, because two workers may mount one file under
/// two paths, or two files under one path. `source` returns the host directory of a mount target.
#[must_use]
pub fn touched_files(
    changed: &[ChangedFile],
    source: impl Fn(&str) -> Option<String>,
) -> TouchedFiles {
    let mut touched = TouchedFiles::new();
    for entry in changed {
        let target = entry.mount_target.as_str();
        let root = source(target).unwrap_or_else(|| target.to_owned());
        let names = std::iter::once(&entry.relative_path).chain(entry.renamed_from.as_ref());
        for name in names {
            touched.insert(format!("{root}/{name}"), entry.path.clone());
        }
    }
    touched
}

/// Computes `agent-fanout-aggregation-output/v1`. `ends` contains the result of every worker of
/// the plan, `id` is the id of the fan-out.
#[must_use]
pub(super) fn aggregate_fanout(
    plan: &FanoutPlan,
    ends: &BTreeMap<String, WorkerResult>,
    id: &str,
) -> Value {
    let mut results = Vec::new();
    let mut references = Vec::new();
    let mut conflicts = Vec::new();
    for worker in &plan.workers {
        let Some(end) = ends.get(&worker.id) else {
            continue;
        };
        let own = bundle_reference(&worker.id, end);
        results.push(result(worker, end, &own));
        if end.status != GroupStatus::Completed {
            conflicts.extend(failures(worker, end, &own));
        }
        references.extend(own.map(|reference| (worker.id.clone(), reference)));
    }
    let (duplicates, clashing, more) = duplicates(plan, ends);
    conflicts.extend(duplicates);
    let broken = conflicts.iter().any(|c| c["severity"] == "error");
    let status = if broken {
        plan.policy.status()
    } else {
        "succeeded"
    };
    let usable = matches!(status, "succeeded" | "partial");
    let good = |id: &String| {
        usable
            && !clashing.contains(id)
            && ends
                .get(id)
                .is_some_and(|end| end.status == GroupStatus::Completed)
    };
    let finals: Vec<&Value> = references
        .iter()
        .filter(|(id, _)| good(id))
        .map(|(_, reference)| reference)
        .collect();
    let raw: Vec<&Value> = references.iter().map(|(_, reference)| reference).collect();
    let mut output = json!({
        "schema": schema_id::AGENT_FANOUT_AGGREGATION_OUTPUT,
        "status": status,
        "policy": plan.policy.as_str(),
        "plan": plan.shown(id),
        "workerResultRefs": results,
        "rawWorkerArtifactRefs": raw,
        "finalArtifactRefs": finals,
        "conflicts": conflicts,
    });
    output["metadata"] = json!({"fanout_id": id});
    if more > 0 {
        output["metadata"]["conflicts_not_listed"] = more.into();
    }
    output
}

fn bundle_reference(id: &str, end: &WorkerResult) -> Option<Value> {
    let (bundle, path) = end.bundle.as_ref()?;
    Some(json!({
        "kind": "codebox-artifact-bundle", "id": bundle, "path": path, "workerId": id,
        "runId": end.run_id,
    }))
}

fn result(worker: &FanoutWorker, end: &WorkerResult, own: &Option<Value>) -> Value {
    let mut row = Map::from_iter([
        ("workerId".to_owned(), json!(worker.id)),
        ("status".to_owned(), json!(end.status)),
        (
            "success".to_owned(),
            json!(end.status == GroupStatus::Completed),
        ),
        ("required".to_owned(), json!(worker.required)),
        ("artifactRefs".to_owned(), own.iter().cloned().collect()),
    ]);
    if let Some(run) = &end.run_id {
        row.insert("resultRef".to_owned(), json!(run));
    }
    if let Some(error) = &end.error {
        row.insert("error".to_owned(), error.clone());
    }
    Value::Object(row)
}

/// Returns the conflicts of a worker that did not complete its task. If dependencies prevented its
/// start, there is one conflict for each of them; otherwise there is one for the worker itself.
fn failures(worker: &FanoutWorker, end: &WorkerResult, own: &Option<Value>) -> Vec<Value> {
    let partial = end.outcome.as_deref() == Some("partial");
    let code = end.error.as_ref().and_then(|error| error["code"].as_str());
    let why = end.outcome.as_deref().or(code);
    let conflict = json!({
        "type": if partial { "partial-output" } else { "failed-worker" },
        "severity": if worker.required { "error" } else { "warning" },
        "message": format!("Worker \"{}\" was not completed: {}.", worker.id, why.unwrap_or(end.status.as_str())),
        "workerIds": [worker.id],
        "artifactRefs": own.iter().collect::<Vec<_>>(),
    });
    if end.lost.is_empty() {
        return vec![conflict];
    }
    let skipped = end.lost.iter().map(|dependency| {
        let mut row = conflict.clone();
        row["type"] = json!("failed-worker-dependency");
        row["message"] = json!(format!(
            "Worker \"{}\" was skipped: \"{dependency}\" was not completed.",
            worker.id
        ));
        row["dependencyId"] = json!(dependency);
        row
    });
    skipped.collect()
}

/// Finds files that more than one completed worker changed. Returns a conflict for each of the
/// first [`LISTED`] files, the ids of all workers that changed such a file, and the number of
/// further files.
fn duplicates(
    plan: &FanoutPlan,
    ends: &BTreeMap<String, WorkerResult>,
) -> (Vec<Value>, BTreeSet<String>, usize) {
    let mut files: BTreeMap<&str, (Vec<&str>, &str)> = BTreeMap::new();
    for worker in &plan.workers {
        let Some(end) = ends.get(&worker.id) else {
            continue;
        };
        for (file, path) in &end.touched {
            let entry = files.entry(file).or_insert_with(|| (Vec::new(), path));
            entry.0.push(&worker.id);
        }
    }
    files.retain(|_, (ids, _)| ids.len() > 1);
    let clashing = files.values().flat_map(|(ids, _)| ids);
    let clashing = clashing.map(|id| (*id).to_owned()).collect();
    let conflicts: Vec<Value> = files
        .values()
        .take(LISTED)
        .map(|(ids, path)| {
            let references = ids
                .iter()
                .filter_map(|id| bundle_reference(id, ends.get(*id)?));
            json!({
                "type": "duplicate-final-artifact-path",
                "severity": "error",
                "message": format!("Workers {} changed the same file.", ids.join(", ")),
                "workerIds": ids,
                "path": path,
                "artifactRefs": references.collect::<Vec<_>>(),
            })
        })
        .collect();
    let more = files.len() - conflicts.len();
    (conflicts, clashing, more)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(policy: &str) -> FanoutPlan {
        let input = json!({"aggregator": {"policy": policy}, "workers": [
            {"id": "a", "goal": "g"}, {"id": "b", "goal": "g"},
            {"id": "c", "goal": "g", "required": false}, {"id": "d", "goal": "g", "dependsOn": ["c"]}]});
        FanoutPlan::read(input.as_object().unwrap(), 8).unwrap()
    }

    fn end(id: &str, status: GroupStatus, files: &[&str]) -> (String, WorkerResult) {
        let touched = files
            .iter()
            .map(|file| ((*file).to_owned(), format!("/workspace/{file}")))
            .collect();
        let end = WorkerResult {
            status,
            run_id: Some(format!("run-{id}")),
            bundle: Some((format!("bundle-{id}"), format!("/b/{id}"))),
            outcome: Some("succeeded".to_owned()),
            summary: None,
            error: None,
            lost: Vec::new(),
            touched,
        };
        (id.to_owned(), end)
    }

    #[test]
    fn fanout_with_all_workers_completed_succeeds_and_lists_every_bundle() {
        let ends =
            BTreeMap::from(["a", "b", "c", "d"].map(|id| end(id, GroupStatus::Completed, &[id])));
        let output = aggregate_fanout(&plan("fail"), &ends, "f");
        assert_eq!(output["status"], "succeeded");
        assert_eq!(output["conflicts"], json!([]));
        assert_eq!(output["finalArtifactRefs"].as_array().unwrap().len(), 4);
        assert_eq!(output["finalArtifactRefs"][0]["id"], "bundle-a");
        assert_eq!(output["metadata"], json!({"fanout_id": "f"}));
    }

    #[test]
    fn file_changed_by_two_workers_is_a_conflict_and_the_conflict_policy_decides_the_status() {
        for (policy, status, left) in [
            ("fail", "failed", 0),
            ("partial", "partial", 2),
            ("repair", "repair_required", 0),
        ] {
            let mut ends = BTreeMap::from(
                ["a", "b", "c", "d"].map(|id| end(id, GroupStatus::Completed, &[id])),
            );
            ends.extend([end("b", GroupStatus::Completed, &["b", "a"])]);
            let output = aggregate_fanout(&plan(policy), &ends, "f");
            assert_eq!(output["status"], status);
            assert_eq!(output["conflicts"][0]["workerIds"], json!(["a", "b"]));
            assert_eq!(
                output["finalArtifactRefs"].as_array().unwrap().len(),
                left,
                "{policy}"
            );
        }
    }

    #[test]
    fn failed_optional_worker_is_a_warning_unless_a_required_worker_is_skipped_because_of_it() {
        let mut ends = BTreeMap::from(["a", "b"].map(|id| end(id, GroupStatus::Completed, &[id])));
        let (id, mut lost) = end("c", GroupStatus::Failed, &[]);
        lost.outcome = Some("failed".to_owned());
        ends.insert(id, lost);
        ends.extend([end("d", GroupStatus::Completed, &["d"])]);
        let output = aggregate_fanout(&plan("fail"), &ends, "f");
        assert_eq!(
            (
                output["status"].as_str(),
                output["conflicts"][0]["severity"].as_str()
            ),
            (Some("succeeded"), Some("warning"))
        );
        let (id, mut skipped) = end("d", GroupStatus::Skipped, &[]);
        (skipped.outcome, skipped.run_id, skipped.bundle) = (None, None, None);
        skipped.lost = vec!["c".to_owned()];
        ends.insert(id, skipped);
        let output = aggregate_fanout(&plan("fail"), &ends, "f");
        assert_eq!(output["status"], "failed");
        let conflict = &output["conflicts"][1];
        assert_eq!(
            (conflict["type"].as_str(), conflict["dependencyId"].as_str()),
            (Some("failed-worker-dependency"), Some("c"))
        );
    }
}
