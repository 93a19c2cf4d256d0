//! Transcript entry of one execution that has ended.

use serde_json::Value;
use wp_codebox_runtime::Cut;

/// One execution in the transcript. The output is already redacted.
#[derive(Debug, Clone)]
pub(crate) struct TranscriptEntry {
    /// Id of the command, or `check`.
    pub command: String,
    /// Arguments that the command got in the guest.
    pub args: Vec<String>,
    /// Exit code, or 128 + signal number if a signal ended the program; absent if neither applies,
    /// e.g. because the program never ran.
    pub exit_code: Option<i32>,
    /// Part of the run, e.g. `agent`, `command` or `check`.
    pub phase: &'static str,
    /// Standard output; possibly truncated, see `cut`.
    pub stdout: String,
    /// Standard error; possibly truncated, see `cut`.
    pub stderr: String,
    /// Whether the program printed more than the run's output limit.
    pub output_truncated: bool,
    /// Which of the two streams are truncated, with their full size.
    pub cut: Cut,
    /// JSON document that the program printed or wrote as its result, redacted.
    pub parsed: Option<Value>,
}
