//! Runs an agent's tools in the working guest and records them.

use super::super::captured::look;
use super::super::recorder::Recorder;
use super::bench::Bench;
use crate::run::context::RunContext;
use std::collections::BTreeMap;
use std::time::Duration;
use wp_codebox_agent::{GuestExecutor, MountChange, Place, Taken, Tools};
use wp_codebox_contracts::{ErrorBody, GuestPhase};
use wp_codebox_policy::ToolSet;
use wp_codebox_runtime::{Bounds, Call, ExecutionEnd, Runtime, Step};

/// Carries tools out in the guest of a run.
pub(super) struct RunExecutor<'a, 'r> {
    pub context: &'a RunContext<'a>,
    pub recorder: &'a mut Recorder<'r>,
    pub runtime: &'a mut dyn Runtime,
}

/// The tools of a run's request, at work in its guest.
pub(super) fn tools<'a, 'r>(bench: Bench<'a, 'r>, set: ToolSet) -> Tools<RunExecutor<'a, 'r>> {
    let context = bench.context;
    let place = Place {
        mounts: context.guest_mounts.clone(),
        cwd: context.cwd.clone(),
        checks: context.prepared.request.checks.clone(),
        environment: context.prepared.secrets.environment(GuestPhase::Work),
    };
    let executor = RunExecutor {
        context,
        recorder: bench.recorder,
        runtime: bench.runtime,
    };
    Tools::new(executor, set, place)
}

impl RunExecutor<'_, '_> {
    fn bounds(&self, timeout: Duration) -> Bounds {
        Bounds {
            deadline: self.context.clock.deadline,
            timeout,
        }
    }
}

impl GuestExecutor for RunExecutor<'_, '_> {
    fn run(&mut self, call: &Call, timeout: Duration) -> Result<Step, ErrorBody> {
        let bounds = self.bounds(timeout);
        self.recorder.run_within(self.runtime, call, bounds)
    }

    fn take(&mut self, call: &Call, timeout: Duration, most: u64) -> Result<Taken, ErrorBody> {
        let bounds = self.bounds(timeout);
        let (step, bytes) = self.recorder.take(self.runtime, call, bounds, most)?;
        Ok(Taken { step, bytes })
    }

    fn is_alive(&mut self) -> Result<bool, ErrorBody> {
        let probe = Call {
            command: "alive".to_owned(),
            args: Vec::new(),
            phase: "tool",
            argv: vec!["true".to_owned()],
            env: BTreeMap::new(),
            cwd: self.context.cwd.clone(),
            stdin: None,
        };
        let step = self.run(&probe, Duration::from_secs(10))?;
        Ok(matches!(step.result.end, ExecutionEnd::Exited { .. }))
    }

    fn changes(&mut self) -> Result<Vec<MountChange>, ErrorBody> {
        let seen = look(self.context, self.runtime)?;
        Ok(seen
            .into_iter()
            .zip(&self.context.guest_mounts)
            .filter_map(|(changes, mount)| {
                let at = mount.workspace.clone();
                changes.map(|changes| MountChange { at, changes })
            })
            .collect())
    }

    fn clean(&self, text: &str) -> String {
        self.recorder.clean(text)
    }

    fn executions(&self) -> usize {
        self.recorder.executions.len()
    }

    fn executions_since(&self, count: usize) -> Vec<String> {
        let ran = self.recorder.executions.iter().skip(count);
        ran.map(|one| one.id.clone()).collect()
    }
}
