//! Builds three documents about a run's result: completion outcome, agent result and transcript.
//! Pure functions from facts to JSON. Empty objects are left out, because PHP would turn them into
//! lists.

use crate::journal::agent_log::AgentLog;
use crate::journal::recorder::TranscriptEntry;
use crate::journal::shown::{self, OUTPUT_BYTES};
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{
    ChangeCounts, CheckReport, CheckStatus, CompletionStatus, ErrorBody, Outcome, RecoveredChanges,
    RunId, RunSummary, SummaryArgs, SummaryCode, schema_id,
};

/// Facts from which completion outcome, agent result and transcript are built.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub run_id: &'a RunId,
    pub outcome: Outcome,
    pub summary: &'a str,
    pub error: Option<&'a ErrorBody>,
    pub changes: ChangeCounts,
    pub transcript: &'a [TranscriptEntry],
    pub checks: &'a [CheckReport],
    pub risk_notes: &'a [String],
    /// Paths of changed tests and of changed files that the checks execute. A reviewer must look at
    /// them, because the agent could have made the checks pass by these changes.
    pub tests_changed: &'a [String],
    /// Turns and tool calls of the built-in agent loop, if it ran.
    pub agent: Option<&'a AgentLog>,
}

impl Facts<'_> {
    fn salvage(&self) -> RecoveredChanges {
        if self.changes.total() == 0 {
            RecoveredChanges::Absent
        } else {
            RecoveredChanges::Present
        }
    }

    fn transcript_ref(&self) -> Value {
        json!({"artifact": "files/transcript.json", "executionCount": self.transcript.len()})
    }
}

/// Builds `sandbox-completion-outcome/v1` without the members that the bundle writer adds: schema,
/// changed files, patch, artifacts and bundle id.
pub(crate) fn completion_outcome(facts: &Facts<'_>) -> Map<String, Value> {
    let (status, next_action) = facts.outcome.completion(facts.salvage());
    let commands: Vec<Value> = facts
        .transcript
        .iter()
        .map(|t| {
            let mut row = json!({"command": t.command, "phase": t.phase});
            if let Some(code) = t.exit_code {
                row["exitCode"] = json!(code);
            }
            row
        })
        .collect();
    let blockers: Vec<Value> = facts
        .error
        .map(|e| json!({"kind": blocker_kind(status), "code": e.code, "message": e.message, "retryable": facts.outcome == Outcome::TimedOut}))
        .into_iter()
        .collect();
    object(json!({
        "status": status,
        "outcome": facts.outcome,
        "summary": facts.summary,
        "verification": {
            "transcript": facts.transcript_ref(),
            "commands": commands,
            "checks": facts.checks,
            "testFilesChanged": facts.tests_changed,
        },
        "blockers": blockers,
        "riskNotes": facts.risk_notes,
        "confidence": confidence(facts),
        "nextAction": next_action,
        "provenance": {"runtime": {"id": facts.run_id, "backend": "native"}},
    }))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn blocker_kind(status: CompletionStatus) -> &'static str {
    match status {
        CompletionStatus::Blocked => "runtime-blocker",
        CompletionStatus::Succeeded | CompletionStatus::Failed | CompletionStatus::Partial => {
            "runtime-failure"
        }
    }
}

/// Rates how much the result can be trusted. The rating is high only if the project's own checks
/// passed: neither the agent's claim nor a check that the agent could have changed is strong
/// evidence.
fn confidence(facts: &Facts<'_>) -> &'static str {
    match facts.outcome {
        Outcome::Succeeded if !facts.checks.is_empty() && facts.tests_changed.is_empty() => "high",
        Outcome::Succeeded | Outcome::NoOp | Outcome::Partial => "medium",
        Outcome::Blocked
        | Outcome::Denied
        | Outcome::Failed
        | Outcome::TimedOut
        | Outcome::Cancelled => "low",
    }
}

/// Builds `agent-result/v1` without the members that the bundle writer adds.
pub(crate) fn agent_result(facts: &Facts<'_>, agent_exit: AgentExit) -> Map<String, Value> {
    let completed = agent_exit == AgentExit::Success;
    let failures: Vec<Value> = facts
        .transcript
        .iter()
        .enumerate()
        .filter(|(_, t)| t.phase == "agent" && !completed)
        .map(|(index, t)| {
            let message = facts
                .error
                .map_or("the agent did not succeed", |e| e.message.as_str());
            let mut row =
                json!({"executionIndex": index, "command": t.command, "message": message});
            if let Some(code) = t.exit_code {
                row["exitCode"] = json!(code);
            }
            row
        })
        .collect();
    let mut value = json!({
        "status": if completed { "completed" } else { "failed" },
        "actionable": completed && facts.changes.total() > 0,
        "summary": facts.summary,
        "transcript": facts.transcript_ref(),
        "failures": failures,
    });
    if let Some(summary) = facts.agent.and_then(AgentLog::summary) {
        value["agentSummary"] = json!(summary);
    }
    if facts.changes.total() == 0 {
        value["noOpReason"] = json!(if completed {
            "no_file_changes"
        } else {
            "execution_failed"
        });
    }
    object(value)
}

/// Whether the agent succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentExit {
    /// The agent succeeded; an agent program does so by an exit code that means success.
    Success,
    /// The agent ended in any other way.
    Failure,
}

/// Builds the transcript, an `agent-transcript/v1` document: redacted output of every execution,
/// shortened to a limit, and the turns of the built-in agent loop.
pub(crate) fn transcript(entries: &[TranscriptEntry], agent: Option<&AgentLog>) -> Value {
    let streams = entries.iter().flat_map(|t| [&t.stdout, &t.stderr]);
    let sizes = streams.map(|text| shown::json_size(text)).collect();
    let share = shown::equal_share(sizes, OUTPUT_BYTES);
    // Parsed output has a size limit of its own: parsed JSON, written again, can be longer than the
    // printed text, e.g. because of numbers.
    let mut parsed_room = OUTPUT_BYTES;
    let mut executions = Vec::new();
    for (index, t) in entries.iter().enumerate() {
        let mut row = object(json!({
            "executionIndex": index,
            "command": t.command,
            "args": t.args,
            "phase": t.phase,
        }));
        shown::insert(&mut row, "stdout", (&t.stdout, t.cut.stdout), share);
        shown::insert(&mut row, "stderr", (&t.stderr, t.cut.stderr), share);
        if t.output_truncated {
            row.insert("outputTruncated".to_owned(), json!(true));
        }
        if let Some(code) = t.exit_code {
            row.insert("exitCode".to_owned(), json!(code));
        }
        if let Some(parsed) = &t.parsed {
            row.insert("parsed".to_owned(), parsed.clone());
        } else if !row.contains_key("stdoutTruncated")
            && let Ok(parsed) = serde_json::from_str::<Value>(t.stdout.trim())
            && (parsed.as_object().is_some_and(|o| !o.is_empty()) || parsed.is_array())
            && let Some(left) = parsed_room.checked_sub(parsed.to_string().len())
        {
            parsed_room = left;
            row.insert("parsed".to_owned(), parsed);
        }
        executions.push(Value::Object(row));
    }
    let mut document = object(json!({
        "schema": schema_id::AGENT_TRANSCRIPT,
        "executions": executions,
    }));
    if let Some(agent) = agent {
        document.extend(object(agent.transcript()));
    }
    Value::Object(document)
}

/// What made the changes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Worker {
    /// An agent.
    Agent,
    /// The steps of a recipe (a file with commands to run).
    Recipe,
    /// Clients of a sandbox that was kept open for them.
    Visitors,
    /// Commands of the run request.
    Command,
}

/// Returns outcome, changes, checks and error of the run as a structure, whose `sentence()` is the
/// text for people.
pub(crate) fn summary(
    worker: Worker,
    outcome: Outcome,
    changes: ChangeCounts,
    checks: &[CheckReport],
    error: Option<&ErrorBody>,
) -> RunSummary {
    let code = match outcome {
        Outcome::Succeeded => match worker {
            Worker::Agent => SummaryCode::AgentSucceeded,
            Worker::Recipe => SummaryCode::RecipeSucceeded,
            Worker::Visitors => SummaryCode::SandboxEnded,
            Worker::Command => SummaryCode::CommandSucceeded,
        },
        Outcome::NoOp => SummaryCode::NoChange,
        Outcome::Partial => SummaryCode::Partial,
        Outcome::Blocked => SummaryCode::Blocked,
        Outcome::Denied => SummaryCode::Denied,
        Outcome::Failed => SummaryCode::Failed,
        Outcome::TimedOut => SummaryCode::TimedOut,
        Outcome::Cancelled => SummaryCode::Cancelled,
    };
    let passed = checks.iter().filter(|c| c.status == CheckStatus::Passed);
    let ran = !checks.is_empty();
    RunSummary {
        code,
        args: SummaryArgs {
            changes: Some(changes),
            checks_total: ran.then_some(checks.len()),
            checks_passed: ran.then(|| passed.count()),
            error: error.map(|e| e.code),
            reason: error.map(|e| e.message.clone()),
            supervisor_died: false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::ErrorCode;
    use wp_codebox_runtime::Cut;

    const ONE: ChangeCounts = ChangeCounts {
        added: 0,
        modified: 1,
        deleted: 0,
    };

    fn entry(exit: Option<i32>) -> TranscriptEntry {
        TranscriptEntry {
            command: "command-agent-run".to_owned(),
            args: vec![],
            exit_code: exit,
            phase: "agent",
            stdout: "{\"a\":1}\n".to_owned(),
            stderr: String::new(),
            output_truncated: false,
            cut: Cut::default(),
            parsed: None,
        }
    }

    fn with(
        outcome: Outcome,
        changes: ChangeCounts,
        error: Option<&ErrorBody>,
        check: impl FnOnce(&Facts<'_>),
    ) {
        let run_id = RunId::new(format!("run_{:032x}", 1)).unwrap();
        let transcript = [entry(Some(0))];
        check(&Facts {
            run_id: &run_id,
            outcome,
            summary: "s",
            error,
            changes,
            transcript: &transcript,
            checks: &[],
            risk_notes: &[],
            tests_changed: &[],
            agent: None,
        });
    }

    #[test]
    fn result_of_a_run_without_changes_is_not_actionable() {
        with(Outcome::NoOp, ChangeCounts::default(), None, |facts| {
            let result = agent_result(facts, AgentExit::Success);
            assert_eq!(
                (&result["actionable"], &result["noOpReason"]),
                (&json!(false), &json!("no_file_changes"))
            );
            let completion = completion_outcome(facts);
            assert_eq!(
                (&completion["status"], &completion["nextAction"]),
                (&json!("partial"), &json!("review"))
            );
        });
    }

    #[test]
    fn result_of_a_failed_run_has_neither_confidence_high_nor_next_action_promote() {
        let error = ErrorBody::new(ErrorCode::RunFailed, "the agent exited with 1");
        for outcome in Outcome::ALL.iter().filter(|o| !o.is_success()) {
            with(*outcome, ONE, Some(&error), |facts| {
                let completion = completion_outcome(facts);
                assert_ne!(completion["nextAction"], "promote", "{outcome:?}");
                assert_ne!(completion["confidence"], "high", "{outcome:?}");
                assert_eq!(completion["blockers"][0]["code"], "wp_codebox_run_failed");
                assert_eq!(agent_result(facts, AgentExit::Failure)["actionable"], false);
            });
        }
    }

    #[test]
    fn passed_checks_do_not_raise_confidence_if_the_run_changed_test_files() {
        let run_id = RunId::new(format!("run_{:032x}", 1)).unwrap();
        let checks = [CheckReport {
            command: "phpunit".to_owned(),
            exit_code: Some(0),
            status: CheckStatus::Passed,
            output_tail: String::new(),
            duration_ms: 1,
            reason: None,
            tests: None,
        }];
        let touched = ["/w/tests/a.php".to_owned()];
        for (tests_changed, confidence) in [(&touched[..0], "high"), (&touched[..], "medium")] {
            let completion = completion_outcome(&Facts {
                run_id: &run_id,
                outcome: Outcome::Succeeded,
                summary: "s",
                error: None,
                changes: ONE,
                transcript: &[],
                checks: &checks,
                risk_notes: &[],
                tests_changed,
                agent: None,
            });
            assert_eq!(completion["confidence"], confidence);
            assert_eq!(
                completion["verification"]["testFilesChanged"],
                json!(tests_changed)
            );
        }
    }

    #[test]
    fn transcript_contains_short_output_completely_and_only_beginning_and_end_of_long_output() {
        let parsed = |text: &str| {
            let mut row = entry(None);
            row.stdout = format!("[\"{text}\"]");
            row
        };
        let large = "a".repeat(300 * 1024);
        let mut limited = parsed("b");
        limited.output_truncated = true;
        limited.cut.stdout = Some(99);
        let value = transcript(&[parsed(&large), limited, entry(Some(0))], None);
        let rows = &value["executions"];
        assert_eq!(rows[0]["parsed"][0], large);
        assert!(rows[0].get("stdoutTruncated").is_none() && rows[0].get("exitCode").is_none());
        assert_eq!(rows[1]["outputTruncated"], true);
        assert_eq!(rows[1]["stdoutBytes"], 99);
        assert!(rows[1].get("stderrTruncated").is_none());
        assert!(rows[1].get("parsed").is_none());
        assert_eq!(rows[2]["parsed"]["a"], 1);
        let value = transcript(&[parsed(&"é".repeat(OUTPUT_BYTES)), entry(None)], None);
        let row = &value["executions"][0];
        let shown = row["stdout"].as_str().unwrap();
        assert!(shown.starts_with("[\"é") && shown.ends_with("é\"]"));
        assert!(shown.len() <= OUTPUT_BYTES + 50);
        assert_eq!(row["stdoutBytes"], 2 * OUTPUT_BYTES + 4);
        assert!(row["stdoutTruncated"] == true && row.get("parsed").is_none());
        assert_eq!(value["executions"][1]["parsed"]["a"], 1);
    }

    #[test]
    fn run_summary_sentence_states_outcome_changes_checks_and_error() {
        assert_eq!(
            summary(Worker::Agent, Outcome::Succeeded, ONE, &[], None).sentence(),
            "The agent succeeded (1 file changed: 0 added, 1 modified, 0 deleted)."
        );
        for (worker, who) in [
            (Worker::Recipe, "The recipe succeeded"),
            (Worker::Visitors, "The sandbox ended well"),
            (Worker::Command, "The command succeeded"),
        ] {
            let told = summary(
                worker,
                Outcome::Succeeded,
                ChangeCounts::default(),
                &[],
                None,
            );
            assert_eq!(told.sentence(), format!("{who} (no file changed)."));
        }
        assert_eq!(
            summary(
                Worker::Agent,
                Outcome::NoOp,
                ChangeCounts::default(),
                &[],
                None
            )
            .sentence(),
            "The agent succeeded and changed no file."
        );
        let checks = [CheckStatus::Passed, CheckStatus::Failed].map(|status| CheckReport {
            command: "c".to_owned(),
            exit_code: None,
            status,
            output_tail: String::new(),
            duration_ms: 1,
            reason: None,
            tests: None,
        });
        let error = ErrorBody::new(ErrorCode::RunTimeout, "the time was up");
        let told = summary(Worker::Agent, Outcome::TimedOut, ONE, &checks, Some(&error));
        assert_eq!(
            told.sentence(),
            "The run timed out: the time was up (1 file changed: 0 added, 1 modified, 0 deleted; 1 of 2 checks passed)."
        );
        assert_eq!(
            json!(told),
            json!({"code": "timed_out", "args": {
                "added": 0, "modified": 1, "deleted": 0, "checks_total": 2, "checks_passed": 1,
                "error": "wp_codebox_run_timeout", "reason": "the time was up",
            }})
        );
    }
}
