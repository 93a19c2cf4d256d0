//! Transcript entry of one execution that has ended.

use serde_json::Value;
use wp_codebox_runtime::Cut;

/// One execution in the transcript. The output is already redacted.
#[derive(Debug, Clone)]
pub(crate) struct TranscriptEntry {
    /// Registry command id, or `check`.
    pub command: String,
    /// Arguments as the guest saw them.
    pub args: Vec<String>,
    /// Exit code; 128 + signal number if killed; absent if the program never ran.
    pub exit_code: Option<i32>,
    /// `agent`, `command` or `check`.
    pub phase: &'static str,
    /// Standard output, as far as it is stored.
    pub stdout: String,
    /// Standard error, as far as it is stored.
    pub stderr: String,
    /// Whether the output exceeded the run's output limit.
    pub output_truncated: bool,
    /// Streams whose text is truncated.
    pub cut: Cut,
    /// JSON document that the program printed or wrote as its result, redacted.
    pub parsed: Option<Value>,
}
