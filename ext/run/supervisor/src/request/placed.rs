//! A run that is sent to another host. This process has the run's directory, journal and control
//! socket like any other supervisor; a [`Placer`] does the rest.
//!
//! The directories that the task names are read with the rights of the state directory's owner.

use super::components;
use super::end_check::{self, EarlierBundle};
use super::prepare::default_policy;
use crate::host::peer::Caller;
use crate::journal::recorder::Recorder;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};
use serde_json::Value;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use wp_codebox_contracts::{
    ClusterPlacement, ErrorBody, ErrorCode, EventType, ExecutionId, Frame, KernelIds, Limits,
    PROTOCOL_VERSION, PlacementChoice, RunPlacement, RunRequest, RunResult,
};
use wp_codebox_control::{FrameReader, frame_bytes};
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

/// What a supervisor does with a run for another host.
#[derive(Clone, Copy)]
pub enum PlacedRuns<'a> {
    /// It sends the run there.
    Sent(&'a dyn Placer),
    /// It replaces itself by the program that this function finds, which sends the run.
    HandedOver(fn() -> Option<PathBuf>),
}

/// Replaces this process by a program that has a [`Placer`], with the frame socket and the frames
/// that this process has read from it. Returns the error if there is no such program or it cannot be
/// executed. Nothing was prepared for the run yet.
pub(crate) fn hand_over(
    program: Option<PathBuf>,
    reader: FrameReader,
    asked_ns: Option<u64>,
    request: RunRequest,
) -> ErrorBody {
    let Some(program) = program else {
        return not_installed();
    };
    let start = Frame::Start {
        protocol: PROTOCOL_VERSION,
        asked_ns,
        request,
    };
    match execute(&program, reader, &start) {
        Ok(error) | Err(error) => ErrorBody::new(
            ErrorCode::RunnerUnavailable,
            format!("the run cannot be handed over to wp-codebox-platform: {error}"),
        ),
    }
}

/// The frames are passed as an anonymous file: a pipe has no reader before the program is executed.
fn execute(program: &Path, reader: FrameReader, start: &Frame) -> io::Result<io::Error> {
    let (socket, read) = reader.into_parts();
    let mut frames = File::from(memfd_create("frames", MemfdFlags::CLOEXEC)?);
    frames.write_all(&frame_bytes(start)?)?;
    frames.write_all(&read)?;
    frames.rewind()?;
    fcntl_setfd(&socket, FdFlags::empty())?;
    // The arguments of this process are those of a supervisor; the last one of two options counts.
    let error = Command::new(program)
        .args(std::env::args_os().skip(1))
        .arg(format!("--frames-fd={}", socket.as_raw_fd()))
        .arg("--handed-over")
        .stdin(frames)
        .exec();
    Ok(error)
}

fn not_installed() -> ErrorBody {
    ErrorBody::new(
        ErrorCode::PlacementUnsupported,
        "runs on other hosts need the program wp-codebox-platform, which is not installed on this host",
    )
    .hint("install the package wp-codebox-platform, or run the task on this host")
}

/// Checks the request as for a run on this host, then gives up root.
pub(crate) fn prepare(
    mut request: RunRequest,
    placement: RunPlacement,
    caller: &Caller,
    placed: PlacedRuns<'_>,
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
            policy::parse(&document)?
        }
        None => default_policy(&request),
    };
    let targets = policy::check_mounts(&request.mounts, &rules)?;
    components::check(&request, &targets, &rules)?;
    let open = || StateDir::open(Path::new(&request.paths.state_dir));
    let state = caller.with_caller_ids(open)??;
    let Owner { uid, gid } = state.owner();
    if !caller.has_rights_of(KernelIds { uid, gid }) {
        return Err(ErrorBody::new(
            ErrorCode::Forbidden,
            format!(
                "the state directory belongs to uid {uid} and gid {gid}, but the caller is not that user or not in that group: use a state directory of the caller's own user and group"
            ),
        ));
    }
    state.become_owner()?;
    let placement = match placement {
        RunPlacement::Named(named) => named,
        RunPlacement::Configured(choice) => placed.placer()?.configured(&state, &choice)?,
    };
    Ok(PlacedJob {
        request,
        placement,
        limits,
        state,
    })
}

impl<'a> PlacedRuns<'a> {
    fn placer(self) -> Result<&'a dyn Placer, ErrorBody> {
        match self {
            Self::Sent(placer) => Ok(placer),
            Self::HandedOver(_) => Err(not_installed()),
        }
    }
}

/// Runs the job on another host.
pub(crate) fn run(
    job: &PlacedJob,
    placed: PlacedRuns<'_>,
    cancellation: &Arc<Cancellation>,
    run_dir: &RunDir,
    recorder: &mut Recorder<'_>,
) -> Result<RunResult, ErrorBody> {
    let placer = placed.placer()?;
    end_check::check(&job.state, &job.request, EarlierBundle::Accept)?;
    let scratch = run_dir.scratch("placement")?;
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
