//! Checkpoint commands: carried out by the runner, recorded as any other command.

use super::{Commanded, Session};
use crate::run::recorder::{Bounds, Call, Step};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Instant;
use wp_codebox_contracts::{CommandCall, CommandResult, CommandStatus, ErrorBody};
use wp_codebox_runtime::{ExecutionEnd, ExecutionResult};

impl Session<'_, '_> {
    pub(super) fn checkpoint_command(
        &mut self,
        call: &CommandCall,
        _bounds: Bounds,
    ) -> Result<Commanded, ErrorBody> {
        let started = Instant::now();
        let done = self.checkpoint(call)?;
        let (code, status) = match done.error {
            None => (0, CommandStatus::Ok),
            Some(_) => (1, CommandStatus::Error),
        };
        let standing = Call {
            command: call.command.clone(),
            args: call.args.clone(),
            phase: "workflow",
            argv: vec![call.command.clone()],
            env: BTreeMap::new(),
            cwd: self.setting.cwd.clone(),
            stdin: None,
        };
        let document = self.recorder.clean(&done.document.to_string());
        let duration = started.elapsed();
        let step = Step {
            result: ExecutionResult {
                end: ExecutionEnd::Exited { code },
                stopped: false,
                output_truncated: false,
                disk_full: false,
                duration,
            },
            stdout: format!("{document}\n"),
            stderr: String::new(),
        };
        self.recorder.carried_out(&standing, &step)?;
        let mut result = CommandResult::of_output(
            &call.command,
            status,
            step.stdout.clone(),
            step.stderr.clone(),
        );
        result.error = done.error;
        result.diagnostics["timing"] = json!({
            "durationMs": u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        });
        Ok(Commanded {
            call: standing,
            step,
            result,
        })
    }
}
