//! A run that is sent to another host. This process opens what the task names with the rights of its
//! caller, and has the run's directory, journal and control socket like any other supervisor; a
//! [`Placer`] does the rest.

use super::components::{self, OpenComponents};
use super::mounts::open_mount;
use super::prepare::default_policy;
use super::recorder::Recorder;
use super::sources::OpenMount;
use crate::peer::Caller;
use serde_json::Value;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, EventType, ExecutionId, KernelIds, Limits, RunRequest, RunResult,
};
use wp_codebox_policy as policy;
use wp_codebox_runtime::{Cancellation, Owner, RunDir, StateDir};

/// A run whose directories are open.
#[derive(Debug)]
pub(crate) struct PlacedJob {
    pub request: RunRequest,
    pub limits: Limits,
    pub state: StateDir,
    mounts: Vec<OpenMount>,
    components: OpenComponents,
    wordpress: OwnedFd,
}

/// A host directory that another host needs for the run.
#[derive(Debug, Clone, Copy)]
pub struct PlacedDirectory<'a> {
    /// Path as the request names it.
    pub named: &'a str,
    /// The open directory.
    pub open: BorrowedFd<'a>,
}

/// What a placer gets.
pub struct PlacedRun<'a> {
    /// The request, with secrets and host paths.
    pub request: &'a RunRequest,
    /// State directory of this host.
    pub state: &'a StateDir,
    /// Directory of the run, which is removed after its end.
    pub scratch: &'a Path,
    /// Directories of the mounts, in the order of the request.
    pub mounts: Vec<PlacedDirectory<'a>>,
    /// Directories of the components that can be used.
    pub components: Vec<PlacedDirectory<'a>>,
    /// Directory of WordPress.
    pub wordpress: PlacedDirectory<'a>,
    /// Tells when the run was cancelled.
    pub cancellation: &'a Arc<Cancellation>,
}

/// Records an event of the run.
pub type RecordEvent<'a> =
    dyn FnMut(EventType, Option<&ExecutionId>, Value) -> Result<(), ErrorBody> + 'a;

/// Runs a request on another host.
pub trait Placer: Sync {
    /// Runs the request to its end and stores its bundle on this host.
    ///
    /// # Errors
    /// The run has no outcome; the code says why.
    fn place(
        &self,
        run: &PlacedRun<'_>,
        event: &mut RecordEvent<'_>,
    ) -> Result<RunResult, ErrorBody>;
}

/// Checks the request, opens its directories with the caller's rights and gives up root.
pub(crate) fn prepare(request: RunRequest, caller: &Caller) -> Result<PlacedJob, ErrorBody> {
    caller.check(&request)?;
    let job = caller.with_caller_ids(|| open(request))??;
    let Owner { uid, gid } = job.state.owner();
    if !caller.has_rights_of(KernelIds { uid, gid }) {
        return Err(ErrorBody::new(
            ErrorCode::Forbidden,
            format!("the state directory belongs to uid {uid} and gid {gid}, but the caller is not that user or not in that group: use a state directory of the caller's own user and group"),
        ));
    }
    job.state.become_owner().map_err(|e| e.body())?;
    Ok(job)
}

fn open(request: RunRequest) -> Result<PlacedJob, ErrorBody> {
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
    let places = components::check(&request, &targets, &rules)?;
    let state = StateDir::open(Path::new(&request.paths.state_dir)).map_err(|e| e.body())?;
    let mounts = request
        .mounts
        .iter()
        .zip(targets)
        .map(|(mount, target)| open_mount(mount, target, &request))
        .collect::<Result<Vec<_>, _>>()?;
    let components = components::open(&request, places)?;
    let flags = rustix::fs::OFlags::RDONLY
        | rustix::fs::OFlags::DIRECTORY
        | rustix::fs::OFlags::CLOEXEC;
    let wordpress = rustix::fs::open(
        request.paths.wordpress.as_str(),
        flags,
        rustix::fs::Mode::empty(),
    )
    .map_err(|error| {
        ErrorBody::new(
            ErrorCode::WordpressUnavailable,
            format!("the WordPress directory cannot be read: {error}"),
        )
    })?;
    Ok(PlacedJob {
        request,
        limits,
        state,
        mounts,
        components,
        wordpress,
    })
}

/// Runs the job on another host.
pub(super) fn run(
    job: &PlacedJob,
    placer: Option<&dyn Placer>,
    cancellation: &Arc<Cancellation>,
    run_dir: &RunDir,
    recorder: &mut Recorder<'_>,
) -> Result<RunResult, ErrorBody> {
    let Some(placer) = placer else {
        return Err(ErrorBody::new(
            ErrorCode::PlacementUnsupported,
            "this program sends no runs to other hosts",
        ));
    };
    let scratch = run_dir.scratch("placement").map_err(|e| e.body())?;
    let mounts = job.mounts.iter().map(directory);
    let components = job.components.rows.iter().map(|row| directory(&row.mount));
    let placed = PlacedRun {
        request: &job.request,
        state: &job.state,
        scratch: &scratch,
        mounts: mounts.collect(),
        components: components.collect(),
        wordpress: PlacedDirectory {
            named: &job.request.paths.wordpress,
            open: job.wordpress.as_fd(),
        },
        cancellation,
    };
    placer.place(&placed, &mut |kind, execution, data| {
        recorder.event(kind, execution, data)
    })
}

fn directory(mount: &OpenMount) -> PlacedDirectory<'_> {
    PlacedDirectory {
        named: &mount.request.source,
        open: mount.source.as_fd(),
    }
}
