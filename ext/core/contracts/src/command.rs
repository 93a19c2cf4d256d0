//! A registry command and its result.

use crate::{ErrorBody, schema_id};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One call of a registry command: command id and `name=value` arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandCall {
    /// Command id, e.g. `wordpress.run-php`.
    pub command: String,
    /// Arguments `name=value`, split at the first `=`.
    #[serde(default)]
    pub args: Vec<String>,
}

/// Whether a command succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommandStatus {
    /// The command's program exited with status 0.
    Ok,
    /// The command failed.
    Error,
}

/// `wp-codebox/runtime-command-result/v1`: the result of one command. All of its text is redacted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandResult {
    /// Schema id of the document.
    pub schema: String,
    /// Whether the command succeeded.
    pub status: CommandStatus,
    /// Standard output of the command.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stdout: String,
    /// Standard error of the command.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// Standard output parsed as JSON; only when the output begins with `{` or `[` and parses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// Command id and duration: `{command, timing {durationMs}}`.
    pub diagnostics: Value,
    /// References to bundle files with further output.
    #[serde(
        rename = "artifactRefs",
        default,
        skip_serializing_if = "Vec::is_empty"
    )]
    pub artifact_refs: Vec<Value>,
    /// Error of a failed command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

impl CommandResult {
    /// Creates the result from a program's output.
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
