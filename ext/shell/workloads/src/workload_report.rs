//! Result of a workload: `wp-codebox/wordpress-workload-run-result/v1`.

use serde_json::{Map, Value, json};
use wp_codebox_contracts::{ErrorBody, ErrorCode, Outcome, RunResult};
use wp_codebox_recipe::{Issue, IssueCode, Step, WORKLOAD_RESULT, Workload};

/// Prefix of the codes of issues about features that this backend does not have.
const UNSUPPORTED: &str = "unsupported-";

/// Status of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Completed,
    Failed,
    Skipped,
    Unsupported,
}

impl Status {
    fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Unsupported => "unsupported",
        }
    }

    fn is_success(self) -> bool {
        matches!(self, Self::Completed | Self::Skipped)
    }
}

/// Data of the result document, and the exit status.
#[derive(Debug)]
pub struct WorkloadReport {
    status: Status,
    request: Value,
    steps: Vec<Value>,
    artifacts: Vec<Value>,
    diagnostics: Vec<Value>,
    run: Option<Value>,
    error: Option<ErrorBody>,
    exit_status: u8,
}

impl WorkloadReport {
    fn new(status: Status, request: Value) -> Self {
        Self {
            status,
            request,
            steps: Vec::new(),
            artifacts: Vec::new(),
            diagnostics: Vec::new(),
            run: None,
            error: None,
            exit_status: 0,
        }
    }

    /// Returns the result for a workload that could not be read, or whose run could not start.
    pub fn refused(request: Value, error: ErrorBody) -> Self {
        Self {
            diagnostics: vec![diagnostic(error.code.as_str(), &error.message)],
            exit_status: error.code.exit_status(),
            error: Some(error),
            ..Self::new(Status::Failed, request)
        }
    }

    /// Returns the result for a workload that is not valid, or that needs a feature that this
    /// backend does not have.
    pub fn invalid(request: Value, issues: &[Issue]) -> Self {
        let first = issues.first();
        let first = first.map_or(String::new(), |i| format!("{}: {}", i.path, i.message));
        let more = match issues.len() {
            0 | 1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        let message = format!("the workload is not valid; correct these fields: {first}{more}");
        let error = ErrorBody::new(ErrorCode::RecipeInvalid, message)
            .with("issues", issues.iter().map(issue).collect::<Vec<_>>());
        let unsupported = |issue: &Issue| {
            issue.code == IssueCode::NetworkDownloadsDisabled
                || issue.code.as_str().starts_with(UNSUPPORTED)
        };
        let status = match issues.iter().all(unsupported) {
            true => Status::Unsupported,
            false => Status::Failed,
        };
        Self {
            diagnostics: issues.iter().map(issue).collect(),
            exit_status: error.code.exit_status(),
            error: Some(error),
            ..Self::new(status, request)
        }
    }

    /// Returns the result for a valid workload that is not run.
    pub fn skipped(workload: &Workload) -> Self {
        Self {
            steps: steps(workload, &Map::new()),
            ..Self::new(Status::Skipped, workload.request.clone())
        }
    }

    /// Returns the result for a workload that ran.
    pub fn ran(workload: &Workload, result: &RunResult, bundle: Option<&str>) -> Self {
        let empty = Map::new();
        let evidence = result.workflow.as_ref().and_then(Value::as_object);
        let evidence = evidence.unwrap_or(&empty);
        let status = match result.outcome.is_success() {
            true => Status::Completed,
            false => Status::Failed,
        };
        let mut artifacts = rows(evidence, "declaredArtifacts").to_vec();
        if let Some(written) = &result.artifacts {
            artifacts.push(json!({
                "kind": "artifact-bundle",
                "id": written.bundle_id,
                "directory": bundle.unwrap_or(&written.path),
                "manifestSha256": written.manifest_sha256,
            }));
        }
        let mut diagnostics: Vec<Value> = rows(evidence, "stepFailures")
            .iter()
            .map(|row| failure("error", row))
            .collect();
        let advisory = rows(evidence, "advisoryFailures").iter();
        diagnostics.extend(advisory.map(|row| failure("warning", row)));
        if let (true, Some(error)) = (diagnostics.is_empty(), &result.error) {
            diagnostics.push(diagnostic(error.code.as_str(), &error.message));
        }
        diagnostics.extend(
            result
                .notices
                .iter()
                .map(|text| json!({"severity": "info", "code": "notice", "message": text})),
        );
        Self {
            steps: steps(workload, evidence),
            artifacts,
            diagnostics,
            run: Some(json!({
                "runId": result.run_id,
                "outcome": result.outcome,
                "summary": result.summary,
            })),
            error: match result.outcome.is_success() {
                true => None,
                false => Some(
                    result
                        .error
                        .clone()
                        .unwrap_or_else(|| ended(result.outcome)),
                ),
            },
            exit_status: result.outcome.exit_status(),
            ..Self::new(status, workload.request.clone())
        }
    }

    /// Returns the exit status of a command that ran the workload.
    pub fn exit_status(&self) -> u8 {
        self.exit_status
    }

    /// Builds the result document.
    pub fn document(&self) -> Value {
        let own = |name: &str| {
            let given = self.request.get(name).filter(|value| value.is_object());
            given.cloned().unwrap_or_else(|| json!({}))
        };
        let mut document = json!({
            "success": self.status.is_success(),
            "schema": WORKLOAD_RESULT,
            "status": self.status.as_str(),
            "request": match &self.request {
                Value::Object(_) => self.request.clone(),
                _ => json!({}),
            },
            "steps": self.steps,
            "artifacts": self.artifacts,
            "diagnostics": self.diagnostics,
            "metadata": own("metadata"),
        });
        if let Some(run) = &self.run {
            document["run"] = run.clone();
        }
        if let Some(error) = &self.error {
            document["error"] = json!(error);
        }
        document
    }
}

/// Returns the error of a run that did not succeed and has no error of its own.
fn ended(outcome: Outcome) -> ErrorBody {
    let code = match outcome {
        Outcome::TimedOut => ErrorCode::RunTimeout,
        Outcome::Cancelled => ErrorCode::RunCancelled,
        Outcome::Succeeded
        | Outcome::NoOp
        | Outcome::Partial
        | Outcome::Blocked
        | Outcome::Denied
        | Outcome::Failed => ErrorCode::StepFailed,
    };
    let outcome = outcome.as_str();
    ErrorBody::new(
        code,
        format!("the workload ended with the outcome {outcome}"),
    )
}

fn diagnostic(code: &str, message: &str) -> Value {
    json!({"severity": "error", "code": code, "message": message})
}

fn issue(issue: &Issue) -> Value {
    let code = match issue.code {
        IssueCode::InvalidRecipe => "invalid-workload",
        other => other.as_str(),
    };
    let mut row = diagnostic(code, &issue.message);
    row["path"] = json!(issue.path);
    row
}

fn failure(severity: &str, row: &Value) -> Value {
    json!({
        "severity": severity,
        "code": row["error"]["code"],
        "message": row["error"]["message"],
        "phase": row["phase"],
        "index": row["index"],
        "command": row["command"],
        "classification": row["classification"],
    })
}

fn rows<'e>(evidence: &'e Map<String, Value>, name: &str) -> &'e [Value] {
    let rows = evidence.get(name).and_then(Value::as_array);
    rows.map_or(&[], Vec::as_slice)
}

/// Returns one row per step of the workload, in the order of their phases.
fn steps(workload: &Workload, evidence: &Map<String, Value>) -> Vec<Value> {
    let flow = &workload.recipe.workflow;
    let phases = [
        ("before", &flow.before),
        ("steps", &flow.steps),
        ("after", &flow.after),
    ];
    phases
        .into_iter()
        .flat_map(|(phase, steps)| steps.iter().enumerate().map(move |row| (phase, row)))
        .map(|(phase, (index, step))| row(phase, index, step, evidence))
        .collect()
}

fn row(phase: &str, index: usize, step: &Step, evidence: &Map<String, Value>) -> Value {
    let own = |row: &&Value, phase_name: &str, index_name: &str| {
        row[phase_name] == phase && row[index_name] == index
    };
    // A step with a continuation has several executions; the last one has its result.
    let execution = rows(evidence, "executions")
        .iter()
        .rev()
        .find(|row| own(row, "recipePhase", "recipeStepIndex"));
    let failed = rows(evidence, "stepFailures")
        .iter()
        .chain(rows(evidence, "advisoryFailures"))
        .find(|row| own(row, "phase", "index"));
    let mut shown = json!({
        "phase": phase,
        "index": index,
        "command": step.command,
        "args": step.args,
        "status": match (failed, execution) {
            (Some(failed), _) if failed["classification"] == "timeout" => "timed_out",
            (Some(_), _) => "failed",
            (None, Some(_)) => "completed",
            (None, None) => "skipped",
        },
    });
    for (name, value) in [
        ("allowFailure", step.allow_failure),
        ("advisory", step.advisory),
    ] {
        if let Some(value) = value {
            shown[name] = json!(value);
        }
    }
    for name in [
        "id",
        "exitCode",
        "stdout",
        "stderr",
        "stdoutTruncated",
        "stderrTruncated",
        "startedAt",
        "finishedAt",
        "durationMs",
        "artifactRefs",
        "continuationEvidence",
    ] {
        let value = execution.map_or(&Value::Null, |row| &row[name]);
        if !value.is_null() {
            shown[name] = value.clone();
        }
    }
    let printed = execution.and_then(|row| row["stdout"].as_str());
    if let Some(result @ (Value::Object(_) | Value::Array(_))) =
        printed.and_then(|text| serde_json::from_str(text).ok())
    {
        shown["result"] = result;
    }
    if let Some(failed) = failed {
        shown["error"] = failed["error"].clone();
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_recipe::{WORKLOAD_RUN, workload};

    fn sample() -> Workload {
        let document = json!({"schema": WORKLOAD_RUN, "metadata": {"task": 7},
        "before": [{"command": "wordpress.wp-cli", "args": ["command=option list"]}],
        "steps": [
            {"command": "wordpress.run-php", "args": ["code=1;"]},
            {"command": "wordpress.run-php", "args": ["code=2;"], "allowFailure": true},
        ]});
        workload(document.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn workload_that_is_not_run_lists_its_steps_as_skipped() {
        let told = WorkloadReport::skipped(&sample());
        let document = told.document();
        assert_eq!(told.exit_status(), 0);
        assert_eq!(document["status"], "skipped");
        assert_eq!(document["success"], true);
        assert_eq!(document["metadata"], json!({"task": 7}));
        assert_eq!(document["request"]["schema"], WORKLOAD_RUN);
        let steps = document["steps"].as_array().unwrap();
        assert_eq!(steps.len(), 3);
        assert!(steps.iter().all(|step| step["status"] == "skipped"));
        assert_eq!(steps[2]["allowFailure"], true);
    }

    #[test]
    fn workload_step_has_the_result_of_its_last_execution_or_its_failure() {
        let evidence = json!({
            "executions": [
                {"recipePhase": "steps", "recipeStepIndex": 0, "exitCode": 0, "stdout": "first"},
                {"recipePhase": "steps", "recipeStepIndex": 0, "exitCode": 0, "stdout": "{\"a\":1}"},
                {"recipePhase": "steps", "recipeStepIndex": 1, "exitCode": 3, "stdout": "x"},
            ],
            "stepFailures": [{"phase": "steps", "index": 1, "classification": "error",
                "error": {"code": "wp_codebox_step_failed", "message": "it failed"}}],
        });
        let rows = steps(&sample(), evidence.as_object().unwrap());
        let status: Vec<_> = rows.iter().map(|row| row["status"].clone()).collect();
        assert_eq!(status, ["skipped", "completed", "failed"]);
        assert_eq!(rows[1]["result"], json!({"a": 1}));
        assert_eq!(
            (&rows[2]["exitCode"], &rows[2]["error"]["message"]),
            (&json!(3), &json!("it failed"))
        );
        assert!(rows[2].get("result").is_none());
    }

    #[test]
    fn workload_is_unsupported_only_if_all_its_issues_are_about_unsupported_features() {
        let issue = |code| Issue::new(code, "$.steps[0]", "why");
        let command = issue(IssueCode::UnsupportedCommand);
        let wrong = issue(IssueCode::InvalidRecipe);
        let document =
            WorkloadReport::invalid(json!({}), std::slice::from_ref(&command)).document();
        assert_eq!(document["status"], "unsupported");
        assert_eq!(document["success"], false);
        let told = WorkloadReport::invalid(json!({}), &[command, wrong]);
        let document = told.document();
        assert_eq!(document["status"], "failed");
        assert_eq!(document["diagnostics"][1]["code"], "invalid-workload");
        assert_eq!(told.exit_status(), 1);
    }
}
