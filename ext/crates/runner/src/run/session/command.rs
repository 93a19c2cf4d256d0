//! A registry command in the working guest, whoever asks for it.

use super::{Session, answer};
use crate::run::programs;
use crate::run::recorder::{Bounds, Call, Step};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{CommandCall, CommandResult, ErrorBody, ErrorCode};
use wp_codebox_policy::{CommandDescriptor, Handler, assert_command};

/// A command that came to an end.
#[derive(Debug, Clone)]
pub(crate) struct Commanded {
    /// What ran in the guest; of a command that the runner carries out, what stands for it.
    pub call: Call,
    /// How it ended.
    pub step: Step,
    /// Its result as everybody is told.
    pub result: CommandResult,
}

impl Session<'_, '_> {
    /// Runs one command to its end, at most for `timeout`. Judged by the policy first; an error
    /// means that it did not run, or that our own record could not be written.
    pub(crate) fn command(
        &mut self,
        call: &CommandCall,
        timeout: Duration,
    ) -> Result<Commanded, ErrorBody> {
        let found =
            assert_command(&self.setting.prepared.policy, call).map_err(|error| error.body())?;
        let bounds = Bounds {
            deadline: self.deadline(),
            timeout,
        };
        match found.handler {
            Handler::Program(_) => self.program(found, call, bounds),
            Handler::Browser => self.browser_command(call, bounds),
            Handler::Checkpoint => self.checkpoint_command(call, bounds),
            // The policy's check refused them.
            Handler::Right { .. } => {
                let message = format!("{} is no command", call.command);
                Err(ErrorBody::new(ErrorCode::CommandUnsupported, message))
            }
            Handler::Unsupported { reason } => {
                Err(ErrorBody::new(ErrorCode::CommandUnsupported, reason))
            }
        }
    }

    /// When the guest must end.
    pub(crate) fn deadline(&self) -> Instant {
        self.until
    }

    fn program(
        &mut self,
        found: &CommandDescriptor,
        call: &CommandCall,
        bounds: Bounds,
    ) -> Result<Commanded, ErrorBody> {
        let call = programs::command(call, &self.setting.guest_mounts, &self.setting.cwd)?;
        let call = programs::with_secrets(self.setting, call);
        let step = self
            .recorder
            .run_within(self.guest.runtime.as_mut(), &call, bounds)?;
        let mut result = answer::result(found, &call, &step, bounds.timeout);
        self.keep_left(found, &call, &mut result)?;
        Ok(Commanded { call, step, result })
    }
}
