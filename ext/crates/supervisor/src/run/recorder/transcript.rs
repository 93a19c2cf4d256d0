//! One execution that has ended, as the transcript of its run shows it.

use serde_json::Value;
use wp_codebox_runtime::Cut;

/// One execution as the transcript shows it. Output is redacted already.
#[derive(Debug, Clone)]
pub(crate) struct TranscriptEntry {
    /// Registry command id, or `check`.
    pub command: String,
    /// Arguments as the guest saw them.
    pub args: Vec<String>,
    /// Exit code; 128 + signal when killed; absent when it never ran.
    pub exit_code: Option<i32>,
    /// `agent`, `command` or `check`.
    pub phase: &'static str,
    /// Captured stdout.
    pub stdout: String,
    /// Captured stderr.
    pub stderr: String,
    /// Whether it printed more than the run's output limit.
    pub output_truncated: bool,
    /// Which of the two texts are not all that it printed.
    pub cut: Cut,
    /// What the program answered beside its output. Redacted already.
    pub parsed: Option<Value>,
}
