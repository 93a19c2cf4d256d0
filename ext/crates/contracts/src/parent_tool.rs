//! A call of a tool that the parent answers for, and its answer.
//!
//! The request crosses from the guest's side to the parent, which judges it again; the result
//! comes back and counts only when it says one of the known words.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// `wp-codebox/parent-tool-request/v1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParentToolRequest {
    /// Always the id of the schema.
    pub schema: String,
    /// Always 1.
    pub version: u32,
    /// Which call of which run.
    pub request_id: String,
    /// Id of the tool.
    pub tool: String,
    /// What is asked of it.
    pub operation: ParentToolOperation,
    /// Its input; the agent's word.
    pub input: Map<String, Value>,
    /// Where it comes from.
    pub sandbox_session: ParentToolSession,
    /// What the task lists.
    pub authorization: ParentToolAuthorization,
}

/// What is asked of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParentToolOperation {
    /// To do what it does.
    Call,
}

/// Where a request comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentToolSession {
    /// The run.
    pub task_id: crate::RunId,
}

/// What the task lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentToolAuthorization {
    /// Ids of tools.
    pub allowed_tools: Vec<String>,
}

/// What came of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParentToolStatus {
    /// It did what was asked.
    Succeeded,
    /// It did not.
    Failed,
    /// It may not.
    Denied,
    /// There is nobody who could.
    Unavailable,
    /// There was no answer in time.
    Timeout,
}

/// `wp-codebox/parent-tool-result/v1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParentToolResult {
    /// Always the id of the schema.
    pub schema: String,
    /// Always 1.
    pub version: u32,
    /// Of which call.
    pub request_id: String,
    /// Id of the tool.
    pub tool: String,
    /// What was asked of it.
    pub operation: ParentToolOperation,
    /// What came of it.
    pub status: ParentToolStatus,
    /// What the tool answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Why it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ParentToolError>,
}

/// Why a call did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentToolError {
    /// Stable code; whoever answered chose it.
    pub code: String,
    /// Sentence.
    pub message: String,
    /// Whether asking again may help.
    #[serde(default)]
    pub retryable: bool,
}
