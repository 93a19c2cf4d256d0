//! WASI tools: runs `wp-codebox-wasi` in the guest, which gives the tool its arguments on standard
//! input and the mounts that its definition allows.

use super::programs::{STREAM_BYTES, program_shown};
use super::shown;
use super::{GuestExecutor, ToolError, ToolOutput, ToolResult, Tools};
use crate::ToolCall;
use std::collections::BTreeMap;
use std::time::Duration;
use wp_codebox_contracts::{
    ErrorBody, GuestPath, MAX_WASI_EXIT_STATUS, MountAccess, WasiFiles, WasiToolId,
};
use wp_codebox_runtime::{Call, ExecutionEnd};

/// Time that the runner may use beyond the tool's own limit: it loads the compiled code, and ends
/// the tool itself at its limit.
const RUNNER_TIME: Duration = Duration::from_secs(20);
/// Maximum number of bytes of the arguments that the journal contains.
const ARGUMENT_BYTES: usize = 2000;

/// A registered WASI tool as it is mounted in the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestWasiTool {
    /// Id of the tool.
    pub id: WasiToolId,
    /// Guest path of the program `wp-codebox-wasi`.
    pub runner: String,
    /// Guest directory with `definition.json`, `module.wasm` and `module.cwasm`.
    pub directory: GuestPath,
    /// What the tool does with the mounts.
    pub files: WasiFiles,
    /// Time limit in the tool's definition.
    pub limit: Duration,
}

impl GuestWasiTool {
    /// Returns the command line that runs the tool: the same for every call.
    #[must_use]
    pub fn argv(&self, mounts: &[wp_codebox_runtime::GuestMount]) -> Vec<String> {
        let file = |name: &str| format!("{}/{name}", self.directory);
        let mut argv = vec![self.runner.clone(), "run".to_owned()];
        for (option, name) in [
            ("--definition", "definition.json"),
            ("--module", "module.wasm"),
            ("--compiled", "module.cwasm"),
        ] {
            argv.extend([option.to_owned(), file(name)]);
        }
        for mount in mounts {
            let access = match (self.files, mount.access) {
                (WasiFiles::None, _) => continue,
                (WasiFiles::Write, MountAccess::Readwrite) => "rw",
                (WasiFiles::Read, _) | (WasiFiles::Write, MountAccess::Readonly) => "ro",
            };
            let at = &mount.workspace;
            argv.extend(["--dir".to_owned(), format!("{at}={at}:{access}")]);
        }
        argv
    }
}

impl<H: GuestExecutor> Tools<H> {
    /// Runs a WASI tool. Its own exit status is part of the answer, like that of a program; an
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
