//! Standard streams of a program that a client runs in a held sandbox.
//!
//! The supervisor creates the pseudo-terminal on the host: the guest gets its slave end and can open no
//! other terminal of the host. The host's ends are non-blocking.

use crate::journal::queue::Streams;
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::os::fd::AsFd;
use wp_codebox_contracts::{ErrorBody, ErrorCode, TerminalSize};

/// Standard streams of a program: the ends that the program gets and the ends that the supervisor
/// keeps.
pub(super) struct Pair {
    pub guest: [OwnedFd; 3],
    pub ours: Streams,
}

/// Creates a pseudo-terminal of this size for a program.
pub(super) fn terminal(size: TerminalSize) -> Result<Pair, ErrorBody> {
    open_terminal(size).map_err(|e| unable("a terminal", e))
}

fn open_terminal(size: TerminalSize) -> Result<Pair, Errno> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    resize(&master, size)?;
    // `TIOCGPTPEER` opens the slave through the master, without a path that another devpts mount
    // could resolve.
    let slave = ioctl_tiocgptpeer(&master, flags)?;
    rustix::fs::fcntl_setfl(&master, OFlags::NONBLOCK)?;
    let copy = || rustix::io::fcntl_dupfd_cloexec(&slave, 3);
    Ok(Pair {
        guest: [copy()?, copy()?, slave],
        ours: Streams::Terminal { master },
    })
}

/// Creates three pipes as a program's standard streams.
pub(super) fn pipes() -> Result<Pair, ErrorBody> {
    open_pipes().map_err(|e| unable("pipes", e))
}

fn open_pipes() -> Result<Pair, Errno> {
    let (stdin_guest, stdin) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stdout, stdout_guest) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stderr, stderr_guest) = pipe_with(PipeFlags::CLOEXEC)?;
    for ours in [&stdin, &stdout, &stderr] {
        rustix::fs::fcntl_setfl(ours, OFlags::NONBLOCK)?;
    }
    Ok(Pair {
        guest: [stdin_guest, stdout_guest, stderr_guest],
        ours: Streams::Pipes {
            stdin,
            stdout,
            stderr,
        },
    })
}

/// Sets the size of a terminal; the kernel sends SIGWINCH to its foreground process group.
pub(crate) fn resize(master: impl AsFd, size: TerminalSize) -> Result<(), Errno> {
    tcsetwinsize(
        master,
        Winsize {
            ws_row: size.rows,
            ws_col: size.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        },
    )
}

fn unable(what: &str, error: Errno) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::RunFailed,
        format!("{what} for a program could not be made: {error}"),
    )
}
