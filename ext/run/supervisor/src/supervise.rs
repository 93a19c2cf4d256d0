//! Entry point of the supervisor process: one process supervises one run. It runs the guest and
//! talks to the caller through the frame socket.
//!
//! The process has a single thread until it has given up root. After that, the main thread executes
//! the run, one thread reads control inputs (see `control`), and one writes to the caller (see
//! `outbox`).

use crate::control::{self, ControlHandles};
use crate::host::outbox::{CallerAttachment, Outbox, SendTimeouts};
use crate::host::parent::{Answers, ParentLine};
use crate::host::peer;
use crate::prepared::job::Job;
use crate::request::placed::{self, PlacedRuns};
use crate::request::prepare::prepare;
use crate::request::service_plan::ServicePlan;
use crate::run;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, Frame, MAX_FRAME_BYTES, PROTOCOL_VERSION, RunRequest,
};
use wp_codebox_control::{FrameReader, monotonic_ns, write_frame};
use wp_codebox_policy::Redactor;
use wp_codebox_runtime::{CancelReason, Cancellation};

/// Maximum age of the caller's start timestamp when this process starts. An older timestamp is
/// considered wrong.
const LONGEST_ASKING: Duration = Duration::from_secs(3600);

/// Where the supervisor reads its first frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstFrames {
    /// From the frame socket.
    Socket,
    /// From standard input to its end, then from the frame socket: another program read them and
    /// handed the run over.
    StandardInput,
}

/// Starts this program a second time with the command `command`, e.g. `supervise`, and returns the
/// exit code for the current process. The started process inherits descriptor 3. The caller waits
/// only for the current process and never has to reap the started one.
pub fn spawn_detached(command: &str) -> ExitCode {
    let Ok(program) = std::env::current_exe() else {
        return ExitCode::from(125);
    };
    let child = Command::new(program)
        .arg(command)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn();
    if child.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(125)
    }
}

/// Supervises the run whose `start` frame arrives on `frames_fd`: a socket inherited from the
/// parent process, or the connection that a socket-activated service was started for.
///
/// `service` is the configuration for callers that are neither root nor the user of this process.
/// `placed` says what becomes of runs for other hosts.
pub fn supervise(
    frames_fd: i32,
    first_frames: FirstFrames,
    service: &peer::ServiceConfig<'_>,
    placed: PlacedRuns<'_>,
) -> ExitCode {
    let started = Instant::now();
    // A new session and process group: Ctrl-C or hang-up of a terminal reaches only the caller. The
    // call fails with EPERM for a process group leader, which is separate already.
    let _ = rustix::process::setsid();
    wp_codebox_backend_native::raise_open_files();
    let Ok(fd) = wp_codebox_backend_native::inherited_descriptor(frames_fd) else {
        return ExitCode::from(125);
    };
    let caller = match peer::check(&fd, service) {
        Ok(caller) => caller,
        Err(error) => return refuse(UnixStream::from(fd), error),
    };
    // Held until this process ends.
    let _place = match caller.take_place() {
        Ok(place) => place,
        Err(error) => return refuse(UnixStream::from(fd), error),
    };
    // `/proc/self/cwd` leads to the working directory without a check of the directories above it.
    if !caller.is_trusted() && std::env::set_current_dir("/").is_err() {
        return ExitCode::from(125);
    }
    let stream = UnixStream::from(fd);
    match converse(&stream, first_frames, &caller, started, placed) {
        Ok(status) => ExitCode::from(status),
        Err(error) => refuse(stream, error),
    }
}

/// Sends the caller the error that ends its request, and returns the exit status of this process.
fn refuse(stream: UnixStream, error: ErrorBody) -> ExitCode {
    let status = error.code.exit_status();
    // Writing fails if the caller has disconnected. The error is then lost, because only the caller
    // receives it.
    let _ = write_frame(&stream, &Frame::Error { error });
    ExitCode::from(status)
}

fn unavailable(e: std::io::Error) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::RunnerUnavailable,
        format!("the supervisor cannot communicate with its caller or its clients: {e}"),
    )
}

/// Installs a panic hook that writes the location of a panic into the run directory, because the
/// standard error of a detached supervisor is discarded. The process that later writes the final
/// record of the dead run reads the file.
fn note_crashes(run: &run::StartedRun) {
    let note = wp_codebox_runtime::crash_note(run.run_dir().path().to_owned());
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        note(info);
        before(info);
    }));
}

/// Handles one run request on the frame socket. Returns an error only if the run was not accepted.
fn converse(
    stream: &UnixStream,
    first_frames: FirstFrames,
    caller: &peer::Caller,
    started: Instant,
    placed: PlacedRuns<'_>,
) -> Result<u8, ErrorBody> {
    let socket = stream.try_clone().map_err(unavailable)?;
    let mut reader = match first_frames {
        FirstFrames::Socket => FrameReader::new(socket),
        FirstFrames::StandardInput => FrameReader::resume(socket, handed_over()?),
    };
    let (request, asked_ns) = start(&mut reader)?;
    if let (PlacedRuns::HandedOver(find), Some(_)) = (placed, &request.placement) {
        return Err(placed::hand_over(find(), reader, asked_ns, request));
    }
    let asked = asked_at(asked_ns, started);
    // The redactor is created first, so that no later error message contains a secret.
    let secrets = request.secrets.iter().map(|secret| secret.value.as_str());
    let services = ServicePlan::new(&request.services)?;
    let secrets = secrets.chain(services.secrets());
    let redactor = Arc::new(Redactor::with_secrets(&request.redact, secrets));
    let job = match request.placement.clone() {
        None => prepare(request, services, caller, &redactor)
            .map(|prepared| Job::Here(Box::new(prepared))),
        Some(placement) => placed::prepare(request, placement, caller, placed)
            .map(|job| Job::Placed(Box::new(job))),
    };
    let job = job.map_err(|error| redactor.redact_error(error))?;
    // The preparation has given up root, so threads may be started from now on.
    let run = run::begin(job, &redactor, asked)?;
    note_crashes(&run);
    let cancellation = Arc::new(Cancellation::default());
    let attachment = Arc::new(CallerAttachment::new(run.mode()));
    let answers = Arc::new(Answers::default());
    let queue = match run.queue() {
        Ok(queue) => Arc::new(queue),
        Err(error) => return Err(run.abandon(unavailable(error))),
    };
    let handles = ControlHandles {
        run_id: run.run_id().clone(),
        cancellation: Arc::clone(&cancellation),
        attachment: Arc::clone(&attachment),
        record: Arc::clone(run.run_dir().record()),
        answers: Arc::clone(&answers),
        redactor: Arc::clone(&redactor),
        queue: Arc::clone(&queue),
        run_dir: run.run_dir().path().to_owned(),
    };
    let outbox = stream
        .try_clone()
        .and_then(|stream| Outbox::start(stream, Arc::clone(&attachment), SendTimeouts::default()))
        .map_err(unavailable);
    let heard = control::listen(reader, run.run_dir(), handles);
    let outbox = match heard.and(outbox) {
        Ok(outbox) => outbox,
        Err(error) => return Err(run.abandon(error)),
    };
    outbox.send(&Frame::Accepted {
        protocol: PROTOCOL_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        run_id: run.run_id().clone(),
    });
    let parent = ParentLine {
        answers: &answers,
        outbox: &outbox,
        attachment: &attachment,
        cancellation: &cancellation,
    };
    let answer = run::execute(
        run,
        &redactor,
        &cancellation,
        &parent,
        &queue,
        placed,
        &mut |event| {
            queue.journalled(event.seq);
            outbox.send(&Frame::Event { event });
        },
    );
    // If the run failed early, clients may still wait: `close` answers their requests, and `finish`
    // ends their event streams.
    queue.close(&ErrorBody::new(
        ErrorCode::SandboxNotHeld,
        "the run has ended",
    ));
    queue.finish();
    let status = match &answer {
        Ok(result) => result.outcome.exit_status(),
        Err(error) => error.code.exit_status(),
    };
    // The run's final record is written. If the caller has disconnected, only this record holds the
    // result.
    let stop_signalled = || cancellation.reason() == Some(CancelReason::Signal);
    let frame = match answer {
        Ok(mut result) => {
            result.notices.extend(outbox.notice().map(str::to_owned));
            Frame::Result { result }
        }
        Err(error) => Frame::Error { error },
    };
    outbox.finish(&frame, stop_signalled);
    Ok(status)
}

/// Reads the frames that another program has read from the frame socket: one frame, and at most
/// what its buffer held beyond it.
fn handed_over() -> Result<Vec<u8>, ErrorBody> {
    let mut frames = Vec::new();
    let limit = 2 * MAX_FRAME_BYTES as u64;
    let read = std::io::stdin().take(limit).read_to_end(&mut frames);
    read.map_err(unavailable)?;
    Ok(frames)
}

/// Returns when the caller made its request. In another time namespace the caller's clock differs,
/// so an impossible timestamp is replaced by the start of this process.
fn asked_at(given: Option<u64>, started: Instant) -> Instant {
    let before = given
        .and_then(|given| monotonic_ns().checked_sub(given))
        .map(Duration::from_nanos)
        .filter(|before| *before <= LONGEST_ASKING);
    before
        .and_then(|before| Instant::now().checked_sub(before))
        .map_or(started, |asked| asked.min(started))
}

fn start(reader: &mut FrameReader) -> Result<(RunRequest, Option<u64>), ErrorBody> {
    match reader.next_frame() {
        Ok(Some(Frame::Start {
            protocol,
            asked_ns,
            request,
        })) if protocol == PROTOCOL_VERSION => Ok((request, asked_ns)),
        Ok(Some(Frame::Start { protocol, .. })) => Err(ErrorBody::new(
            ErrorCode::ExtensionStale,
            format!(
                "the caller uses frame protocol {protocol}, this runner {PROTOCOL_VERSION}: install the PHP extension and wp-codebox from the same release"
            ),
        )),
        Ok(_) => Err(ErrorBody::new(
            ErrorCode::InputInvalid,
            "the first message of the caller must be the frame `start`",
        )),
        Err(e) => Err(ErrorBody::new(ErrorCode::InputInvalid, e.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_of_a_run_is_counted_from_the_callers_request_timestamp() {
        let started = Instant::now();
        let minute = 60_000_000_000;
        let asked = asked_at(Some(monotonic_ns() - minute), started);
        assert!(started - asked >= Duration::from_secs(59), "{asked:?}");
    }

    #[test]
    fn missing_or_impossible_request_timestamp_is_replaced_by_supervisor_start() {
        let started = Instant::now();
        for given in [
            None,
            Some(u64::MAX),
            Some(0),
            Some(monotonic_ns() + 60_000_000_000),
        ] {
            // A machine that booted less than an hour ago accepts zero as a timestamp.
            if given != Some(0) || monotonic_ns() > 3_600_000_000_000 {
                assert_eq!(asked_at(given, started), started, "{given:?}");
            }
        }
    }
}
