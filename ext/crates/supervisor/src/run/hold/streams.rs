//! The standard streams of a program that runs beside others.
//!
//! A pseudo-terminal is made on the host's side, by the runner: the guest gets its slave and can
//! open no other. What stays here never blocks.

use crate::run::queue::Streams;
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::os::fd::AsFd;
use wp_codebox_contracts::{ErrorBody, ErrorCode, TerminalSize};

/// The guest's sides, and ours.
pub(super) struct Pair {
    pub guest: [OwnedFd; 3],
    pub ours: Streams,
}

/// A terminal of this size.
pub(super) fn terminal(size: TerminalSize) -> Result<Pair, ErrorBody> {
    open_terminal(size).map_err(|e| unable("a terminal", e))
}

fn open_terminal(size: TerminalSize) -> Result<Pair, Errno> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    resize(&master, size)?;
    // By way of the master: no path, which another mount of terminals could answer.
    let slave = ioctl_tiocgptpeer(&master, flags)?;
    rustix::fs::fcntl_setfl(&master, OFlags::NONBLOCK)?;
    let copy = || rustix::io::fcntl_dupfd_cloexec(&slave, 3);
    Ok(Pair {
        guest: [copy()?, copy()?, slave],
        ours: Streams::Terminal { master },
    })
}

/// Three pipes.
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

/// Tells a terminal its size; its foreground hears of it.
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
