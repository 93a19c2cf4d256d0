//! What a registry command came to.

use crate::{ErrorBody, schema_id};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One registry command: id and `name=value` arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandCall {
    /// Command id, e.g. `wordpress.run-php`.
    pub command: String,
    /// `name=value`, split at the first `=`.
    #[serde(default)]
    pub args: Vec<String>,
}

/// Whether a command did what it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommandStatus {
    /// Its program exited with 0.
    Ok,
    /// Anything else.
    Error,
}

/// `wp-codebox/runtime-command-result/v1`. Everything in it is redacted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandResult {
    /// The schema id.
    pub schema: String,
    /// Whether it did what it was asked.
    pub status: CommandStatus,
    /// What it printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stdout: String,
    /// What it printed on standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// The document it printed: only when its output begins with `{` or `[` and parses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// {command, timing {durationMs}}.
    pub diagnostics: Value,
    /// Files of the bundle that hold more.
    #[serde(
        rename = "artifactRefs",
        default,
        skip_serializing_if = "Vec::is_empty"
    )]
    pub artifact_refs: Vec<Value>,
    /// Why it is not ok.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

impl CommandResult {
    /// A result of what a program printed.
    #[must_use]
    pub fn of_output(command: &str, status: CommandStatus, stdout: String, stderr: String) -> Self {
        let text = stdout.trim();
        let json = (text.starts_with('{') || text.starts_with('['))
            .then(|| serde_json::from_str(text).ok())
            .flatten();
        Self {
            schema: schema_id::RUNTIME_COMMAND_RESULT.to_owned(),
            status,
            stdout,
            stderr,
            json,
            diagnostics: json!({"command": command}),
            artifact_refs: Vec::new(),
            error: None,
        }
    }
}
