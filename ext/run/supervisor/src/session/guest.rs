//! Builds and starts a guest of a run, and runs programs in it.

use crate::journal::recorder::Recorder;
use crate::prepared::context::RunContext;
use crate::prepared::{level, ready_components};
use crate::request::request_document::task_document;
use std::time::{Duration, Instant};
use wp_codebox_backend_native::{GuestEgress, NativeSpec, PlannedMount};
use wp_codebox_contracts::{ErrorBody, ErrorCode, GuestPhase, HostSource, TaskInput};
use wp_codebox_runtime::{Backend, Bounds, Call, Runtime, Step};

/// A running guest and what is needed to run programs in it.
pub(crate) struct GuestContext<'a, 'r> {
    pub run: &'a RunContext<'a>,
    pub recorder: &'a mut Recorder<'r>,
    pub runtime: &'a mut dyn Runtime,
    /// Whether the guest runs the agent's work or the checks; programs get different secrets.
    pub phase: GuestPhase,
    /// Time at which programs are stopped although the run continues; `None` if only the run's
    /// deadline applies.
    pub limit: Option<Instant>,
}

impl<'r> GuestContext<'_, 'r> {
    /// Borrows the guest for a part of the work.
    pub(crate) fn again(&mut self) -> GuestContext<'_, 'r> {
        GuestContext {
            run: self.run,
            recorder: self.recorder,
            runtime: self.runtime,
            phase: self.phase,
            limit: self.limit,
        }
    }

    /// Adds to a call the environment variables that all programs in this guest get.
    pub(crate) fn equipped(&self, call: Call) -> Call {
        match self.phase {
            GuestPhase::Work => self.run.work_call(call),
            GuestPhase::Check => self.run.check_call(call),
        }
    }

    /// Runs a program until it ends or a limit passes. Adds no environment variables to the call;
    /// [`equipped`](Self::equipped) does that.
    pub(crate) fn execute(&mut self, call: &Call) -> Result<Step, ErrorBody> {
        let bounds = self.bounds(Duration::MAX);
        self.recorder.run_within(self.runtime, call, bounds)
    }

    /// Returns the time limits of a program that may run for `timeout`.
    pub(crate) fn bounds(&self, timeout: Duration) -> Bounds {
        let left = self.limit.map_or(Duration::MAX, |limit| {
            limit.saturating_duration_since(Instant::now())
        });
        Bounds {
            deadline: self.run.clock.deadline,
            timeout: timeout.min(left),
        }
    }

    /// Returns the time at which an agent must end.
    pub(crate) fn deadline(&self) -> Instant {
        let run = self.run.clock.deadline;
        self.limit.map_or(run, |limit| limit.min(run))
    }
}

pub(crate) fn spec(
    context: &RunContext<'_>,
    phase: GuestPhase,
    lowers: impl Fn(usize) -> Vec<HostSource>,
    egress: GuestEgress,
) -> Result<NativeSpec, ErrorBody> {
    let mounts = context
        .mounts
        .iter()
        .zip(&context.guest_mounts)
        .enumerate()
        .map(|(index, (mount, guest))| {
            Ok(PlannedMount {
                index: u32::try_from(index).map_err(|_| {
                    ErrorBody::new(ErrorCode::MountInvalid, "the request has too many mounts")
                })?,
                lowers: lowers(index),
                target: guest.target.clone(),
                access: guest.access,
                view: mount.view,
                git: mount.git.clone(),
            })
        })
        .collect::<Result<Vec<_>, ErrorBody>>()?;
    Ok(NativeSpec {
        mounts,
        content: Vec::new(),
        components: ready_components::planned(&context.components),
        task_json: context
            .prepared
            .request
            .task
            .as_ref()
            .map(task_for_guest)
            .unwrap_or_default(),
        staged: context.staged.clone(),
        programs: match phase {
            GuestPhase::Work => {
                let programs = context.prepared.programs.iter();
                programs.chain(&context.wasi.programs).cloned().collect()
            }
            GuestPhase::Check => Vec::new(),
        },
        limits: context.prepared.limits,
        egress,
        level: context.level,
        tree: context.run_dir.scratch("guests")?.join(phase.as_str()),
    })
}

/// Starts a guest and compares the isolation that its probe programs report with the policy. The
/// check is made for every guest, even after a successful self-test.
pub(crate) fn guest(
    context: &RunContext<'_>,
    spec: &NativeSpec,
) -> Result<Box<dyn Runtime>, ErrorBody> {
    let runtime = context.backend.create(spec).map_err(|error| {
        level::explain(error, &context.prepared.request, &context.backend.sandbox)
    })?;
    let limit = context.prepared.limits.cpu_milli;
    level::check(&context.prepared.policy, limit, runtime.isolation())?;
    Ok(runtime)
}

/// Returns the task in the form that the guest gets: JSON without host paths.
fn task_for_guest(task: &TaskInput) -> String {
    serde_json::to_string(&task_document(task)).unwrap_or_default()
}
