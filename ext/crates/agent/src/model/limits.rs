//! Bounds of one client: what it waits for, what it takes and how often it asks again.

use std::time::Duration;

/// Bytes of one answer, all events together.
pub(super) const ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of one line of a stream, and of one event.
pub(super) const LINE_BYTES: usize = 4 * 1024 * 1024;
/// Bytes of a refusal that are read.
pub(super) const REFUSAL_BYTES: usize = 64 * 1024;
/// Calls of one answer.
pub(super) const CALLS: usize = 64;
/// Bytes of one call's arguments.
pub(super) const ARGUMENT_BYTES: usize = 4 * 1024 * 1024;
/// Characters of a call's id, of a tool's name and of the model's own name.
pub(super) const NAME_CHARS: usize = 256;
/// Characters of a provider's sentence that enter an error.
pub(super) const SENTENCE_CHARS: usize = 200;

/// Waiting and asking again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Name, connection and TLS together.
    pub connect: Duration,
    /// From the request to the first byte of the answer: a model on a small machine reads its
    /// prompt for minutes.
    pub first_byte: Duration,
    /// Between two pieces of an answer.
    pub idle: Duration,
    /// After the last word, for the numbers that may follow it.
    pub trailer: Duration,
    /// Times one question is put, refusals that only ask for other words not counted.
    pub tries: u32,
    /// First pause; each next one is twice as long.
    pub pause: Duration,
    /// Longest pause of our own.
    pub longest_pause: Duration,
    /// Longest pause that a provider may ask for.
    pub longest_asked: Duration,
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
            longest_asked: Duration::from_secs(120),
        }
    }
}
