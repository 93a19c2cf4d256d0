//! Limits of a model client: timeouts, sizes and retries.

use std::time::Duration;

/// Maximum size of one response, all events together, in bytes.
pub(super) const ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Maximum length of one line of a stream, and of one event, in bytes.
pub(super) const LINE_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of bytes read of the body of an error response.
pub(super) const REFUSAL_BYTES: usize = 64 * 1024;
/// Maximum number of tool calls in one response.
pub(super) const CALLS: usize = 64;
/// Maximum size of the arguments of one tool call, in bytes.
pub(super) const ARGUMENT_BYTES: usize = 4 * 1024 * 1024;
/// Maximum length of a call's id, of a tool's name and of the model's name, in characters.
pub(super) const NAME_CHARS: usize = 256;
/// Maximum length of the provider's message inside an error, in characters.
pub(super) const SENTENCE_CHARS: usize = 200;

/// Timeouts and retry pauses of one request to the model.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Maximum time for name lookup, connect and TLS handshake together.
    pub connect: Duration,
    /// Maximum time from the request to the head of the response, and again from there to the first
    /// piece of its body; a model on a small machine can take minutes to process its prompt.
    pub first_byte: Duration,
    /// Maximum time between two pieces of a response.
    pub idle: Duration,
    /// Maximum time to wait for token counts after the model has finished.
    pub trailer: Duration,
    /// Maximum number of attempts. Requests repeated with other request options do not count.
    pub tries: u32,
    /// Pause before the first retry; it doubles with each further retry.
    pub pause: Duration,
    /// Maximum pause between attempts, unless the provider requests a longer one.
    pub longest_pause: Duration,
    /// Maximum pause that the provider may request with `retry-after`.
    pub max_retry_after: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(20),
            first_byte: Duration::from_secs(600),
            idle: Duration::from_secs(180),
            trailer: Duration::from_secs(2),
            tries: 5,
            pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(30),
            max_retry_after: Duration::from_secs(120),
        }
    }
}
