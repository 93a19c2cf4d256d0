//! Bounds of a preview.

use std::time::Duration;

/// Bounds of a preview.
#[derive(Debug, Clone, Copy)]
pub struct ForwarderLimits {
    /// Visitors' connections at once.
    pub connections: usize,
    /// Requests in the guest at once.
    pub requests: usize,
    /// Longest head, bytes.
    pub head_bytes: usize,
    /// Longest body of a request, bytes.
    pub request_bytes: u64,
    /// Longest body of an answer, bytes.
    pub response_bytes: u64,
    /// Time for a request's head, and between two requests of a connection.
    pub head_timeout: Duration,
    /// Time for a connection with the guest.
    pub door_timeout: Duration,
    /// Time until the guest answers.
    pub answer_timeout: Duration,
    /// Time in which something of a body must move, and a visitor must take something of it.
    pub idle_timeout: Duration,
    /// Longest connection.
    pub connection_time: Duration,
}

impl Default for ForwarderLimits {
    fn default() -> Self {
        Self {
            connections: 128,
            requests: 16,
            head_bytes: 64 * 1024,
            request_bytes: 40 * 1024 * 1024,
            response_bytes: 256 * 1024 * 1024,
            head_timeout: Duration::from_secs(10),
            door_timeout: Duration::from_secs(20),
            answer_timeout: Duration::from_secs(120),
            idle_timeout: Duration::from_secs(30),
            connection_time: Duration::from_secs(15 * 60),
        }
    }
}
