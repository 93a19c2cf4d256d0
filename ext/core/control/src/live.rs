//! Client of a held sandbox, a run that is kept open after its setup. Sends one request over the
//! control socket of the run and receives the replies to it.

use crate::channel::{Channel, ChannelError, Received, Sent, line_of};
use crate::socket::ControlSocket;
use rustix::io::Errno;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    CodedError, LIVE_PROTOCOL, LiveCall, LiveReply, LiveRequest, MAX_LIVE_LINE,
};

/// Length of a single wait for a reply; a wait without a time limit consists of many such waits.
const LONG_WAIT: Duration = Duration::from_secs(3600);

/// Error of a request to a held sandbox, on the side of the client.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(RunnerUnavailable)]
pub enum LiveError {
    /// No process listens on the control socket of the run, because its supervisor has ended.
    #[error("the run accepts no requests, because it has ended; start a new run")]
    #[code(SandboxNotHeld)]
    NotHeld,
    /// The listen backlog of the socket is full. A later attempt can succeed.
    #[error("the control socket of the run has too many waiting clients; try again later")]
    QueueFull,
    /// The run directory cannot be opened, or the connection to its socket fails.
    #[error(
        "the control socket of the run cannot be reached: {errno}; only the sandbox's owner and root can connect to it"
    )]
    Unreachable {
        /// Error number of the system call.
        errno: Errno,
    },
    /// The serialized request exceeds the line length limit.
    #[error("the request to the sandbox is larger than 2 MiB; send less data in it")]
    #[code(InputInvalid)]
    RequestTooLarge,
    /// Within the time limit, the sandbox did not read the request, or sent no byte of a reply.
    #[error("the sandbox did not read or answer the request for {} seconds; try again, or end the sandbox", time.as_secs())]
    Silent {
        /// Time limit that has passed.
        time: Duration,
    },
    /// The sandbox closed the connection before the final reply.
    #[error(
        "the sandbox closed the connection before its final reply; check whether it still runs"
    )]
    Ended,
    /// A received line cannot be parsed as a reply.
    #[error(
        "the sandbox sent a line that is not a reply; use a client of the release that started the sandbox"
    )]
    NotAReply,
    /// The connection failed, or a line exceeds the length limit.
    #[error("the connection to the sandbox failed: {0}")]
    #[code(transparent)]
    Channel(#[from] ChannelError),
}

/// Converts the error number of opening the run directory, or of connecting to its socket.
impl From<Errno> for LiveError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::CONNREFUSED => LiveError::NotHeld,
            Errno::AGAIN => LiveError::QueueFull,
            errno => LiveError::Unreachable { errno },
        }
    }
}

/// Time limit of waiting for the next reply.
#[derive(Debug, Clone, Copy)]
pub enum ReplyTimeout {
    /// No limit: the sandbox may have to finish earlier requests first.
    Unlimited,
    /// Maximum time in which the sandbox may send no byte.
    AtMost(Duration),
}

/// Connection to a held sandbox for one request.
#[derive(Debug)]
pub struct LiveClient {
    channel: Channel,
}

impl LiveClient {
    /// Connects to the control socket in this run directory. Does not wait for the supervisor: a
    /// full listen backlog is an error. A reply may have up to `longest` bytes.
    ///
    /// # Errors
    /// [`LiveError::NotHeld`], [`LiveError::QueueFull`] or [`LiveError::Unreachable`].
    pub fn connect(run_dir: &Path, longest: usize) -> Result<Self, LiveError> {
        let stream = ControlSocket::of(run_dir)?.connect()?;
        Ok(Self {
            channel: Channel::new(stream, longest),
        })
    }

    /// Sends the request; calls `idle` each time the socket buffer has been full for 50 ms.
    ///
    /// # Errors
    /// Fails with [`LiveError::RequestTooLarge`], the socket's error, or the error that
    /// `idle` returns.
    pub fn call<E: From<LiveError> + From<ChannelError>>(
        &self,
        actor: &str,
        request: LiveRequest,
        idle: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let call = LiveCall {
            live: LIVE_PROTOCOL,
            actor: actor.to_owned(),
            request,
        };
        let line = line_of(&call, MAX_LIVE_LINE).map_err(|error| match error {
            ChannelError::RequestTooLarge { .. } => LiveError::RequestTooLarge,
            other => other.into(),
        })?;
        // If the sandbox closed the socket before it received the whole request, the caller learns
        // that from `next`: it returns the sandbox's error reply or `LiveError::Ended`.
        self.channel.send_line(&line, idle).map(|_: Sent| ())
    }

    /// Waits for the next reply to the request.
    ///
    /// # Errors
    /// [`LiveError::Silent`], [`LiveError::Ended`], [`LiveError::NotAReply`] or the
    /// socket's error.
    pub fn next(&self, timeout: ReplyTimeout) -> Result<LiveReply, LiveError> {
        let (mut heard, mut unfinished) = (Instant::now(), self.channel.unfinished());
        loop {
            let wait = match timeout {
                ReplyTimeout::Unlimited => LONG_WAIT,
                ReplyTimeout::AtMost(time) => time.saturating_sub(heard.elapsed()),
            };
            if let Some(reply) = reply(self.channel.receive(wait)?)? {
                return Ok(reply);
            }
            let now = self.channel.unfinished();
            match timeout {
                _ if now != unfinished => (heard, unfinished) = (Instant::now(), now),
                ReplyTimeout::AtMost(time) if heard.elapsed() >= time => {
                    return Err(LiveError::Silent { time });
                }
                ReplyTimeout::AtMost(_) | ReplyTimeout::Unlimited => {}
            }
        }
    }

    /// Writes as much of `pending` as the socket accepts and returns the next reply if one is
    /// available; waits at most `longest` for either. Also returns the number of bytes written.
    ///
    /// # Errors
    /// [`LiveError::Ended`], [`LiveError::NotAReply`] or the socket's error.
    pub fn exchange(
        &self,
        pending: &[u8],
        longest: Duration,
    ) -> Result<(usize, Option<LiveReply>), LiveError> {
        let (sent, received) = self.channel.exchange(pending, longest)?;
        Ok((sent, reply(received)?))
    }

    /// Duplicates the socket for a thread that sends while another thread waits for replies.
    ///
    /// # Errors
    /// Fails when the process has no free file descriptor.
    pub fn sender(&self) -> io::Result<UnixStream> {
        self.channel.try_clone_socket()
    }
}

fn reply(received: Received) -> Result<Option<LiveReply>, LiveError> {
    match received {
        Received::Nothing => Ok(None),
        Received::End => Err(LiveError::Ended),
        Received::Line(line) => serde_json::from_slice(&line)
            .map(Some)
            .map_err(|_| LiveError::NotAReply),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;
    use wp_codebox_contracts::CONTROL_SOCKET;
    use wp_codebox_contracts::{ErrorBody, ErrorCode};

    /// Creates a run directory with a control socket and passes its listener to `supervisor` in a
    /// thread.
    fn run_dir(supervisor: impl FnOnce(UnixListener) + Send + 'static) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(CONTROL_SOCKET)).unwrap();
        std::thread::spawn(move || supervisor(listener));
        directory
    }

    fn call(client: &LiveClient) -> Result<(), LiveError> {
        client.call("test", LiveRequest::Status {}, || Ok(()))
    }

    #[test]
    fn control_request_carries_version_and_actor_and_receives_its_reply() {
        let directory = run_dir(|listener| {
            let (stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            let call: serde_json::Value = serde_json::from_str(&line).unwrap();
            let answer = json!({"type": "answer", "answer": call});
            (&stream)
                .write_all(format!("{answer}\n").as_bytes())
                .unwrap();
        });
        let client = LiveClient::connect(directory.path(), 1024).unwrap();
        call(&client).unwrap();
        let answer = json!({"live": LIVE_PROTOCOL, "actor": "test", "request": {"type": "status"}});
        let reply = client.next(ReplyTimeout::Unlimited).unwrap();
        assert_eq!(reply, LiveReply::Answer { answer });
        assert!(matches!(
            client.next(ReplyTimeout::Unlimited),
            Err(LiveError::Ended)
        ));
    }

    #[test]
    fn connect_without_a_listener_gives_sandbox_not_held_and_an_oversized_request_is_not_sent() {
        let directory = run_dir(drop);
        let refused = || loop {
            match LiveClient::connect(directory.path(), 1024) {
                Err(error) => break ErrorBody::from(error).code,
                // The listener's thread has not closed the socket yet.
                Ok(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        assert_eq!(refused(), ErrorCode::SandboxNotHeld);
        std::fs::remove_file(directory.path().join(CONTROL_SOCKET)).unwrap();
        assert_eq!(refused(), ErrorCode::SandboxNotHeld);
        let directory = run_dir(|listener| drop(listener.accept()));
        let client = LiveClient::connect(directory.path(), 1024).unwrap();
        let request = LiveRequest::Restore {
            id: "x".repeat(MAX_LIVE_LINE),
        };
        let sent = client.call("test", request, || Ok(()));
        assert!(matches!(sent, Err(LiveError::RequestTooLarge)), "{sent:?}");
    }

    #[test]
    fn reply_timeout_restarts_with_each_received_byte() {
        const TIMEOUT: Duration = Duration::from_secs(4);
        let directory = run_dir(|listener| {
            let (mut stream, _) = listener.accept().unwrap();
            // Each pause is much shorter than the timeout, so that it stays shorter on a busy
            // machine; all pauses together are longer than the timeout.
            for piece in b"{\"type\":\"stdin_closed\"}\n".chunks(4) {
                std::thread::sleep(TIMEOUT / 4);
                stream.write_all(piece).unwrap();
            }
            // Keeps the connection open until the client has seen the silence.
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        });
        let client = LiveClient::connect(directory.path(), 1024).unwrap();
        call(&client).unwrap();
        let began = Instant::now();
        let reply = client.next(ReplyTimeout::AtMost(TIMEOUT)).unwrap();
        assert_eq!(reply, LiveReply::StdinClosed);
        assert!(began.elapsed() > TIMEOUT);
        let silence = client.next(ReplyTimeout::AtMost(TIMEOUT));
        assert!(
            matches!(silence, Err(LiveError::Silent { .. })),
            "{silence:?}"
        );
    }

    #[test]
    fn invalid_or_overlong_reply_of_a_sandbox_is_an_error() {
        let directory = run_dir(|listener| {
            for line in ["{\"type\":\"of-tomorrow\"}\n".to_owned(), "x".repeat(2000)] {
                let (mut stream, _) = listener.accept().unwrap();
                stream.write_all(line.as_bytes()).unwrap();
            }
        });
        let client = LiveClient::connect(directory.path(), 1024).unwrap();
        let reply = client.next(ReplyTimeout::Unlimited);
        assert!(matches!(reply, Err(LiveError::NotAReply)), "{reply:?}");
        let client = LiveClient::connect(directory.path(), 1024).unwrap();
        let reply = client.next(ReplyTimeout::Unlimited);
        assert!(matches!(reply, Err(LiveError::Channel(_))), "{reply:?}");
    }
}
