//! Records the text of the agent loop as the output of an execution, so that clients that follow
//! the run see it like program output. The text is redacted as a stream, because a secret may be
//! split over two chunks.

use super::output::StreamRedactor;
use super::recorder::{Executed, Recorder};
use super::retained_output::{Memory, RetainedOutput};
use serde_json::json;
use std::time::Instant;
use wp_codebox_agent::{Ended, Ending};
use wp_codebox_contracts::{ErrorBody, ErrorCode, EventType, ExecutionId, OutputStream};
use wp_codebox_runtime::now_rfc3339;

/// Execution id, and command name, under which the agent loop's text is recorded.
const AGENT: &str = "agent";

/// Text of the agent loop while it is recorded as the output of an execution.
pub(crate) struct AgentOutputStream<'a> {
    id: ExecutionId,
    model: String,
    stream: StreamRedactor<'a>,
    kept: RetainedOutput,
    line_open: bool,
    began: Instant,
    started_at: String,
    /// First error from writing to the journal. [`pause`](Self::pause) returns it, so that the
    /// agent loop stops.
    failed: Option<ErrorBody>,
}

impl<'a> AgentOutputStream<'a> {
    /// Starts the execution. The journal shows `model` as its argument.
    pub(crate) fn begin(recorder: &mut Recorder<'a>, model: &str) -> Result<Self, ErrorBody> {
        let id = ExecutionId::new(AGENT)
            .map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))?;
        let model = recorder.redactor().redact(model).into_owned();
        recorder.event(
            EventType::CommandStarted,
            Some(&id),
            json!({"command": AGENT, "args": [model], "phase": "agent"}),
        )?;
        Ok(Self {
            id,
            model,
            stream: StreamRedactor::new(recorder.redactor()),
            kept: RetainedOutput::new(recorder.output_bytes()),
            line_open: false,
            began: Instant::now(),
            started_at: now_rfc3339(),
            failed: None,
        })
    }

    /// Records a piece of the model's text.
    pub(crate) fn say(&mut self, recorder: &mut Recorder<'_>, text: &str) {
        if let Some(clean) = self.stream.push(text.as_bytes()) {
            self.show(recorder, &clean);
        }
    }

    /// At the end of a turn, records the text that the redactor still holds back, and ends the last
    /// line.
    pub(crate) fn pause(&mut self, recorder: &mut Recorder<'_>) -> Result<(), ErrorBody> {
        if let Some(clean) = self.stream.finish() {
            self.show(recorder, &clean);
        }
        if self.line_open {
            self.show(recorder, b"\n");
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    fn show(&mut self, recorder: &mut Recorder<'_>, clean: &[u8]) {
        let Some(last) = clean.last() else { return };
        self.line_open = *last != b'\n';
        let now = self.kept.push(OutputStream::Stdout, clean, Memory::Free);
        if let Err(error) = recorder.output(&self.id, OutputStream::Stdout, now) {
            self.failed.get_or_insert(error);
        }
    }

    /// Ends the execution. The agent loop is not a process and has no exit status: exit code 0 is
    /// recorded if the loop completed its task, otherwise no exit code.
    pub(crate) fn end(
        mut self,
        recorder: &mut Recorder<'_>,
        ended: &Ended,
    ) -> Result<(), ErrorBody> {
        self.pause(recorder)?;
        let exit_code = match ended.how {
            Ending::Finished | Ending::ClaimedDone => Some(0),
            Ending::Blocked | Ending::Stopped => None,
        };
        let duration = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut data = json!({"command": AGENT, "end": ended.how.name(), "durationMs": duration});
        if let Some(code) = exit_code {
            data["exitCode"] = json!(code);
        }
        let kept = recorder.rest(&self.id, self.kept, None)?;
        recorder.tell_cut(AGENT, kept.cut, &mut data);
        recorder.event(EventType::CommandFinished, Some(&self.id), data)?;
        recorder.record(Executed {
            id: &self.id,
            command: AGENT,
            args: vec![self.model],
            phase: AGENT,
            exit_code,
            started_at: self.started_at,
            output_truncated: kept.cut.any(),
            cut: kept.cut,
            stdout: kept.stdout,
            stderr: String::new(),
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::LifecycleEvent;
    use wp_codebox_policy::Redactor;
    use wp_codebox_runtime::Journal;

    fn spoken(limit: u64, pieces: &[&str], how: Ending) -> (Vec<LifecycleEvent>, String) {
        let directory = tempfile::tempdir().unwrap();
        let redactor = Redactor::with_secrets(&[], ["correct-horse-battery"]);
        let mut events = Vec::new();
        let mut emit = |event| events.push(event);
        let journal = Journal::create(directory.path()).unwrap();
        let mut recorder = Recorder::new(journal, &redactor, limit, &mut emit);
        let mut words = AgentOutputStream::begin(&mut recorder, "p/m").unwrap();
        for piece in pieces {
            words.say(&mut recorder, piece);
        }
        words.pause(&mut recorder).unwrap();
        let ended = Ended {
            stop: None,
            how,
            summary: String::new(),
        };
        words.end(&mut recorder, &ended).unwrap();
        let stdout = recorder.evidence.executions[0].stdout.clone();
        assert_eq!(recorder.evidence.transcript[0].stdout, stdout);
        drop(recorder);
        (events, stdout)
    }

    #[test]
    fn agent_text_is_recorded_line_by_line_and_redacted() {
        let (events, stdout) = spoken(
            1_000,
            &["I look.\nThe key is correct-hor", "se-battery, ", "I think"],
            Ending::Finished,
        );
        assert_eq!(
            stdout,
            "I look.\nThe key is [REDACTED:configured-secret-value], I think\n"
        );
        let kinds: Vec<EventType> = events.iter().map(|e| e.kind).collect();
        assert_eq!(kinds[0], EventType::CommandStarted);
        assert_eq!(kinds.last(), Some(&EventType::CommandFinished));
        assert!(events.iter().all(|e| {
            e.execution_id
                .as_ref()
                .is_some_and(|i| i.as_str() == "agent")
        }));
        assert_eq!(events[0].data["phase"], "agent");
        assert_eq!(events.last().unwrap().data["exitCode"], 0);
        let said: String = events
            .iter()
            .filter_map(|e| e.data.get("text")?.as_str())
            .collect();
        assert_eq!(said, stdout);
    }

    #[test]
    fn long_agent_text_is_truncated_and_a_stopped_agent_loop_has_no_exit_code() {
        let (events, stdout) = spoken(9, &["0123456789abcdef\n"], Ending::Stopped);
        assert_eq!(stdout, "012345\n[… 8 bytes left out …]\nef\n");
        let last = &events.last().unwrap().data;
        assert_eq!(last["outputTruncated"], true);
        assert!(last.get("exitCode").is_none());
    }
}
