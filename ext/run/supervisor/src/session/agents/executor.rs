//! Executes the agent's tool calls in the guest and records them.

use crate::captured::look;
use crate::session::guest::GuestContext;
use std::collections::BTreeMap;
use std::time::Duration;
use wp_codebox_agent::{GuestExecutor, MountChange, RawOutput, ToolContext, Tools};
use wp_codebox_contracts::{ErrorBody, GuestPhase};
use wp_codebox_policy::ToolSet;
use wp_codebox_runtime::{Bounds, Call, ExecutionEnd, Step};

/// Runs the programs of the agent's tools in the guest.
pub(super) struct RunExecutor<'a, 'r> {
    pub guest: GuestContext<'a, 'r>,
}

/// Creates the tools that run in this guest; `set` contains the tools that the request allows.
pub(super) fn tools<'a, 'r>(
    guest: GuestContext<'a, 'r>,
    set: ToolSet,
) -> Tools<RunExecutor<'a, 'r>> {
    let run = guest.run;
    let place = ToolContext {
        mounts: run.guest_mounts.clone(),
        cwd: run.cwd.clone(),
        checks: run.prepared.request.checks.clone(),
        environment: run.prepared.secrets.environment(GuestPhase::Work),
        wasi: run.wasi.tools.clone(),
    };
    Tools::new(RunExecutor { guest }, set, place)
}

impl RunExecutor<'_, '_> {
    fn bounds(&self, timeout: Duration) -> Bounds {
        self.guest.bounds(timeout)
    }
}

impl GuestExecutor for RunExecutor<'_, '_> {
    fn run(&mut self, call: &Call, timeout: Duration) -> Result<Step, ErrorBody> {
        let bounds = self.bounds(timeout);
        self.guest
            .recorder
            .run_within(self.guest.runtime, call, bounds)
    }

    fn take(&mut self, call: &Call, timeout: Duration, most: u64) -> Result<RawOutput, ErrorBody> {
        let bounds = self.bounds(timeout);
        let (step, bytes) = self
            .guest
            .recorder
            .take(self.guest.runtime, call, bounds, most)?;
        Ok(RawOutput { step, bytes })
    }

    fn is_alive(&mut self) -> Result<bool, ErrorBody> {
        let probe = Call {
            command: "alive".to_owned(),
            args: Vec::new(),
            phase: "tool",
            argv: vec!["true".to_owned()],
            env: BTreeMap::new(),
            cwd: self.guest.run.cwd.clone(),
            stdin: None,
        };
        let step = self.run(&probe, Duration::from_secs(10))?;
        Ok(matches!(step.result.end, ExecutionEnd::Exited { .. }))
    }

    fn changes(&mut self) -> Result<Vec<MountChange>, ErrorBody> {
        let seen = look(self.guest.run, self.guest.runtime)?;
        Ok(seen
            .into_iter()
            .zip(&self.guest.run.guest_mounts)
            .filter_map(|(changes, mount)| {
                let at = mount.target.clone();
                changes.map(|changes| MountChange { at, changes })
            })
            .collect())
    }

    fn clean(&self, text: &str) -> String {
        self.guest.recorder.clean(text)
    }

    fn executions(&self) -> usize {
        self.guest.recorder.evidence.executions.len()
    }

    fn executions_since(&self, count: usize) -> Vec<String> {
        let ran = self.guest.recorder.evidence.executions.iter().skip(count);
        ran.map(|one| one.id.clone()).collect()
    }
}
