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
/// Maximum number of characters of a provider's message that an error contains.
pub(super) const SENTENCE_CHARS: usize = 200;

/// Timeouts and retries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Maximum time for name lookup, connect and TLS handshake together.
    pub connect: Duration,
    /// Maximum time from the request to the first byte of the response; a model on a small machine
    /// can take minutes to process its prompt.
    pub first_byte: Duration,
    /// Maximum time between two pieces of a response.
    pub idle: Duration,
    /// Maximum time to wait for token counts after the model has finished.
    pub trailer: Duration,
    /// Maximum number of tries, not counting repetitions with changed request options.
    pub tries: u32,
    /// First pause before a retry; doubles with each retry.
    pub pause: Duration,
    /// Maximum pause chosen by the client.
    pub longest_pause: Duration,
    /// Maximum pause accepted from the provider's `retry-after`.
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
