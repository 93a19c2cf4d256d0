//! Calls of tools that the parent process serves, and their results.
//!
//! The supervisor sends each call to the parent process, which checks the permission for every call.
//! The supervisor accepts a result only if its `status` is a known value.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// `wp-codebox/parent-tool-request/v1`: one call of a tool that the parent process serves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParentToolRequest {
    /// Schema id of the document.
    pub schema: String,
    /// Version of the document, always 1.
    pub version: u32,
    /// Id of the call, unique across runs.
    pub request_id: String,
    /// Id of the tool.
    pub tool: String,
    /// What the parent process is to do with the tool; always a call.
    pub operation: ParentToolOperation,
    /// Input of the tool; the agent controls this value.
    pub input: Map<String, Value>,
    /// Run from which the request comes.
    pub sandbox_session: ParentToolSession,
    /// Tools that the task allows, for the permission check of the parent process.
    pub authorization: ParentToolAuthorization,
}

/// Operation of a parent tool request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParentToolOperation {
    /// Call the tool.
    Call,
}

/// Run from which a request comes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentToolSession {
    /// Id of the run.
    pub task_id: crate::RunId,
}

/// Tools that the task allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentToolAuthorization {
    /// Ids of the allowed tools.
    pub allowed_tools: Vec<String>,
}

/// Status of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParentToolStatus {
    /// The call succeeded.
    Succeeded,
    /// The call failed.
    Failed,
    /// The parent process refused the call.
    Denied,
    /// The parent process has no handler for the tool.
    Unavailable,
    /// The call timed out.
    Timeout,
}

/// `wp-codebox/parent-tool-result/v1`: the result of one call of a tool that the parent process
/// serves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParentToolResult {
    /// Schema id of the document.
    pub schema: String,
    /// Version of the document, always 1.
    pub version: u32,
    /// Id of the call that this result answers.
    pub request_id: String,
    /// Id of the tool.
    pub tool: String,
    /// Operation of the request that this result answers.
    pub operation: ParentToolOperation,
    /// Status of the call.
    pub status: ParentToolStatus,
    /// Output of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Error of a call that did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ParentToolError>,
}

/// Error of a call that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentToolError {
    /// Error code; the handler of the tool chooses it.
    pub code: String,
    /// Error message, one sentence.
    pub message: String,
    /// Whether a retry may succeed.
    #[serde(default)]
    pub retryable: bool,
}
