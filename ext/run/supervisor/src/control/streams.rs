//! Streams of a program, registered with epoll for reading and writing.

use super::handles::ControlHandles;
use super::stdin::Stdin;
use crate::journal::output::{PromptRedactor, StreamRedactor};
use crate::journal::queue::Streams;
use std::os::fd::{AsRawFd, OwnedFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use wp_codebox_contracts::{OutputStream, StdinFlow};

/// Standard streams of one program.
pub(super) struct Streamed<'a> {
    pub(super) terminal: Option<OwnedFd>,
    pub(super) stdin: Stdin,
    pub(super) outs: [Out<'a>; 2],
}

/// One output stream of a program, with one redactor for the client and one for the journal.
pub(super) struct Out<'a> {
    pub(super) stream: OutputStream,
    pub(super) fd: Option<AsyncFd<OwnedFd>>,
    pub(super) client: PromptRedactor<'a>,
    pub(super) journal: StreamRedactor<'a>,
}

impl<'a> Streamed<'a> {
    pub(super) fn new(
        streams: Streams,
        flow: StdinFlow,
        handles: &'a ControlHandles,
    ) -> std::io::Result<Self> {
        let readable = |fd| watched(fd, Interest::READABLE);
        let writable = |fd| watched(fd, Interest::WRITABLE);
        let (terminal, stdin, stdout, stderr) = match streams {
            // Reads and writes wait for different readiness, and epoll needs a separate descriptor
            // for each.
            Streams::Terminal { master } => (
                Some(master.try_clone()?),
                writable(master.try_clone()?)?,
                readable(master)?,
                None,
            ),
            Streams::Pipes {
                stdin,
                stdout,
                stderr,
            } => (
                None,
                writable(stdin)?,
                readable(stdout)?,
                Some(readable(stderr)?),
            ),
        };
        let out = |stream, fd| Out {
            stream,
            fd,
            client: PromptRedactor::new(&handles.redactor),
            journal: StreamRedactor::new(&handles.redactor),
        };
        Ok(Self {
            terminal,
            stdin: Stdin::new(stdin, flow),
            outs: [
                out(OutputStream::Stdout, Some(stdout)),
                out(OutputStream::Stderr, stderr),
            ],
        })
    }
}

#[expect(
    deprecated,
    reason = "unsound only for types that can change their descriptor; a pipe and a listener cannot"
)]
pub(super) fn watched<T: AsRawFd>(fd: T, interest: Interest) -> std::io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(fd, interest)
}

/// Waits until the descriptor is readable; without a descriptor it returns at once, so callers
/// check first. Readiness is cleared only by a read or write that returns EAGAIN.
pub(super) async fn readable(fd: Option<&AsyncFd<OwnedFd>>) {
    if let Some(fd) = fd {
        let _ = fd.readable().await;
    }
}
