//! A run that is sent to another host. This process has the run's directory, journal and control
//! socket like any other supervisor; a [`Placer`] does the rest.
//!
//! The directories that the task names are read with the rights of the state directory's owner.

use super::components;
use super::end_check::{self, EarlierBundle};
use super::prepare::default_policy;
use crate::host::peer::Caller;
use crate::journal::recorder::Recorder;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use wp_codebox_contracts::{
    ClusterPlacement, ErrorBody, ErrorCode, EventType, ExecutionId, KernelIds, Limits,
    PlacementChoice, RunPlacement, RunRequest, RunResult,
};
use wp_codebox_policy as policy;
use wp_codebox_runtime::{Cancellation, Owner, RunDir, StateDir};

/// A run for another host, after root was given up.
#[derive(Debug)]
pub(crate) struct PlacedJob {
    pub request: RunRequest,
    pub placement: ClusterPlacement,
    pub limits: Limits,
    pub state: StateDir,
}

/// A run for another host, as a [`Placer`] receives it.
pub struct PlacedRun<'a> {
    /// The request, with secrets and host paths.
    pub request: &'a RunRequest,
    /// Cluster that runs the request, and settings for running it there.
    pub placement: &'a ClusterPlacement,
    /// State directory of this host.
    pub state: &'a StateDir,
    /// Directory for temporary files, which is removed after the end of the run.
    pub scratch: &'a Path,
    /// Shows whether the run was cancelled, which can happen at any time.
    pub cancellation: &'a Arc<Cancellation>,
}

/// Function that records an event of the run.
pub type RecordEvent<'a> =
    dyn FnMut(EventType, Option<&ExecutionId>, Value) -> Result<(), ErrorBody> + 'a;

/// Runs a request on another host.
pub trait Placer: Sync {
    /// Returns the cluster that the operator of this host has configured; `choice` replaces some of
    /// its settings. Reads the configuration with the rights of the state directory's owner.
    ///
    /// # Errors
    /// `wp_codebox_cluster_not_configured` without a configuration, `wp_codebox_config_invalid` if
    /// it cannot be used.
    fn configured(
        &self,
        state: &StateDir,
        choice: &PlacementChoice,
    ) -> Result<ClusterPlacement, ErrorBody>;

    /// Runs the request to its end and stores its bundle on this host.
    ///
    /// # Errors
    /// If the run has no outcome; the error code says why.
    fn place(
        &self,
        run: &PlacedRun<'_>,
        event: &mut RecordEvent<'_>,
    ) -> Result<RunResult, ErrorBody>;
}

/// Checks the request as for a run on this host, then gives up root.
pub(crate) fn prepare(
    mut request: RunRequest,
    placement: RunPlacement,
    caller: &Caller,
    placer: Option<&dyn Placer>,
) -> Result<PlacedJob, ErrorBody> {
    caller.admit(&mut request)?;
    policy::check_request(&request, policy::CheckedBy::Supervisor)?;
    let limits = request
        .limits
        .resolve()
        .map_err(|e| ErrorBody::new(ErrorCode::LimitInvalid, e.to_string()))?;
    let rules = match &request.policy {
        Some(given) => {
            let document = serde_json::to_value(given).unwrap_or_default();
            policy::parse(&document).map_err(|e| e.body())?
        }
        None => default_policy(&request),
    };
    let targets = policy::check_mounts(&request.mounts, &rules).map_err(|e| e.body())?;
    components::check(&request, &targets, &rules)?;
    let open = || StateDir::open(Path::new(&request.paths.state_dir));
    let state = caller.with_caller_ids(open)?.map_err(|e| e.body())?;
    let Owner { uid, gid } = state.owner();
    if !caller.has_rights_of(KernelIds { uid, gid }) {
        return Err(ErrorBody::new(
            ErrorCode::Forbidden,
            format!(
                "the state directory belongs to uid {uid} and gid {gid}, but the caller is not that user or not in that group: use a state directory of the caller's own user and group"
            ),
        ));
    }
    state.become_owner().map_err(|e| e.body())?;
    let placement = match placement {
        RunPlacement::Named(named) => named,
        RunPlacement::Configured(choice) => {
            placer.ok_or_else(no_placer)?.configured(&state, &choice)?
        }
    };
    Ok(PlacedJob {
        request,
        placement,
        limits,
        state,
    })
}

fn no_placer() -> ErrorBody {
    ErrorBody::new(
        ErrorCode::PlacementUnsupported,
        "this command cannot send runs to other hosts",
    )
}

/// Runs the job on another host.
pub(crate) fn run(
    job: &PlacedJob,
    placer: Option<&dyn Placer>,
    cancellation: &Arc<Cancellation>,
    run_dir: &RunDir,
    recorder: &mut Recorder<'_>,
) -> Result<RunResult, ErrorBody> {
    let placer = placer.ok_or_else(no_placer)?;
    end_check::check(&job.state, &job.request, EarlierBundle::Accept)?;
    let scratch = run_dir.scratch("placement").map_err(|e| e.body())?;
    let placed = PlacedRun {
        request: &job.request,
        placement: &job.placement,
        state: &job.state,
        scratch: &scratch,
        cancellation,
    };
    placer.place(&placed, &mut |kind, execution, data| {
        recorder.event(kind, execution, data)
    })
}
