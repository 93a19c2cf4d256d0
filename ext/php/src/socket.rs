//! The socket of a service that starts a supervisor for each connection (`wp_codebox.runner_socket`).
//!
//! A request names directories and may contain secrets, so it is sent only to a listener of a
//! trusted user: root (a service manager that listens for the service), the owner of the state
//! directory, or this process's own user.

use crate::guard::Failure;
use crate::ini::Settings;
use crate::interrupt::tick;
use crate::user;
use rustix::fd::OwnedFd;
use rustix::fs::{Access, AtFlags, CWD, FileType, accessat, stat};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect as connect_to, socket_with,
};
use rustix::process::geteuid;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{CodedError, ErrorBody};

/// Deadline for connecting while the listener's queue is full.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(20);

/// Reason why the connection to the service's socket failed.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(RunnerUnavailable, detail = Self::detail)]
pub(crate) enum SocketError {
    /// The path is longer than the 107 bytes of a unix socket address.
    #[error(
        "wp_codebox.runner_socket is too long for a socket path ({bytes} bytes, at most 107); set a shorter path in php.ini"
    )]
    #[code(ConfigInvalid)]
    TooLong { bytes: usize },
    /// The socket file does not exist.
    #[error(
        "there is no socket at {path}; start the service that makes it (`systemctl enable --now wp-codebox.socket`), or set wp_codebox.runner_socket to an empty text to let PHP start the runner"
    )]
    Missing { path: String },
    /// No process listens.
    #[error(
        "no process listens on the socket {path}; start its service (`systemctl restart wp-codebox.socket`), or set wp_codebox.runner_socket to an empty text to let PHP start the runner"
    )]
    Refused { path: String },
    /// The file permissions refuse access.
    #[error(
        "user {user} may not connect to the socket {path}; permit it as root with `wp-codebox users add {user}`, and restart php-fpm"
    )]
    Forbidden { path: String, user: String },
    /// The listener's queue of connections stayed full until the deadline.
    #[error("the socket {path} did not accept the connection within {} seconds; check the service that listens on it", CONNECT_TIMEOUT.as_secs())]
    Slow { path: String },
    /// The socket, or the process that listens on it, belongs to an untrusted user.
    #[error(
        "the socket {path} belongs to user {owner}, who is neither root, nor the owner of the state directory, nor this process's user; start the right service"
    )]
    Foreign { path: String, owner: u32 },
    /// The connection failed for a reason that no other variant describes.
    #[error(
        "the connection to the socket {path} failed: {errno}; check the service that listens on it"
    )]
    Failed { path: String, errno: Errno },
}

impl SocketError {
    fn detail(&self, body: ErrorBody) -> ErrorBody {
        body.with("setting", "wp_codebox.runner_socket")
    }
}

/// Connects to the service, and checks that the user who listens is trusted.
pub(crate) fn connect(settings: &Settings) -> Result<OwnedFd, Failure> {
    let path = || settings.runner_socket.clone();
    let deadline = Instant::now() + CONNECT_TIMEOUT;
    loop {
        match attempt(settings) {
            Ok(stream) => return Ok(stream),
            // With a full queue a non-blocking connect returns EAGAIN at once.
            Err(SocketError::Failed {
                errno: Errno::AGAIN | Errno::INTR,
                ..
            }) => {}
            Err(error) => return Err(error.into()),
        }
        if Instant::now() >= deadline {
            return Err(SocketError::Slow { path: path() }.into());
        }
        std::thread::sleep(PAUSE);
        tick()?;
    }
}

fn attempt(settings: &Settings) -> Result<OwnedFd, SocketError> {
    let path = || settings.runner_socket.clone();
    let failed = |errno| SocketError::Failed {
        path: path(),
        errno,
    };
    let address = address(&settings.runner_socket)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream =
        socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(failed)?;
    connect_to(&stream, &address).map_err(|errno| match errno {
        Errno::NOENT | Errno::NOTDIR => SocketError::Missing { path: path() },
        Errno::CONNREFUSED => SocketError::Refused { path: path() },
        Errno::ACCESS | Errno::PERM => SocketError::Forbidden {
            path: path(),
            user: user::name(geteuid().as_raw()),
        },
        errno => failed(errno),
    })?;
    let owner = socket_peercred(&stream).map_err(failed)?.uid.as_raw();
    if trusted(settings, owner) {
        Ok(stream)
    } else {
        Err(SocketError::Foreign {
            path: path(),
            owner,
        })
    }
}

fn address(path: &str) -> Result<SocketAddrUnix, SocketError> {
    SocketAddrUnix::new(path).map_err(|_| SocketError::TooLong { bytes: path.len() })
}

fn trusted(settings: &Settings, uid: u32) -> bool {
    uid == 0
        || uid == geteuid().as_raw()
        || stat(settings.state_dir.as_str()).is_ok_and(|state| state.st_uid == uid)
}

/// Returns a row of `wp-codebox/doctor/v1`: whether the socket exists and is accessible to this
/// user. Does not connect, because every connection starts a supervisor.
pub(crate) fn check(settings: &Settings) -> Value {
    let path = &settings.runner_socket;
    let problem = match (address(path), stat(path.as_str())) {
        (Err(error), _) => Some(error),
        (Ok(_), Err(_)) => Some(SocketError::Missing { path: path.clone() }),
        (Ok(_), Ok(found)) if FileType::from_raw_mode(found.st_mode) != FileType::Socket => {
            Some(SocketError::Refused { path: path.clone() })
        }
        (Ok(_), Ok(found)) if !trusted(settings, found.st_uid) => Some(SocketError::Foreign {
            path: path.clone(),
            owner: found.st_uid,
        }),
        (Ok(_), Ok(_)) => accessat(CWD, path.as_str(), Access::WRITE_OK, AtFlags::EACCESS)
            .err()
            .map(|_| SocketError::Forbidden {
                path: path.clone(),
                user: user::name(geteuid().as_raw()),
            }),
    };
    match problem {
        None => json!({
            "id": "runner-socket",
            "status": "ok",
            "message": format!("runs go to the service behind {path}"),
        }),
        Some(error) => {
            let text = error.to_string();
            let (message, fix) = text.split_once("; ").unwrap_or((&text, ""));
            json!({ "id": "runner-socket", "status": "error", "message": message, "fix": fix })
        }
    }
}
