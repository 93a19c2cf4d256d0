//! The record of programs that run beside others.
//!
//! Their output comes in pieces from elsewhere, also while another program is waited for; it is
//! clean already. What is kept of each is bounded as for any execution, and for all together.

use super::{Call, Recorder, end_word};
use crate::run::envelopes::TranscriptEntry;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use wp_codebox_artifacts::ExecutionRecord;
use wp_codebox_contracts::{ErrorBody, ErrorCode, EventType, ExecutionId, OutputStream};
use wp_codebox_runtime::{ExecutionEnd, Terminal, now_rfc3339};

/// Bytes of output kept of all such programs together; the journal has more.
const KEPT: usize = 32 * 1024 * 1024;

/// Output of programs that have not been written off.
#[derive(Debug, Default)]
pub(super) struct Beside {
    open: BTreeMap<ExecutionId, Kept>,
    total: usize,
}

#[derive(Debug, Default)]
struct Kept {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    journalled: u64,
    dropped: u64,
}

/// How one ended.
pub(crate) struct BesideEnd<'a> {
    pub end: &'a ExecutionEnd,
    pub duration: Duration,
    pub started_at: &'a str,
}

impl Recorder<'_> {
    /// Says that a program starts.
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
        self.beside.open.insert(id.clone(), Kept::default());
        Ok((id, started_at))
    }

    /// Writes what one printed, as far as the limit goes.
    pub(crate) fn output_beside(
        &mut self,
        id: &ExecutionId,
        stream: OutputStream,
        bytes: &[u8],
    ) -> Result<(), ErrorBody> {
        let limit = self.output_bytes;
        let beside = &mut self.beside;
        let Some(kept) = beside.open.get_mut(id) else {
            return Ok(());
        };
        let room = limit.saturating_sub(kept.journalled);
        let count = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        kept.dropped += (bytes.len() - count) as u64;
        kept.journalled += count as u64;
        let bytes = &bytes[..count];
        if beside.total + bytes.len() <= KEPT {
            beside.total += bytes.len();
            match stream {
                OutputStream::Stdout => kept.stdout.extend_from_slice(bytes),
                OutputStream::Stderr => kept.stderr.extend_from_slice(bytes),
            }
        } else {
            kept.dropped += bytes.len() as u64;
        }
        if bytes.is_empty() {
            return Ok(());
        }
        self.output(id, stream, bytes)
    }

    /// Writes what waits on the desk.
    pub(crate) fn listen_aside(&mut self) -> Result<(), ErrorBody> {
        let Some(desk) = self.aside.clone() else {
            return Ok(());
        };
        for (id, stream, bytes) in desk.take_output() {
            self.output_beside(&id, stream, &bytes)?;
        }
        Ok(())
    }

    /// Says that it ended.
    pub(crate) fn finish_beside(
        &mut self,
        id: &ExecutionId,
        call: &Call,
        ended: BesideEnd<'_>,
    ) -> Result<(), ErrorBody> {
        let kept = self.beside.open.remove(id).unwrap_or_default();
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
        if kept.dropped > 0 {
            data["outputTruncated"] = json!(true);
            self.notices.push(format!(
                "{id}: output beyond {} bytes was dropped; raise the output limit to keep more [{}]",
                self.output_bytes,
                ErrorCode::OutputLimit
            ));
        }
        self.event(EventType::CommandFinished, Some(id), data)?;
        let args: Vec<String> = call.args.iter().map(|a| self.clean(a)).collect();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&kept.stdout), text(&kept.stderr));
        self.executions.push(ExecutionRecord {
            id: id.as_str().to_owned(),
            command: call.command.clone(),
            args: args.clone(),
            exit_code,
            stdout: stdout.clone(),
            stderr: stderr.clone(),
            started_at: ended.started_at.to_owned(),
            finished_at: now_rfc3339(),
            phase: call.phase.to_owned(),
            output_truncated: kept.dropped > 0,
        });
        self.transcript.push(TranscriptEntry {
            command: call.command.clone(),
            args,
            exit_code,
            phase: call.phase,
            stdout,
            stderr,
            output_truncated: kept.dropped > 0,
            parsed: None,
        });
        Ok(())
    }
}
