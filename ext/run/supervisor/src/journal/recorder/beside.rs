//! Records the programs that clients run in a held sandbox (one kept open for clients).
//!
//! Several programs can run at the same time, also while the run executes a command. Their output
//! arrives in redacted chunks through the request queue. The stored output is limited per execution
//! and for all executions together.

use super::{Executed, Recorder, end_word};
use crate::journal::retained_output::{Memory, RetainedOutput};
use serde_json::json;
use std::time::Duration;
use wp_codebox_contracts::{ErrorBody, EventType, ExecutionId, OutputStream};
use wp_codebox_runtime::{Call, ExecutionEnd, Terminal, now_rfc3339};

/// Maximum number of output bytes that are kept in memory for all clients' programs together. Output
/// beyond it is only in the journal.
const MEMORY: usize = 32 * 1024 * 1024;

/// How a client's program ended.
pub(crate) struct BesideEnd<'a> {
    pub end: &'a ExecutionEnd,
    pub duration: Duration,
    pub started_at: &'a str,
}

impl Recorder<'_> {
    /// Records that a client's program has started.
    pub(crate) fn begin_beside(
        &mut self,
        call: &Call,
        actor: &str,
        terminal: Terminal,
    ) -> Result<(ExecutionId, String), ErrorBody> {
        let id = self.next_id()?;
        let started_at = now_rfc3339();
        self.event(
            EventType::CommandStarted,
            Some(&id),
            json!({
                "command": call.command,
                "args": call.args,
                "phase": call.phase,
                "actor": actor,
                "terminal": terminal == Terminal::Controlling,
            }),
        )?;
        let kept = RetainedOutput::new(self.output_bytes);
        self.beside.open.insert(id.clone(), kept);
        Ok((id, started_at))
    }

    /// Records output of a program; the journal receives it at once, up to the limit.
    pub(crate) fn output_beside(
        &mut self,
        id: &ExecutionId,
        stream: OutputStream,
        bytes: &[u8],
    ) -> Result<(), ErrorBody> {
        let beside = &mut self.beside;
        let Some(kept) = beside.open.get_mut(id) else {
            return Ok(());
        };
        let memory = if beside.total + bytes.len() <= MEMORY {
            Memory::Free
        } else {
            Memory::Full
        };
        let before = kept.held();
        let now = kept.push(stream, bytes, memory);
        beside.total = (beside.total + kept.held()).saturating_sub(before);
        self.output(id, stream, now)
    }

    /// Records the output of clients' programs that waits in the request queue.
    pub(crate) fn listen_aside(&mut self) -> Result<(), ErrorBody> {
        let Some(queue) = self.aside.clone() else {
            return Ok(());
        };
        for (id, stream, bytes) in queue.take_output() {
            self.output_beside(&id, stream, &bytes)?;
        }
        Ok(())
    }

    /// Records that a client's program has ended.
    pub(crate) fn finish_beside(
        &mut self,
        id: &ExecutionId,
        call: &Call,
        ended: BesideEnd<'_>,
    ) -> Result<(), ErrorBody> {
        let kept = self.beside.open.remove(id);
        let kept = kept.unwrap_or_else(|| RetainedOutput::new(self.output_bytes));
        let kept = self.rest(id, kept, None)?;
        let exit_code = match ended.end {
            ExecutionEnd::Exited { code } => Some(*code),
            ExecutionEnd::Signalled { signal } => Some(128 + signal),
            ExecutionEnd::NotStarted { .. }
            | ExecutionEnd::TimedOut
            | ExecutionEnd::Cancelled
            | ExecutionEnd::LimitReached { .. }
            | ExecutionEnd::GuestDied { .. } => None,
        };
        let mut data = json!({
            "command": call.command,
            "end": end_word(ended.end),
            "durationMs": u64::try_from(ended.duration.as_millis()).unwrap_or(u64::MAX),
        });
        if let Some(code) = exit_code {
            data["exitCode"] = json!(code);
        }
        self.tell_cut(id.as_str(), kept.cut, &mut data);
        self.event(EventType::CommandFinished, Some(id), data)?;
        let args = call.args.iter().map(|a| self.clean(a)).collect();
        self.record(Executed {
            id,
            command: &call.command,
            args,
            phase: call.phase,
            exit_code,
            started_at: ended.started_at.to_owned(),
            output_truncated: kept.cut.any(),
            cut: kept.cut,
            stdout: kept.stdout,
            stderr: kept.stderr,
        });
        Ok(())
    }
}
