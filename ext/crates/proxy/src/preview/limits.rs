//! Bounds of a preview.

use std::time::Duration;

/// Bounds of a preview.
#[derive(Debug, Clone, Copy)]
pub struct ForwarderLimits {
    /// Concurrent connections of visitors.
    pub connections: usize,
    /// Concurrent requests in the guest.
    pub requests: usize,
    /// Longest request or response head, in bytes.
    pub head_bytes: usize,
    /// Longest request body, in bytes.
    pub request_bytes: u64,
    /// Longest response body, in bytes.
    pub response_bytes: u64,
    /// Time for a request head, also the keep-alive time between two requests.
    pub head_timeout: Duration,
    /// Time to connect to the guest.
    pub connect_timeout: Duration,
    /// Time until the guest sends its response head.
    pub answer_timeout: Duration,
    /// Time without a body byte received, or without a byte accepted by the visitor.
    pub idle_timeout: Duration,
    /// Longest time of one connection.
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
            connect_timeout: Duration::from_secs(20),
            answer_timeout: Duration::from_secs(120),
            idle_timeout: Duration::from_secs(30),
            connection_time: Duration::from_secs(15 * 60),
        }
    }
}
