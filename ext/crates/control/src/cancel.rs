//! Asking the supervisor of a run to end it, over its control socket.

use crate::channel::{Channel, Received, Sent};
use crate::live::LiveError;
use crate::socket::ControlSocket;
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{CancelDetails, RunCancellation};

/// Longest answer, bytes.
const LONGEST_ANSWER: usize = 64 * 1024;
/// Characters of each text of a wish.
const TEXT: usize = 250;

/// A request to end the run in this directory, which may be made several times: a supervisor
/// that was just started does not listen yet.
#[derive(Debug)]
pub struct CancelRequest {
    line: Vec<u8>,
    sent: bool,
}

impl CancelRequest {
    /// A cancel frame that says who asks and why, each in a few words.
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

    /// Whether it was sent once: then it may be carried out although no answer came.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        self.sent
    }

    /// Asks once; each of sending and answering may take `longest`.
    ///
    /// # Errors
    /// As of a [`crate::LiveClient`].
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
