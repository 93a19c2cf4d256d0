//! Writes the output of programs to the journal. If a program prints more than the run's limit, the
//! middle of its output is left out, and the end is written when the execution has ended.

use super::Recorder;
use crate::journal::agent_steps::AgentSteps;
use crate::journal::retained_output::{Ended, RetainedOutput, border};
use base64::Engine;
use serde_json::{Value, json};
use wp_codebox_contracts::{ErrorBody, ErrorCode, EventType, ExecutionId, OutputStream};
use wp_codebox_runtime::Cut;

/// Maximum size of the chunk in one event, in bytes. An event stays below the maximum length of a
/// frame even if JSON escapes all bytes of its chunk.
const PIECE: usize = 256 * 1024;

impl Recorder<'_> {
    /// Writes redacted output to the journal and the stream.
    pub(crate) fn output(
        &mut self,
        id: &ExecutionId,
        stream: OutputStream,
        bytes: &[u8],
    ) -> Result<(), ErrorBody> {
        self.agent_output(id, stream, bytes, None)
    }

    /// Writes redacted output of a program. For standard output of an agent, adds the agent's
    /// readable steps.
    pub(super) fn agent_output(
        &mut self,
        id: &ExecutionId,
        stream: OutputStream,
        bytes: &[u8],
        mut steps: Option<&mut AgentSteps>,
    ) -> Result<(), ErrorBody> {
        let mut left = bytes;
        while !left.is_empty() {
            let (piece, more) = left.split_at(border(left, left.len().min(PIECE)));
            left = more;
            let data = match std::str::from_utf8(piece) {
                Ok(text) => json!({"stream": stream, "text": text}),
                Err(_) => {
                    json!({"stream": stream, "base64": base64::engine::general_purpose::STANDARD.encode(piece)})
                }
            };
            self.piece(id, stream, piece, data, steps.as_deref_mut())?;
        }
        Ok(())
    }

    fn piece(
        &mut self,
        id: &ExecutionId,
        stream: OutputStream,
        piece: &[u8],
        mut data: Value,
        steps: Option<&mut AgentSteps>,
    ) -> Result<(), ErrorBody> {
        let steps = steps.filter(|_| stream == OutputStream::Stdout);
        if let Some(shown) = steps.and_then(|steps| steps.push(piece, self.redactor)) {
            data["shown"] = json!(shown);
        }
        self.event(EventType::CommandOutput, Some(id), data)
    }

    /// Writes the output that was held back until the end of the execution to the journal:
    /// truncation mark and last bytes of each stream.
    pub(crate) fn rest(
        &mut self,
        id: &ExecutionId,
        kept: RetainedOutput,
        mut steps: Option<AgentSteps>,
    ) -> Result<Ended, ErrorBody> {
        let ended = kept.finish();
        for (stream, mark, end) in &ended.rest {
            if let Some(mark) = mark {
                let data = json!({"stream": stream, "text": mark, "truncated": true});
                self.piece(id, *stream, mark.as_bytes(), data, steps.as_mut())?;
            }
            self.agent_output(id, *stream, end, steps.as_mut())?;
        }
        if let Some(shown) = steps.and_then(|mut steps| steps.finish(self.redactor)) {
            let data = json!({"stream": OutputStream::Stdout, "text": "", "shown": shown});
            self.event(EventType::CommandOutput, Some(id), data)?;
        }
        Ok(ended)
    }

    /// Records that output of an execution was truncated: in `data` of the event
    /// `command.finished`, and in a notice. `what` names the execution.
    pub(crate) fn tell_cut(&mut self, what: &str, cut: Cut, data: &mut Value) {
        for (stream, printed) in [("stdout", cut.stdout), ("stderr", cut.stderr)] {
            let Some(printed) = printed else { continue };
            data["outputTruncated"] = json!(true);
            data[format!("{stream}Truncated")] = json!(true);
            data[format!("{stream}Bytes")] = json!(printed);
            self.evidence.notices.push(format!(
                "{what}: only the beginning and the end of {printed} bytes of {stream} are stored; raise the output limit of {} bytes to store more [{}]",
                self.output_bytes,
                ErrorCode::OutputLimit
            ));
        }
    }
}
