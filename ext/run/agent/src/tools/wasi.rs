//! Runs WASI tools with the program `wp-codebox-wasi` in the guest. The program gives a tool its
//! arguments on standard input, and the mounts that its definition allows.

use super::programs::{STREAM_BYTES, program_shown};
use super::shown;
use super::{GuestExecutor, ToolError, ToolOutput, ToolResult, Tools};
use crate::ToolCall;
use std::collections::BTreeMap;
use std::time::Duration;
use wp_codebox_contracts::{ErrorBody, MAX_WASI_EXIT_STATUS, WasiToolId};
use wp_codebox_runtime::{Call, ExecutionEnd};

/// Time that the runner `wp-codebox-wasi` may take beyond the tool's own limit, because it first
/// loads the compiled code. The runner itself ends the tool at the tool's limit.
const RUNNER_TIME: Duration = Duration::from_secs(20);
/// Maximum number of bytes of the arguments that the journal contains.
const ARGUMENT_BYTES: usize = 2000;

impl<H: GuestExecutor> Tools<H> {
    /// Runs a WASI tool. The tool's exit status is part of the answer, like that of a program; an
    /// error of the runner, such as an exhausted limit, makes the call fail.
    pub(super) fn wasi(&mut self, id: &WasiToolId, call: &ToolCall) -> ToolResult {
        let given = match &call.arguments {
            Ok(given) => serde_json::Value::Object(given.clone()).to_string(),
            Err(why) => {
                return Err(ToolError::InvalidCall(format!(
                    "the arguments are not a JSON object: {why}"
                )));
            }
        };
        let Some(tool) = self.context.wasi.iter().find(|tool| tool.id == *id) else {
            return Err(ToolError::InvalidCall(
                "the tool is not mounted in this sandbox".to_owned(),
            ));
        };
        let timeout = tool.limit + RUNNER_TIME;
        let program = Call {
            command: id.as_str().to_owned(),
            args: vec![shown::bounded(&given, ARGUMENT_BYTES)],
            phase: "tool",
            argv: tool.argv(&self.context.mounts),
            // Neither the runner nor the tool needs the task's secrets.
            env: BTreeMap::new(),
            cwd: self.context.cwd.clone(),
            stdin: Some(given.into_bytes()),
        };
        let step = self.run(&program, timeout)?;
        match &step.result.end {
            ExecutionEnd::Exited { code: 0 } => Ok(ToolOutput::ok(shown::bounded(
                &step.stdout,
                2 * STREAM_BYTES,
            ))),
            ExecutionEnd::Exited { code } if *code <= MAX_WASI_EXIT_STATUS => {
                Ok(ToolOutput::ok(program_shown(&step, timeout, STREAM_BYTES)))
            }
            _ => Ok(ToolOutput::failed(runner_error(&step.stderr).map_or_else(
                || program_shown(&step, timeout, STREAM_BYTES),
                |error| error.to_string(),
            ))),
        }
    }
}

/// Returns the runner's error, the last line of its standard error.
fn runner_error(stderr: &str) -> Option<ErrorBody> {
    let last = stderr.trim_end().rsplit('\n').next()?;
    serde_json::from_str(last).ok()
}
