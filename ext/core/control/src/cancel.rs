//! Client that asks a run's supervisor over the control socket to cancel the run.

use crate::channel::{Channel, Received, Sent};
use crate::live::LiveError;
use crate::socket::ControlSocket;
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{CancelDetails, RunCancellation};

/// Maximum length of an accepted reply line, in bytes.
const LONGEST_ANSWER: usize = 64 * 1024;
/// Maximum length of `actor` and of `reason` in a cancel request, in characters.
const TEXT: usize = 250;

/// Request to cancel a run. The caller can send it again after a failure, because a supervisor that
/// was just started may not listen on its socket yet.
#[derive(Debug)]
pub struct CancelRequest {
    line: Vec<u8>,
    sent: bool,
}

impl CancelRequest {
    /// Builds the request; shortens the actor and the reason to 250 characters each.
    #[must_use]
    pub fn new(wish: &CancelDetails) -> Self {
        let mut frame = json!({"type": "cancel"});
        for (name, text) in [("actor", &wish.actor), ("reason", &wish.reason)] {
            if let Some(text) = text {
                frame[name] = text.chars().take(TEXT).collect::<String>().into();
            }
        }
        Self {
            line: format!("{frame}\n").into_bytes(),
            sent: false,
        }
    }

    /// Returns whether the request was sent at least once. The supervisor may then cancel the run
    /// even if no reply arrived.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        self.sent
    }

    /// Sends the request once and reads the reply; sending and waiting for the reply may each take
    /// `longest`.
    ///
    /// # Errors
    /// Fails as [`crate::LiveClient::connect`] and [`crate::LiveClient::next`] do.
    pub fn ask(&mut self, run_dir: &Path, longest: Duration) -> Result<RunCancellation, LiveError> {
        let socket = ControlSocket::of(run_dir)?.connect()?;
        let channel = Channel::new(socket, LONGEST_ANSWER);
        let began = Instant::now();
        let sent = channel.send_line(&self.line, || match began.elapsed() {
            elapsed if elapsed < longest => Ok(()),
            _ => Err(LiveError::Silent { time: longest }),
        })?;
        self.sent |= sent == Sent::Whole;
        let sent = Instant::now();
        loop {
            match channel.receive(longest.saturating_sub(sent.elapsed()))? {
                Received::Line(line) => {
                    return serde_json::from_slice(&line).map_err(|_| LiveError::NotAReply);
                }
                Received::End => return Err(LiveError::Ended),
                Received::Nothing if sent.elapsed() >= longest => {
                    return Err(LiveError::Silent { time: longest });
                }
                Received::Nothing => {}
            }
        }
    }
}
