//! A conversation with a sandbox over the control socket of its run, as its caller has it.

use crate::channel::{Channel, ChannelError, Received, Sent, line_of};
use crate::socket::ControlSocket;
use rustix::io::Errno;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, LIVE_PROTOCOL, LiveCall, LiveReply, LiveRequest, MAX_LIVE_LINE,
};

/// Longest of the waits that an endless one consists of.
const LONG_WAIT: Duration = Duration::from_secs(3600);

/// Why there is no conversation, or no further reply.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// Nothing listens on the socket.
    #[error("the run takes no requests: it has ended")]
    NotHeld,
    /// More callers wait to be accepted than the kernel queues. Trying again helps.
    #[error("too many callers wait for the supervisor")]
    QueueFull,
    /// The socket cannot be used.
    #[error("the supervisor cannot be reached: {errno}")]
    Unreachable {
        /// Why.
        errno: Errno,
    },
    /// The request does not fit a line.
    #[error("the request is larger than 2 MiB")]
    RequestTooLarge,
    /// The sandbox did not take the request, or sent nothing, for so long.
    #[error("the sandbox was silent for {} seconds", time.as_secs())]
    Silent {
        /// How long.
        time: Duration,
    },
    /// The conversation ended before its last reply.
    #[error("the sandbox ended the conversation: there was no last word")]
    Ended,
    /// A line is no reply.
    #[error("the sandbox ended the conversation: a line is no reply")]
    NotAReply,
    /// The socket failed, or a line is too long.
    #[error("the sandbox ended the conversation: {0}")]
    Channel(#[from] ChannelError),
}

impl From<LiveError> for ErrorBody {
    fn from(error: LiveError) -> Self {
        let code = match error {
            LiveError::NotHeld => ErrorCode::SandboxNotHeld,
            LiveError::RequestTooLarge => ErrorCode::InputInvalid,
            LiveError::QueueFull
            | LiveError::Unreachable { .. }
            | LiveError::Silent { .. }
            | LiveError::Ended
            | LiveError::NotAReply => ErrorCode::RunnerUnavailable,
            LiveError::Channel(error) => return error.into(),
        };
        ErrorBody::new(code, error.to_string())
    }
}

/// Of opening the socket's directory and of connecting.
impl From<Errno> for LiveError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::CONNREFUSED => LiveError::NotHeld,
            Errno::AGAIN => LiveError::QueueFull,
            errno => LiveError::Unreachable { errno },
        }
    }
}

/// How long a caller waits for a reply.
#[derive(Debug, Clone, Copy)]
pub enum Patience {
    /// As long as the sandbox lives: it may have to do first what was asked before.
    Endless,
    /// So long without a byte of it.
    AtMost(Duration),
}

/// One conversation.
#[derive(Debug)]
pub struct LiveClient {
    channel: Channel,
}

impl LiveClient {
    /// Connects to the socket in this run directory, without waiting. A reply may have `longest`
    /// bytes.
    ///
    /// # Errors
    /// [`LiveError::NotHeld`], [`LiveError::QueueFull`] or [`LiveError::Unreachable`].
    pub fn connect(run_dir: &Path, longest: usize) -> Result<Self, LiveError> {
        let stream = ControlSocket::of(run_dir)?.connect()?;
        Ok(Self {
            channel: Channel::new(stream, longest),
        })
    }

    /// Sends the request; calls `idle` whenever the socket was full for 50 ms.
    ///
    /// # Errors
    /// [`LiveError::RequestTooLarge`], the socket's, or what `idle` fails with.
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
        // A sandbox that closed the socket said why, or the next reply is an error.
        self.channel.send_line(&line, idle).map(|_: Sent| ())
    }

    /// Waits for the next reply.
    ///
    /// # Errors
    /// [`LiveError::Silent`], [`LiveError::Ended`], [`LiveError::NotAReply`] or the socket's.
    pub fn next(&self, patience: Patience) -> Result<LiveReply, LiveError> {
        let (mut heard, mut unfinished) = (Instant::now(), self.channel.unfinished());
        loop {
            let wait = match patience {
                Patience::Endless => LONG_WAIT,
                Patience::AtMost(time) => time.saturating_sub(heard.elapsed()),
            };
            if let Some(reply) = reply(self.channel.receive(wait)?)? {
                return Ok(reply);
            }
            let now = self.channel.unfinished();
            match patience {
                _ if now != unfinished => (heard, unfinished) = (Instant::now(), now),
                Patience::AtMost(time) if heard.elapsed() >= time => {
                    return Err(LiveError::Silent { time });
                }
                Patience::AtMost(_) | Patience::Endless => {}
            }
        }
    }

    /// Sends what the socket takes of `pending` and takes the next reply if there is one; waits at
    /// most this long for either. Answers how much was sent.
    ///
    /// # Errors
    /// [`LiveError::Ended`], [`LiveError::NotAReply`] or the socket's.
    pub fn exchange(
        &self,
        pending: &[u8],
        longest: Duration,
    ) -> Result<(usize, Option<LiveReply>), LiveError> {
        let (sent, received) = self.channel.exchange(pending, longest)?;
        Ok((sent, reply(received)?))
    }

    /// The socket, for a thread that sends while another one waits for replies.
    ///
    /// # Errors
    /// The kernel's, when there is no descriptor left.
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

    const SHORT: Duration = Duration::from_millis(100);

    /// A run directory whose supervisor does as it is told with each caller, in turn.
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
    fn a_request_names_version_and_actor_and_its_reply_comes_back() {
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
        let reply = client.next(Patience::Endless).unwrap();
        assert_eq!(reply, LiveReply::Answer { answer });
        assert!(matches!(
            client.next(Patience::Endless),
            Err(LiveError::Ended)
        ));
    }

    #[test]
    fn a_run_without_a_listener_is_not_held_and_a_large_request_is_not_sent() {
        let directory = run_dir(drop);
        let refused = || loop {
            match LiveClient::connect(directory.path(), 1024) {
                Err(error) => break ErrorBody::from(error).code,
                // The listener's thread has not dropped it yet.
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
    fn silence_is_counted_from_the_last_byte() {
        let directory = run_dir(|listener| {
            let (mut stream, _) = listener.accept().unwrap();
            for byte in b"{\"type\":\"stdin_closed\"}\n" {
                std::thread::sleep(SHORT / 10);
                stream.write_all(&[*byte]).unwrap();
            }
            std::thread::sleep(10 * SHORT);
        });
        let client = LiveClient::connect(directory.path(), 1024).unwrap();
        call(&client).unwrap();
        let began = Instant::now();
        let reply = client.next(Patience::AtMost(SHORT)).unwrap();
        assert_eq!(reply, LiveReply::StdinClosed);
        assert!(began.elapsed() > SHORT);
        let silence = client.next(Patience::AtMost(SHORT));
        assert!(
            matches!(silence, Err(LiveError::Silent { .. })),
            "{silence:?}"
        );
    }

    #[test]
    fn a_line_that_is_no_reply_and_one_that_is_too_long_are_errors() {
        let directory = run_dir(|listener| {
            for line in ["{\"type\":\"of-tomorrow\"}\n".to_owned(), "x".repeat(2000)] {
                let (mut stream, _) = listener.accept().unwrap();
                stream.write_all(line.as_bytes()).unwrap();
            }
        });
        let client = LiveClient::connect(directory.path(), 1024).unwrap();
        let reply = client.next(Patience::Endless);
        assert!(matches!(reply, Err(LiveError::NotAReply)), "{reply:?}");
        let client = LiveClient::connect(directory.path(), 1024).unwrap();
        let reply = client.next(Patience::Endless);
        assert!(matches!(reply, Err(LiveError::Channel(_))), "{reply:?}");
    }
}
