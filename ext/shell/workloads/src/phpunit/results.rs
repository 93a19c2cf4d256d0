//! The results of one or more sandboxes as one `wp-codebox/test-results/v1`.

use serde_json::{Map, Value, json};
use wp_codebox_contracts::{ErrorBody, ErrorCode, RunId, RunResult, schema_id};

/// Command that runs the tests in a sandbox.
pub const COMMAND: &str = "wordpress.phpunit";
/// Counts of a summary.
const COUNTS: [&str; 5] = ["total", "passed", "failed", "skipped", "unknown"];

/// Result of one sandbox, which runs one part of the tests.
#[derive(Debug)]
pub struct Shard {
    /// Document of the command, if it printed one.
    pub document: Option<Value>,
    /// Error of the run; `None` if it succeeded or if only tests failed and PHPUnit ended normally.
    pub error: Option<ErrorBody>,
    run_id: Option<RunId>,
    bundle: Option<String>,
    cpu_ms: u64,
    wall_ms: u64,
}

impl Shard {
    /// Reads the document of the tests from the result of a run.
    pub fn of(result: Result<RunResult, ErrorBody>) -> Self {
        let result = match result {
            Ok(result) => result,
            Err(error) => {
                return Self {
                    document: None,
                    error: Some(error),
                    run_id: None,
                    bundle: None,
                    cpu_ms: 0,
                    wall_ms: 0,
                };
            }
        };
        let document = document(&result);
        let counted = document.as_ref().is_some_and(|document| {
            let failed = document["summary"]["failed"].as_u64() > Some(0);
            failed && document["complete"] != false || document["status"] == "passed"
        });
        Self {
            error: result.error.filter(|_| !counted),
            document,
            run_id: Some(result.run_id),
            bundle: result.artifacts.map(|bundle| bundle.bundle_id),
            cpu_ms: result.cost.cpu_ms,
            wall_ms: result.cost.wall_ms,
        }
    }

    fn row(&self, index: usize) -> Value {
        let mut row = json!({
            "index": index + 1,
            "runId": self.run_id,
            "wallMs": self.wall_ms,
            "cpuMs": self.cpu_ms,
            "summary": self.document.as_ref().map(|d| d["summary"].clone()),
        });
        if let Some(bundle) = &self.bundle {
            row["bundleId"] = json!(bundle);
        }
        if let Some(error) = &self.error {
            row["error"] = json!(error);
        }
        row
    }
}

/// Returns the document of the last execution of the tests.
fn document(result: &RunResult) -> Option<Value> {
    let executions = result.transcript["executions"].as_array()?;
    let found = executions
        .iter()
        .rev()
        .find(|row| row["command"] == COMMAND)?;
    let document: Value = serde_json::from_str(found["stdout"].as_str()?).ok()?;
    (document["schema"] == schema_id::TEST_RESULTS).then_some(document)
}

/// Merges the results of all shards. The document has the sums of their counts, and the suites and
/// failures of all shards, in the order of the shards.
pub fn merged(shards: &[Shard], duration_ms: u64) -> Value {
    let documents = || shards.iter().filter_map(|shard| shard.document.as_ref());
    let summary: Map<String, Value> = COUNTS
        .iter()
        .map(|name| {
            let counts = documents().filter_map(|d| d["summary"][name].as_u64());
            ((*name).to_owned(), json!(counts.sum::<u64>()))
        })
        .collect();
    let rows = |name: &str| -> Vec<Value> {
        documents()
            .filter_map(|d| d[name].as_array())
            .flatten()
            .cloned()
            .collect()
    };
    let passed = shards.iter().all(|shard| {
        shard.error.is_none()
            && shard
                .document
                .as_ref()
                .is_some_and(|d| d["status"] == "passed")
    });
    let assertions: u64 = documents().filter_map(|d| d["assertions"].as_u64()).sum();
    let mut all = json!({
        "schema": schema_id::TEST_RESULTS,
        "command": COMMAND,
        "status": if passed && summary["total"] != 0 { "passed" } else { "failed" },
        "summary": summary,
        "assertions": assertions,
        "suites": rows("suites"),
        "failures": rows("failures"),
        "truncated": documents().any(|d| d["truncated"] == true),
        "durationMs": duration_ms,
        "cpuMs": shards.iter().map(|shard| shard.cpu_ms).sum::<u64>(),
        "shards": shards.iter().enumerate().map(|(i, shard)| shard.row(i)).collect::<Vec<_>>(),
    });
    if let Some(runner) = documents().next().map(|d| d["runner"].clone()) {
        all["runner"] = runner;
    }
    if let Some(error) = failure(shards, &all) {
        all["error"] = json!(error);
    }
    all
}

/// Returns the error of the whole command: that of the first sandbox whose run failed, else that
/// tests failed or none ran; `None` if all tests passed.
pub fn failure(shards: &[Shard], merged: &Value) -> Option<ErrorBody> {
    if let Some(error) = shards.iter().find_map(|shard| shard.error.clone()) {
        return Some(error);
    }
    if merged["status"] == "passed" {
        return None;
    }
    let count = |name: &str| merged["summary"][name].as_u64().unwrap_or_default();
    let message = match (count("failed"), count("total")) {
        (_, 0) => "no tests ran: the files or groups select no test".to_owned(),
        (failed, total) => format!("{failed} of {total} tests failed"),
    };
    Some(ErrorBody::new(ErrorCode::CommandFailed, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(document: Value) -> Shard {
        Shard {
            document: Some(document),
            error: None,
            run_id: None,
            bundle: None,
            cpu_ms: 7,
            wall_ms: 9,
        }
    }

    fn counts(passed: u64, failed: u64) -> Value {
        json!({"total": passed + failed, "passed": passed, "failed": failed, "skipped": 0, "unknown": 0})
    }

    #[test]
    fn results_of_all_shards_are_added_up_and_one_failed_shard_fails_the_whole_run() {
        let good = || {
            shard(
                json!({"status": "passed", "summary": counts(2, 0), "suites": [{"name": "A"}], "assertions": 3}),
            )
        };
        let bad = shard(json!({
            "status": "failed", "summary": counts(1, 1), "suites": [{"name": "B"}],
            "failures": [{"test": "b"}], "assertions": 2,
        }));
        let all = merged(&[good(), bad], 40);
        assert_eq!(
            (&all["summary"], &all["status"]),
            (&counts(3, 1), &json!("failed"))
        );
        assert_eq!((&all["assertions"], &all["cpuMs"]), (&json!(5), &json!(14)));
        assert_eq!(all["suites"], json!([{"name": "A"}, {"name": "B"}]));
        assert_eq!(all["error"]["message"], "1 of 4 tests failed");
        let all = merged(&[good(), good()], 1);
        assert_eq!((&all["status"], all.get("error")), (&json!("passed"), None));
        // A shard without tests passes only if another shard has tests.
        let empty = || shard(json!({"status": "passed", "summary": counts(0, 0)}));
        assert_eq!(merged(&[good(), empty()], 1)["status"], "passed");
        assert_eq!(
            merged(&[empty()], 1)["error"]["message"],
            "no tests ran: the files or groups select no test"
        );
    }

    #[test]
    fn shard_without_results_fails_the_whole_run_with_its_own_error() {
        let error = ErrorBody::new(ErrorCode::RunFailed, "the sandbox was lost");
        let lost = Shard::of(Err(error.clone()));
        let good = shard(json!({"status": "passed", "summary": counts(2, 0)}));
        let all = merged(&[good, lost], 1);
        assert_eq!(
            (&all["status"], &all["error"]),
            (&json!("failed"), &json!(error))
        );
    }
}
