//! Limits of a preview.

use std::time::Duration;

/// Limits of a preview on connections, sizes and times.
#[derive(Debug, Clone, Copy)]
pub struct ForwarderLimits {
    /// Maximum number of concurrent connections of visitors.
    pub connections: usize,
    /// Maximum number of requests that the guest handles at the same time.
    pub requests: usize,
    /// Maximum length of a request or response head, in bytes.
    pub head_bytes: usize,
    /// Maximum length of a request body, in bytes.
    pub request_bytes: u64,
    /// Maximum length of a response body, in bytes.
    pub response_bytes: u64,
    /// Maximum time until a visitor has sent a request head; also the maximum time between two
    /// requests of one connection.
    pub head_timeout: Duration,
    /// Maximum time to connect to the guest; also the maximum wait while the guest already handles
    /// as many requests as `requests` allows.
    pub connect_timeout: Duration,
    /// Maximum time until the guest sends its response head.
    pub answer_timeout: Duration,
    /// Maximum time without a received body byte, or without a byte that the visitor accepts.
    pub idle_timeout: Duration,
    /// Maximum duration of one connection of a visitor.
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
