//! Recorder of a run: the single writer of the journal, the event stream and the evidence of
//! executions.

mod beside;
mod evidence;
mod files;
mod output;
mod transcript;

pub(crate) use beside::BesideEnd;
pub(crate) use evidence::RunEvidence;
pub(crate) use transcript::TranscriptEntry;

use super::agent_steps::AgentSteps;
use super::output::StreamRedactor;
use super::queue::RequestQueue;
use super::retained_output::{Memory, RetainedOutput};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wp_codebox_artifacts::{EpisodeBuilder, ExecutionRecord};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, EventType, ExecutionId, LifecycleEvent, OutputStream,
};
use wp_codebox_policy::Redactor;
use wp_codebox_runtime::{
    Bounds, COMPONENTS, Call, Cut, Execution, ExecutionEnd, ExecutionResult, Journal, Runtime,
    Step, now_rfc3339,
};

/// How the standard output of a program is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    /// The whole output, redacted.
    Text,
    /// Only the size of the output. [`Recorder::take`] returns at most this many bytes of the
    /// output to its caller.
    Size(u64),
}

/// A command that the supervisor executes itself and that has not ended yet.
pub(crate) struct Carried {
    pub id: ExecutionId,
    pub args: Vec<String>,
    pub started_at: String,
}

/// Output of programs that clients started, kept until the journal has the end of the program.
#[derive(Debug, Default)]
struct Beside {
    open: BTreeMap<ExecutionId, RetainedOutput>,
    /// Number of output bytes in memory, including those of programs that have ended.
    total: usize,
}

/// An execution that has ended. Its output is already redacted.
pub(crate) struct Executed<'e> {
    pub id: &'e ExecutionId,
    pub command: &'e str,
    pub args: Vec<String>,
    pub phase: &'static str,
    pub exit_code: Option<i32>,
    pub started_at: String,
    pub stdout: String,
    pub stderr: String,
    pub output_truncated: bool,
    pub cut: Cut,
}

/// Writes the journal and the event stream, and collects the evidence for the bundle.
pub(crate) struct Recorder<'a> {
    journal: Journal,
    emit: &'a mut dyn FnMut(LifecycleEvent),
    redactor: &'a Redactor,
    output_bytes: u64,
    count: u32,
    /// Whether the guest may contain work, because a program ran in it or clients could reach it.
    worked: bool,
    /// End of the last program with which its guest ended, too, e.g. by a time limit; `None` if
    /// there was no such program.
    pub lost: Option<ExecutionEnd>,
    /// Output of the programs that clients run in a held sandbox (one kept open for clients).
    beside: Beside,
    /// Queue through which the output of the clients' programs arrives.
    pub aside: Option<Arc<RequestQueue>>,
    /// Actor of the client request that is carried out, i.e. the name that the client gave for the
    /// requester; `None` for actions of the run itself.
    pub actor: Option<String>,
    /// Converts the next program's standard output to readable steps.
    pub steps: Option<AgentSteps>,
    /// Trace of the actions in a held sandbox (one kept open for clients).
    pub episode: Option<EpisodeBuilder<'a>>,
    pub evidence: RunEvidence,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(
        journal: Journal,
        redactor: &'a Redactor,
        output_bytes: u64,
        emit: &'a mut dyn FnMut(LifecycleEvent),
    ) -> Self {
        Self {
            journal,
            emit,
            redactor,
            output_bytes,
            count: 0,
            worked: false,
            lost: None,
            beside: Beside::default(),
            aside: None,
            actor: None,
            steps: None,
            episode: None,
            evidence: RunEvidence::default(),
        }
    }

    pub(crate) fn redactor(&self) -> &'a Redactor {
        self.redactor
    }

    /// Returns the maximum output of one execution, standard output and standard error together, in
    /// bytes.
    pub(crate) fn output_bytes(&self) -> u64 {
        self.output_bytes
    }

    /// Writes one event to the journal and the stream.
    pub(crate) fn event(
        &mut self,
        kind: EventType,
        id: Option<&ExecutionId>,
        data: Value,
    ) -> Result<(), ErrorBody> {
        // Output is redacted as a stream before it gets here, so it is not redacted again.
        let data = match kind {
            EventType::CommandOutput => data,
            _ => self.redactor.redact_value(data),
        };
        let data = match data {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        let event = self.journal.append(kind, id.cloned(), data)?;
        (self.emit)(event);
        Ok(())
    }

    /// Adds an observation to the bundle and an event to the journal; `detail` is added to the
    /// event's data.
    pub(crate) fn observe(
        &mut self,
        kind: &str,
        data: Value,
        detail: Map<String, Value>,
    ) -> Result<(), ErrorBody> {
        let id = format!("observation-{}", self.evidence.observations.len() + 1);
        let seen = json!({"id": id, "type": kind, "data": data, "observedAt": now_rfc3339()});
        let mut event = Map::from_iter([
            ("id".to_owned(), json!(id)),
            ("type".to_owned(), json!(kind)),
        ]);
        event.extend(detail);
        self.event(EventType::Observed, None, Value::Object(event))?;
        self.evidence.observations.push(seen);
        Ok(())
    }

    /// Returns all events that the journal contains.
    pub(crate) fn events(&self) -> Result<Vec<LifecycleEvent>, ErrorBody> {
        self.journal.events().map_err(ErrorBody::from)
    }

    /// Returns the text with secrets redacted.
    pub(crate) fn clean(&self, text: &str) -> String {
        self.redactor.redact(text).into_owned()
    }

    /// Returns the document with secrets redacted.
    pub(crate) fn cleaned(&self, document: Value) -> Value {
        self.redactor.redact_value(document)
    }

    /// Runs a program in the guest until it ends or the deadline passes.
    pub(crate) fn run(
        &mut self,
        runtime: &mut dyn Runtime,
        call: &Call,
        deadline: Instant,
    ) -> Result<Step, ErrorBody> {
        let timeout = Duration::MAX;
        self.run_within(runtime, call, Bounds { deadline, timeout })
    }

    /// Records start and end of a command that the supervisor has executed itself. The command's
    /// output in `step` must already be redacted.
    pub(crate) fn carried_out(&mut self, call: &Call, step: &Step) -> Result<(), ErrorBody> {
        let begun = self.begin(call)?;
        self.conclude(begun, call, step)
    }

    /// Records the start of a command that the supervisor executes itself.
    pub(crate) fn begin(&mut self, call: &Call) -> Result<Carried, ErrorBody> {
        let id = self.next_id()?;
        let args: Vec<String> = call.args.iter().map(|arg| self.clean(arg)).collect();
        let started_at = now_rfc3339();
        let mut data = json!({"command": call.command, "args": args, "phase": call.phase});
        if let Some(actor) = &self.actor {
            data["actor"] = json!(actor);
        }
        self.event(EventType::CommandStarted, Some(&id), data)?;
        Ok(Carried {
            id,
            args,
            started_at,
        })
    }

    /// Records the end of a command that the supervisor executed itself. The command's output in
    /// `step` must already be redacted.
    pub(crate) fn conclude(
        &mut self,
        begun: Carried,
        call: &Call,
        step: &Step,
    ) -> Result<(), ErrorBody> {
        for (stream, text) in [
            (OutputStream::Stdout, &step.stdout),
            (OutputStream::Stderr, &step.stderr),
        ] {
            if !text.is_empty() {
                self.output(&begun.id, stream, text.as_bytes())?;
            }
        }
        self.finished(&begun.id, call, begun.args, begun.started_at, step)
    }

    /// Runs a program in the guest with a time limit of its own.
    pub(crate) fn run_within(
        &mut self,
        runtime: &mut dyn Runtime,
        call: &Call,
        bounds: Bounds,
    ) -> Result<Step, ErrorBody> {
        let (step, _) = self.execute(runtime, call, bounds, Keep::Text)?;
        Ok(step)
    }

    /// Runs a program whose output is file content: returns up to `most` bytes unredacted and
    /// records only their size. Code that shows the bytes must redact them.
    pub(crate) fn take(
        &mut self,
        runtime: &mut dyn Runtime,
        call: &Call,
        bounds: Bounds,
        most: u64,
    ) -> Result<(Step, Vec<u8>), ErrorBody> {
        self.execute(runtime, call, bounds, Keep::Size(most))
    }

    fn next_id(&mut self) -> Result<ExecutionId, ErrorBody> {
        self.count += 1;
        ExecutionId::new(format!("exec-{}", self.count))
            .map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))
    }

    fn execute(
        &mut self,
        runtime: &mut dyn Runtime,
        call: &Call,
        bounds: Bounds,
        keep: Keep,
    ) -> Result<(Step, Vec<u8>), ErrorBody> {
        let Carried {
            id,
            args,
            started_at,
        } = self.begin(call)?;
        let execution = Execution {
            id: id.clone(),
            argv: call.argv.clone(),
            env: call.env.clone(),
            cwd: call.cwd.clone(),
            stdin: call.stdin.clone(),
            output_bytes: match keep {
                // No limit here: `RetainedOutput` shortens the output and needs the end of the
                // stream for that.
                Keep::Text => u64::MAX,
                Keep::Size(most) => most,
            },
            stop_at: Instant::now()
                .checked_add(bounds.timeout)
                .map_or(bounds.deadline, |at| at.min(bounds.deadline)),
            deadline: bounds.deadline,
        };
        let mut taken = Vec::new();
        let mut kept = RetainedOutput::new(self.output_bytes);
        let mut streams = (
            StreamRedactor::new(self.redactor),
            StreamRedactor::new(self.redactor),
        );
        let mut failed = None;
        let mut steps = self.steps.take();
        let result = runtime.execute(&execution, &mut |stream, bytes| {
            if bytes.is_empty() {
                if let Err(error) = self.listen_aside() {
                    failed.get_or_insert(error);
                }
                return;
            }
            if let (OutputStream::Stdout, Keep::Size(_)) = (stream, keep) {
                taken.extend_from_slice(bytes);
                return;
            }
            let redactor = match stream {
                OutputStream::Stdout => &mut streams.0,
                OutputStream::Stderr => &mut streams.1,
            };
            if let Some(clean) = redactor.push(bytes) {
                let now = kept.push(stream, &clean, Memory::Free);
                if let Err(error) = self.agent_output(&id, stream, now, steps.as_mut()) {
                    failed.get_or_insert(error);
                }
            }
        })?;
        self.ran(call, &result.end);
        for (stream, redactor) in [
            (OutputStream::Stdout, &mut streams.0),
            (OutputStream::Stderr, &mut streams.1),
        ] {
            if let Some(clean) = redactor.finish() {
                let now = kept.push(stream, &clean, Memory::Free);
                self.agent_output(&id, stream, now, steps.as_mut())?;
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        if let Keep::Size(_) = keep {
            let note = format!("({} bytes)\n", taken.len());
            let now = kept.push(OutputStream::Stdout, note.as_bytes(), Memory::Free);
            self.output(&id, OutputStream::Stdout, now)?;
        }
        let kept = self.rest(&id, kept, steps)?;
        let step = Step {
            result: ExecutionResult {
                output_truncated: result.output_truncated || kept.cut.any(),
                ..result
            },
            stdout: kept.stdout,
            stderr: kept.stderr,
            cut: kept.cut,
        };
        self.finished(&id, call, args, started_at, &step)?;
        Ok((step, taken))
    }

    /// Adds an execution that has ended to the bundle's evidence and to the transcript.
    pub(crate) fn record(&mut self, done: Executed<'_>) {
        self.evidence.executions.push(ExecutionRecord {
            id: done.id.as_str().to_owned(),
            command: done.command.to_owned(),
            args: done.args.clone(),
            exit_code: done.exit_code,
            stdout: done.stdout.clone(),
            stderr: done.stderr.clone(),
            started_at: done.started_at,
            finished_at: now_rfc3339(),
            phase: done.phase.to_owned(),
            output_truncated: done.output_truncated,
        });
        self.evidence.transcript.push(TranscriptEntry {
            command: done.command.to_owned(),
            args: done.args,
            exit_code: done.exit_code,
            phase: done.phase,
            stdout: done.stdout,
            stderr: done.stderr,
            output_truncated: done.output_truncated,
            cut: done.cut,
            parsed: None,
        });
    }

    /// Returns whether the guest may contain work to capture: a program ran in it (those that load
    /// components do not count), or clients could reach it.
    pub(crate) fn worked(&self) -> bool {
        self.worked
    }

    /// Records that clients can reach the guest from now on. They can change it without a recorded
    /// program.
    pub(crate) fn opened(&mut self) {
        self.worked = true;
    }

    /// Notes that a program ran in the guest. To be called as soon as the program has ended, before
    /// further records are written: if writing one fails, the work in the guest is captured all the
    /// same.
    fn ran(&mut self, call: &Call, end: &ExecutionEnd) {
        let began = !matches!(end, ExecutionEnd::NotStarted { .. });
        self.worked |= began && call.phase != COMPONENTS;
        match end {
            ExecutionEnd::TimedOut
            | ExecutionEnd::Cancelled
            | ExecutionEnd::LimitReached { .. }
            | ExecutionEnd::GuestDied { .. } => self.lost = Some(end.clone()),
            ExecutionEnd::Exited { .. }
            | ExecutionEnd::Signalled { .. }
            | ExecutionEnd::NotStarted { .. } => {}
        }
    }

    /// Adds the result document of the last program to the program's transcript entry.
    pub(crate) fn answered(&mut self, answer: Value) {
        let answer = self.redactor.redact_value(answer);
        if let Some(entry) = self.evidence.transcript.last_mut() {
            entry.parsed = Some(answer);
        }
    }

    fn finished(
        &mut self,
        id: &ExecutionId,
        call: &Call,
        args: Vec<String>,
        started_at: String,
        step: &Step,
    ) -> Result<(), ErrorBody> {
        self.ran(call, &step.result.end);
        let mut data = json!({
            "command": call.command,
            "end": end_word(&step.result.end),
            "durationMs": u64::try_from(step.result.duration.as_millis()).unwrap_or(u64::MAX),
        });
        if let Some(code) = step.exit_code() {
            data["exitCode"] = json!(code);
        }
        if step.result.stopped {
            data["stopped"] = json!(true);
        }
        self.tell_cut(&call.command, step.cut, &mut data);
        if step.result.output_truncated && !step.cut.any() {
            data["outputTruncated"] = json!(true);
            self.evidence.notices.push(format!(
                "{}: output beyond the limit of this command was dropped [{}]",
                call.command,
                ErrorCode::OutputLimit
            ));
        }
        if step.result.disk_full {
            data["diskFull"] = json!(true);
            self.evidence.notices.push(format!(
                "{}: the guest's disk was full; raise the disk limit [{}]",
                call.command,
                ErrorCode::DiskLimit
            ));
        }
        self.event(EventType::CommandFinished, Some(id), data)?;
        self.record(Executed {
            id,
            command: &call.command,
            args,
            phase: call.phase,
            exit_code: step.exit_code(),
            started_at,
            stdout: step.stdout.clone(),
            stderr: step.stderr.clone(),
            output_truncated: step.result.output_truncated,
            cut: step.cut,
        });
        Ok(())
    }
}

pub(crate) fn end_word(end: &ExecutionEnd) -> &'static str {
    match end {
        ExecutionEnd::Exited { .. } => "exited",
        ExecutionEnd::Signalled { .. } => "signalled",
        ExecutionEnd::NotStarted { .. } => "not-started",
        ExecutionEnd::TimedOut => "timed-out",
        ExecutionEnd::Cancelled => "cancelled",
        ExecutionEnd::LimitReached { .. } => "limit-reached",
        ExecutionEnd::GuestDied { .. } => "guest-died",
    }
}
