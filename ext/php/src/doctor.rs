//! Runs `<supervisor> doctor --json`, and reads JSON documents of other supervisor subcommands from a pipe.

use crate::guard::Failure;
use crate::ini::Settings;
use crate::interrupt::{TICK, tick};
use crate::socket;
use crate::spawn::{Ended, Wiring, spawn};
use ext_php_rs::zend::BailoutGuard;
use rustix::event::PollFlags;
use rustix::fd::AsFd;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use serde_json::Value;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode, schema_id};
use wp_codebox_control::wait_for;

const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// Reason why a subcommand of the supervisor returned no usable JSON document.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(RunnerUnavailable)]
enum DoctorError {
    #[error(
        "PHP could not create a pipe to the runner (wp-codebox): {errno}; check PHP's limit on open files"
    )]
    Pipe { errno: Errno },
    #[error(
        "the runner did not end `{command}` within {seconds} seconds; run `wp-codebox {command}` by hand"
    )]
    Slow { command: String, seconds: u64 },
    #[error(
        "the runner's `{command}` printed more than {bytes} bytes; install the same version of the extension and of `wp-codebox`"
    )]
    TooLong { command: String, bytes: usize },
    #[error(
        "the runner's `{command}` ended ({ended:?}) without a JSON answer; run `wp-codebox {command}` by hand"
    )]
    NoAnswer { command: String, ended: Ended },
    #[error(
        "the runner's self-test returned a document that this extension does not know; install the same version of the extension and of `wp-codebox`"
    )]
    Foreign,
}

/// Runs the host self-test and returns its report, a document `wp-codebox/doctor/v1`.
pub(crate) fn run(settings: &Settings) -> Result<Value, Failure> {
    // What a run of this site would get: the supervisor has defaults of its own for empty settings.
    let options = [
        ("--state", &settings.state_dir),
        ("--share", &settings.share_dir),
        ("--launcher", &settings.launcher),
        ("--php", &settings.php_binary),
        ("--cgroup", &settings.cgroup),
        ("--identity", &settings.identity),
        ("--guest-ids", &settings.guest_ids),
        ("--agents-dir", &settings.agents_dir),
    ];
    let mut arguments = vec!["doctor", "--json"];
    for (option, value) in options.iter().filter(|(_, value)| !value.is_empty()) {
        arguments.extend([*option, value.as_str()]);
    }
    let mut answer = ask(settings, &arguments, Bounds::default())?;
    if answer["schema"] != schema_id::DOCTOR {
        return Err(DoctorError::Foreign.into());
    }
    // The check of the runner socket runs here, because the supervisor does not know how PHP connects
    // to it.
    if !settings.runner_socket.is_empty()
        && let Some(checks) = answer["checks"].as_array_mut()
    {
        let row = socket::check(settings);
        let failed = row["status"] == "error";
        checks.push(row);
        if failed {
            answer["status"] = "error".into();
        }
    }
    Ok(answer)
}

/// Limits on the time and size of a supervisor's reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Time limit of the whole call.
    pub(crate) timeout: Duration,
    /// Maximum size of the reply in bytes.
    pub(crate) max_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            timeout: TIMEOUT,
            max_bytes: MAX_ANSWER_BYTES,
        }
    }
}

/// Returns the supervisor's reply if it has this schema. If the reply is an error document, returns
/// that error. For any other reply, returns an error that names `command`.
pub(crate) fn expect(answer: Value, schema: &str, command: &str) -> Result<Value, Failure> {
    if answer["schema"] == schema {
        return Ok(answer);
    }
    let error = serde_json::from_value::<ErrorBody>(answer["error"].clone()).unwrap_or_else(|_| {
        ErrorBody::new(
            ErrorCode::RunnerUnavailable,
            format!(
                "the runner's `{command}` returned a document that this extension does not know; install the same version of the extension and of `wp-codebox`"
            ),
        )
    });
    Err(error.into())
}

/// Runs the supervisor with these arguments and returns the JSON document that it prints, whatever its
/// exit status; the caller must check whether the document is a result or an error.
pub(crate) fn ask(
    settings: &Settings,
    arguments: &[&str],
    bounds: Bounds,
) -> Result<Value, Failure> {
    let command = arguments.first().copied().unwrap_or_default().to_owned();
    let slow = || DoctorError::Slow {
        command: command.clone(),
        seconds: bounds.timeout.as_secs(),
    };
    let broken = |errno| DoctorError::Pipe { errno };
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).map_err(broken)?;
    fcntl_setfl(&reader, OFlags::NONBLOCK).map_err(broken)?;
    let reader = BailoutGuard::new(reader);
    let mut child = BailoutGuard::new(spawn(
        &settings.runner,
        arguments,
        Wiring::Stdout(writer.as_fd()),
    )?);
    drop(writer);

    let deadline = Instant::now() + bounds.timeout;
    let mut answer = Vec::new();
    let mut chunk = vec![0_u8; 64 * 1024];
    loop {
        match rustix::io::read(&*reader, &mut chunk[..]) {
            Ok(0) => break,
            Ok(count) => answer.extend_from_slice(&chunk[..count]),
            Err(Errno::AGAIN | Errno::INTR) => {
                wait_for(reader.as_fd(), PollFlags::IN, TICK);
                tick()?;
            }
            Err(errno) => return Err(broken(errno).into()),
        }
        if answer.len() > bounds.max_bytes {
            let bytes = bounds.max_bytes;
            return Err(DoctorError::TooLong { command, bytes }.into());
        }
        if Instant::now() > deadline {
            return Err(slow().into());
        }
    }
    let ended = loop {
        if let Some(ended) = child.try_wait() {
            break ended;
        }
        match child.ended_fd() {
            Some(fd) => wait_for(fd, PollFlags::IN, TICK),
            None => std::thread::sleep(Duration::from_millis(2)),
        }
        tick()?;
        if Instant::now() > deadline {
            return Err(slow().into());
        }
    };
    match serde_json::from_slice::<Value>(&answer) {
        Ok(document) => Ok(document),
        Err(_) => Err(DoctorError::NoAnswer { command, ended }.into()),
    }
}
