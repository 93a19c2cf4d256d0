//! Records what the steps of a recipe did: executions, failures, phases, probes (steps that check a
//! condition) and files.
//!
//! Output arrives redacted; everything else is redacted when the document is written. The document
//! has a maximum size; the bundle's logs contain the complete output.

use crate::journal::recorder::Recorder;
use crate::journal::shown::{self, OUTPUT_BYTES};
use crate::session::Commanded;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};
use wp_codebox_artifacts::ExecutionRecord;
use wp_codebox_contracts::{ErrorBody, OnFailure, WorkflowStep};
use wp_codebox_runtime::now_rfc3339;

/// Name of the phase that contains the probes (steps that check a condition).
pub(super) const PROBE: &str = "probe";
/// Maximum size of a probe's JSON output that the document contains, in bytes; larger output is
/// left out.
const RESULT_BYTES: usize = 64 * 1024;
/// Number of bytes of every output stream that are stored even if earlier streams have used up the
/// limit for all streams together.
const MIN_BYTES: usize = 1024;

/// How a step failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The step exceeded its own time limit.
    Timeout,
    /// Any other failure.
    Error,
}

/// One execution of a step's command. A step can have several.
pub(super) struct Ran<'a> {
    pub step: &'a WorkflowStep,
    pub args: &'a [String],
    pub commanded: &'a Commanded,
    /// Programs that ran in the guest for this execution; empty if the supervisor executed the
    /// command itself.
    pub executions: &'a [ExecutionRecord],
}

/// A step that failed, and why.
pub(super) struct Failure<'a> {
    pub step: &'a WorkflowStep,
    pub kind: Kind,
    pub error: &'a ErrorBody,
    pub started_at: String,
    pub duration: Duration,
    pub continuation: Option<Value>,
}

/// The current phase of the recipe.
#[derive(Debug)]
struct Open {
    name: &'static str,
    began: Instant,
    started_at: String,
    steps: usize,
    error: Option<Value>,
}

/// What was recorded about the recipe so far.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    executions: Vec<Value>,
    failures: Vec<Value>,
    advice: Vec<Value>,
    phases: Vec<Value>,
    probes: Vec<Value>,
    files: Vec<Value>,
    contents: Vec<Value>,
    skipped: usize,
    open: Option<Open>,
    bytes: usize,
}

/// Returns the name under which the document lists a phase of the recipe.
fn phase_name(phase: &str) -> &'static str {
    match phase {
        "mounts" => "mount_plugins",
        "blueprint" => "run_blueprint_steps",
        "activate" => "activate_plugins",
        "setup" => "setup_plugins",
        "health-probe" => "run_health_probes",
        "fixture-database" => "import_fixture_databases",
        "fixture-user" => "create_fixture_users",
        "network" | "seed" => "import_site_seeds",
        "user-session" => "create_user_sessions",
        "agent-bundle" => "import_agent_bundles",
        "distribution-setup" => "run_distribution_setup_artifacts",
        "startup-probe" => "run_distribution_startup_probes",
        PROBE => "run_probes",
        "collect" => "collect_artifacts",
        _ => "run_workloads",
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Evidence {
    /// Records that a step of this phase starts. Ends the current phase and begins this one if they
    /// differ.
    pub(super) fn enter(&mut self, phase: &str) {
        let name = phase_name(phase);
        if self.open.as_ref().is_some_and(|open| open.name == name) {
            return;
        }
        self.leave();
        self.open = Some(Open {
            name,
            began: Instant::now(),
            started_at: now_rfc3339(),
            steps: 0,
            error: None,
        });
    }

    /// Records the end of the current phase.
    pub(super) fn leave(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        let mut row = json!({
            "schema": "wp-codebox/recipe-phase-evidence/v1",
            "name": open.name,
            "status": if open.error.is_some() { "failed" } else { "completed" },
            "startedAt": open.started_at,
            "endedAt": now_rfc3339(),
            "durationMs": millis(open.began.elapsed()),
            "data": {"steps": open.steps},
        });
        if let Some(error) = open.error {
            row["error"] = error;
        }
        self.phases.push(row);
    }

    /// Records a step that was skipped.
    pub(super) fn skip(&mut self, step: &WorkflowStep) {
        self.skipped += 1;
        if step.phase.ends_with(PROBE) {
            self.probes
                .push(json!({"name": step.name, "status": "skipped", "index": step.index}));
        }
    }

    /// Adds the text of an output stream to a row, shortened if the limit for all streams is used
    /// up.
    fn stream(&mut self, row: &mut Map<String, Value>, name: &str, text: (&str, Option<u64>)) {
        let room = OUTPUT_BYTES.saturating_sub(self.bytes).max(MIN_BYTES);
        self.bytes += shown::insert(row, name, text, room);
    }

    /// Records one execution of a step's command, after the execution has ended.
    pub(super) fn ran(&mut self, ran: &Ran<'_>) {
        let (step, ended) = (ran.step, &ran.commanded.step);
        let mut row = Map::new();
        // After a step's command, the supervisor may run commands of its own to read the files that
        // the step left. The last execution is therefore not always that of the step's command.
        let mut records = ran.executions.iter().rev();
        let own = records.find(|record| record.command == step.call.command);
        if let Some(record) = own.or(ran.executions.last()) {
            row.insert("id".to_owned(), json!(record.id));
            row.insert("startedAt".to_owned(), json!(record.started_at));
            row.insert("finishedAt".to_owned(), json!(record.finished_at));
        }
        row.insert("command".to_owned(), json!(step.call.command));
        row.insert("args".to_owned(), json!(ran.args));
        row.insert("exitCode".to_owned(), json!(ended.exit_code()));
        row.insert(
            "durationMs".to_owned(),
            json!(millis(ended.result.duration)),
        );
        self.stream(&mut row, "stdout", (&ended.stdout, ended.cut.stdout));
        self.stream(&mut row, "stderr", (&ended.stderr, ended.cut.stderr));
        if ended.result.output_truncated {
            row.insert("outputTruncated".to_owned(), json!(true));
        }
        row.insert("status".to_owned(), json!(ran.commanded.result.status));
        if let Some(error) = &ran.commanded.result.error {
            let error = json!({"code": error.code, "message": error.message, "data": error.data});
            row.insert("error".to_owned(), error);
        }
        if !ran.commanded.result.artifact_refs.is_empty() {
            let refs = &ran.commanded.result.artifact_refs;
            row.insert("artifactRefs".to_owned(), json!(refs));
        }
        row.insert("recipePhase".to_owned(), json!(step.phase));
        row.insert("recipeStepIndex".to_owned(), json!(step.index));
        if let Some(name) = &step.name {
            row.insert("recipeStepName".to_owned(), json!(name));
        }
        row.insert("recipeCommand".to_owned(), json!(step.call.command));
        if ran.args != step.call.args {
            row.insert("recipeArgs".to_owned(), json!(step.call.args));
        }
        if !step.metadata.is_empty() {
            row.insert("recipeStepMetadata".to_owned(), json!(step.metadata));
        }
        match step.on_failure {
            OnFailure::Stop => {}
            OnFailure::Allow => {
                row.insert("recipeAllowFailure".to_owned(), json!(true));
            }
            OnFailure::Advise => {
                row.insert("recipeAdvisory".to_owned(), json!(true));
            }
        }
        self.executions.push(Value::Object(row));
    }

    /// Adds the document about a step's repetitions to the row of the step's last execution.
    pub(super) fn continued(&mut self, document: &Value) {
        if let Some(row) = self.executions.last_mut() {
            row["continuationEvidence"] = document.clone();
        }
    }

    /// Records a failed step.
    pub(super) fn failed(&mut self, failure: Failure<'_>) {
        let step = failure.step;
        let (schema, list) = match step.on_failure {
            OnFailure::Advise => ("wp-codebox/recipe-advisory-failure/v1", &mut self.advice),
            OnFailure::Stop | OnFailure::Allow => {
                ("wp-codebox/recipe-step-failure/v1", &mut self.failures)
            }
        };
        let mut row = json!({
            "schema": schema,
            "phase": step.phase,
            "index": step.index,
            "command": step.call.command,
            "startedAt": failure.started_at,
            "finishedAt": now_rfc3339(),
            "durationMs": millis(failure.duration),
            "classification": match failure.kind {
                Kind::Timeout => "timeout",
                Kind::Error => "error",
            },
            "error": {
                "code": failure.error.code,
                "message": failure.error.message,
                "data": failure.error.data,
            },
        });
        if step.on_failure == OnFailure::Allow {
            row["allowed"] = json!(true);
        }
        for (name, value) in [
            ("name", step.name.as_ref().map(|name| json!(name))),
            ("timeoutMs", step.timeout_ms.map(|ms| json!(ms))),
            (
                "metadata",
                (!step.metadata.is_empty()).then(|| json!(step.metadata)),
            ),
            ("continuationEvidence", failure.continuation),
        ] {
            if let Some(value) = value {
                row[name] = value;
            }
        }
        if let (Some(open), OnFailure::Stop) = (&mut self.open, step.on_failure) {
            let error = json!({"code": failure.error.code, "message": failure.error.message});
            open.error.get_or_insert(error);
        }
        list.push(row);
    }

    /// Records the end of a step; a probe also gets a row in the list of probes.
    pub(super) fn settled(
        &mut self,
        step: &WorkflowStep,
        error: Option<&ErrorBody>,
        commanded: Option<&Commanded>,
    ) {
        if let Some(open) = &mut self.open {
            open.steps += 1;
        }
        if !step.phase.ends_with(PROBE) {
            return;
        }
        let mut row = json!({
            "name": step.name,
            "phase": step.phase,
            "index": step.index,
            "command": step.call.command,
            "status": if error.is_some() { "failed" } else { "passed" },
        });
        if step.on_failure != OnFailure::Stop {
            row["allowFailure"] = json!(true);
        }
        if let Some(result) = commanded.and_then(|c| c.result.json.as_ref())
            && result.to_string().len() <= RESULT_BYTES
        {
            row["json"] = result.clone();
        }
        if let Some(error) = error {
            row["error"] = json!({"code": error.code, "message": error.message});
        }
        self.probes.push(row);
    }

    /// Adds a row about a collected file, and its content if it may be stored.
    pub(super) fn collected(&mut self, row: Value, content: Option<Value>) {
        self.contents.extend(content);
        self.files.push(row);
    }

    /// Records that the current phase failed without a failed step.
    pub(super) fn phase_failed(&mut self, error: &ErrorBody) {
        if let Some(open) = &mut self.open {
            let error = json!({"code": error.code, "message": error.message});
            open.error.get_or_insert(error);
        }
    }

    /// Builds the document and hands it to the recorder, for the result and the bundle.
    pub(super) fn write(mut self, recorder: &mut Recorder<'_>) {
        self.leave();
        let mut document = json!({
            "schema": "wp-codebox/recipe-workflow/v1",
            "executions": self.executions,
            "stepFailures": self.failures,
            "advisoryFailures": self.advice,
            "phaseEvidence": self.phases,
            "probes": self.probes,
            "declaredArtifacts": self.files,
        });
        if self.skipped > 0 {
            document["skippedSteps"] = json!(self.skipped);
        }
        recorder.evidence.workflow = Some(recorder.redactor().redact_value(document));
        recorder.evidence.collected = self.contents;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `OUTPUT_BYTES` limits all outputs together; each may always have `MIN_BYTES`.
    #[test]
    fn step_output_is_complete_until_the_limit_of_all_outputs_and_then_cut_to_the_minimum_size() {
        let mut evidence = Evidence::default();
        let mut stream = |text: &str| {
            let mut row = Map::new();
            evidence.stream(&mut row, "stdout", (text, None));
            (row, evidence.bytes)
        };
        let large = "ä".repeat(OUTPUT_BYTES / 4);
        let (row, _) = stream(&large);
        assert_eq!(Value::Object(row), json!({"stdout": large}));
        stream(&large);
        let long = "ö".repeat(MIN_BYTES);
        for _ in 0..1000 {
            stream(&long);
        }
        let (row, bytes) = stream(&"first\n".repeat(MIN_BYTES));
        assert!(row["stdout"].as_str().unwrap().starts_with("first\nfirst"));
        assert!(row["stdout"].as_str().unwrap().ends_with("first\n"));
        assert!(row["stdout"].as_str().unwrap().len() < MIN_BYTES + 50);
        assert_eq!(row["stdoutTruncated"], true);
        assert_eq!(row["stdoutBytes"], 6 * MIN_BYTES);
        assert!(bytes < OUTPUT_BYTES + 1002 * (MIN_BYTES + 50));
    }
}
