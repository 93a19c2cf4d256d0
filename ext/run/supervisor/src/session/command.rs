//! Runs a command in the guest, whether the request, a recipe, an agent or a client asks for it.

use super::{Session, answer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{CommandCall, CommandResult, CommandStatus, ErrorBody, ErrorCode};
use wp_codebox_policy::{
    CommandDescriptor, Handler, assert_command, runs_block_editor, target_call,
};
use wp_codebox_runtime::{Bounds, Call, Cut, ExecutionEnd, ExecutionResult, Step, command_program};

/// A command that has ended.
#[derive(Debug, Clone)]
pub(crate) struct Commanded {
    /// Call of the program that ran in the guest. If the supervisor executed the command itself, a
    /// call that has the same command and arguments.
    pub call: Call,
    /// How the program ended, and its output.
    pub step: Step,
    /// Result of the command, in the same form for request, recipe, agent and client.
    pub result: CommandResult,
}

impl Session<'_, '_> {
    /// Runs one command to its end, at most for `timeout`. The policy is checked first. An error
    /// means that the command did not run, or that an event of the run could not be recorded.
    pub(crate) fn command(
        &mut self,
        call: &CommandCall,
        timeout: Duration,
    ) -> Result<Commanded, ErrorBody> {
        self.guest.services.check()?;
        let found = assert_command(&self.context.prepared.policy, call)?;
        if let Some(target) = target_call(call) {
            return self.agent_target(call, &target, timeout);
        }
        let bounds = Bounds {
            deadline: self.deadline(),
            timeout,
        };
        match found.handler {
            Handler::Program(_) if runs_block_editor(call) => self.block_in_editor(call, bounds),
            Handler::Program(_) => self.program(found, call, bounds),
            Handler::Browser => self.browser_command(call, bounds),
            Handler::Checkpoint => {
                let started = Instant::now();
                let done = self.checkpoint(call)?;
                self.carried_out(call, started, &done.document, done.error)
            }
            Handler::Mail(operation) => self.mail_command(call, operation),
            // The policy check above has already refused commands with the next two handlers.
            Handler::Agent => {
                let message = format!("{} can only be a step of a recipe", call.command);
                Err(ErrorBody::new(ErrorCode::CommandUnsupported, message))
            }
            Handler::Right { .. } => {
                let message = format!("{} is a permission, not a command", call.command);
                Err(ErrorBody::new(ErrorCode::CommandUnsupported, message))
            }
            Handler::Unsupported { reason } => {
                Err(ErrorBody::new(ErrorCode::CommandUnsupported, reason))
            }
        }
    }

    /// Returns a call that represents, in the records, a command that runs no guest program.
    pub(super) fn standing(&self, call: &CommandCall) -> Call {
        Call {
            command: call.command.clone(),
            args: call.args.clone(),
            phase: "workflow",
            argv: vec![call.command.clone()],
            env: BTreeMap::new(),
            cwd: self.context.cwd.clone(),
            stdin: None,
        }
    }

    /// Records a command that the supervisor executed itself, in the same form as a command that
    /// ran in the guest.
    pub(super) fn carried_out(
        &mut self,
        call: &CommandCall,
        started: Instant,
        document: &Value,
        error: Option<ErrorBody>,
    ) -> Result<Commanded, ErrorBody> {
        let (code, status) = match error {
            None => (0, CommandStatus::Ok),
            Some(_) => (1, CommandStatus::Error),
        };
        let standing = self.standing(call);
        let document = self.recorder.clean(&document.to_string());
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
            cut: Cut::default(),
        };
        self.recorder.carried_out(&standing, &step)?;
        let mut result = CommandResult::of_output(
            &call.command,
            status,
            step.stdout.clone(),
            step.stderr.clone(),
        );
        result.error = error;
        result.diagnostics["timing"] = json!({
            "durationMs": u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        });
        Ok(Commanded {
            call: standing,
            step,
            result,
        })
    }

    /// Returns the time at which the guest must end.
    pub(crate) fn deadline(&self) -> Instant {
        self.until
    }

    fn program(
        &mut self,
        found: &CommandDescriptor,
        call: &CommandCall,
        bounds: Bounds,
    ) -> Result<Commanded, ErrorBody> {
        let call = command_program(call, &self.context.guest_mounts, &self.context.cwd)?;
        let call = self.context.work_call(call);
        let step = self
            .recorder
            .run_within(self.guest.runtime.as_mut(), &call, bounds)?;
        let mut result = answer::result(found, &call, &step, bounds.timeout);
        self.keep_left(found, &call, &mut result)?;
        if let (ExecutionEnd::Exited { .. } | ExecutionEnd::Signalled { .. }, Err(error)) =
            (&step.result.end, self.guest.services.check())
        {
            result.status = CommandStatus::Error;
            result.error = Some(error);
        }
        Ok(Commanded { call, step, result })
    }
}
