//! One process, one run: the frame socket on one side, the guest on the other.
//!
//! Until root is given up there is a single thread. Afterwards a second one
//! listens for `cancel`, for the end of the socket and for signals; it never
//! touches the run but through [`Cancellation`].

use crate::frames::{FrameReader, write_frame};
use crate::run;
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use wp_codebox_contracts::{ErrorBody, ErrorCode, Frame, PROTOCOL_VERSION, RunMode, RunRequest};
use wp_codebox_policy::Redactor;
use wp_codebox_runtime::{CancelReason, Cancellation};

/// Starts a supervisor that inherits descriptor 3 and leaves: the caller waits for
/// this process only, so no zombie of the supervisor is ever its.
pub(crate) fn spawn_detached() -> ExitCode {
    let Ok(program) = std::env::current_exe() else {
        return ExitCode::from(125);
    };
    let child = Command::new(program)
        .arg("supervise")
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

/// Supervises the run whose `start` frame arrives on `frames_fd`.
pub(crate) fn supervise(frames_fd: i32) -> ExitCode {
    let Ok(fd) = wp_codebox_backend_native::inherited_descriptor(frames_fd) else {
        return ExitCode::from(125);
    };
    let stream = UnixStream::from(fd);
    let answer = converse(&stream);
    let (frame, status) = match answer {
        Ok(result) => {
            let status = result.outcome.exit_status();
            (Frame::Result { result }, status)
        }
        Err(error) => {
            let status = error.code.exit_status();
            (Frame::Error { error }, status)
        }
    };
    // A caller that is gone cannot be told; the record of the run says it.
    let _ = write_frame(&stream, &frame);
    ExitCode::from(status)
}

fn converse(stream: &UnixStream) -> Result<wp_codebox_contracts::RunResult, ErrorBody> {
    let unavailable = |e: std::io::Error| {
        ErrorBody::new(
            ErrorCode::RunnerUnavailable,
            format!("the frame socket failed: {e}"),
        )
    };
    let mut reader = FrameReader::new(stream.try_clone().map_err(unavailable)?);
    let request = match reader.next() {
        Ok(Some(Frame::Start { protocol, request })) if protocol == PROTOCOL_VERSION => request,
        Ok(Some(Frame::Start { protocol, .. })) => {
            return Err(ErrorBody::new(
                ErrorCode::ExtensionStale,
                format!(
                    "the caller speaks protocol {protocol}, this runner {PROTOCOL_VERSION}: install extension and runner of one version"
                ),
            ));
        }
        Ok(_) => {
            return Err(ErrorBody::new(
                ErrorCode::InputInvalid,
                "the first frame must be `start`",
            ));
        }
        Err(e) => return Err(ErrorBody::new(ErrorCode::InputInvalid, e.to_string())),
    };
    // Made first: no error from here on names a secret.
    let secrets = request.secrets.iter().map(|secret| secret.value.as_str());
    let redactor = Redactor::with_secrets(&request.redact, secrets);
    let prepared = run::prepare(request).map_err(|error| redactor.redact_error(error))?;
    let cancellation = Arc::new(Cancellation::default());
    listen(reader, prepared.request(), Arc::clone(&cancellation)).map_err(unavailable)?;
    let accepted = Frame::Accepted {
        protocol: PROTOCOL_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        run_id: prepared.request().run_id.clone(),
    };
    write_frame(stream, &accepted).map_err(unavailable)?;
    run::execute(prepared, &redactor, &cancellation, &mut |event| {
        // A caller that stopped reading is noticed by the listener.
        let _ = write_frame(stream, &Frame::Event { event });
    })
}

/// Listens in a thread of its own until the process ends.
fn listen(
    reader: FrameReader,
    request: &RunRequest,
    cancellation: Arc<Cancellation>,
) -> std::io::Result<()> {
    let mode = request.mode;
    let (stream, buffered) = reader.into_parts();
    stream.set_nonblocking(false)?;
    std::thread::Builder::new()
        .name("control".to_owned())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let Ok(runtime) = runtime else {
                return cancellation.cancel(CancelReason::Signal);
            };
            runtime.block_on(control(stream, buffered, mode, &cancellation));
        })?;
    Ok(())
}

async fn control(
    stream: UnixStream,
    buffered: Vec<u8>,
    mode: RunMode,
    cancellation: &Cancellation,
) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        return cancellation.cancel(CancelReason::Signal);
    };
    // Frames are read on a blocking thread: the socket is shared with the writer,
    // which must block, and O_NONBLOCK would be shared too.
    let frames = tokio::task::spawn_blocking(move || {
        let mut reader = FrameReader::resume(stream, buffered);
        match reader.next() {
            Ok(Some(Frame::Cancel)) => Some(CancelReason::Asked),
            Ok(None) if mode == RunMode::Detached => None,
            _ => Some(CancelReason::CallerGone),
        }
    });
    let reason = tokio::select! {
        reason = frames => reason.ok().flatten(),
        _ = terminate.recv() => Some(CancelReason::Signal),
        _ = interrupt.recv() => Some(CancelReason::Signal),
    };
    match reason {
        Some(reason) => cancellation.cancel(reason),
        None => {
            tokio::select! {
                _ = terminate.recv() => {},
                _ = interrupt.recv() => {},
            }
            cancellation.cancel(CancelReason::Signal);
        }
    }
}
