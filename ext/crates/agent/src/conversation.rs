//! Types exchanged between model client, tools and agent loop, independent of any provider.

use serde_json::{Map, Value};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_runtime::Stop;

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Text from the task or from the loop itself.
    User(String),
    /// Response of the model.
    Assistant {
        /// Text of the response.
        text: String,
        /// Tool calls that the model requests.
        calls: Vec<ToolCall>,
    },
    /// Result of a tool call.
    Tool {
        /// Id of the call to which this result belongs.
        call_id: String,
        /// Result text for the model.
        text: String,
        /// Outcome of the call.
        status: ToolStatus,
    },
}

/// Tool description for the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Id, e.g. `workspace.read`.
    pub id: String,
    /// Name in the provider's protocol: letters, digits and `_`, at most 64 characters.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the arguments; its type is object.
    pub parameters: Value,
}

/// Tool call that the model requests.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Provider's id of the call; generated when the provider sends none.
    pub id: String,
    /// Tool name in the provider's protocol.
    pub name: String,
    /// Parsed arguments, or the parse error. A parse error fails this call only, never the run.
    pub arguments: Result<Map<String, Value>, String>,
}

/// One request to the model.
#[derive(Debug, Clone, Copy)]
pub struct TurnRequest<'a> {
    /// System prompt.
    pub system: &'a str,
    /// Conversation so far, oldest message first.
    pub messages: &'a [Message],
    /// Tools offered to the model.
    pub tools: &'a [ToolSpec],
    /// Limit of the response, in tokens.
    pub max_output_tokens: u64,
    /// Deadline for the whole turn, including retries.
    pub deadline: Instant,
}

/// Token counts of one response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Input tokens.
    pub input: u64,
    /// Part of `input` that the provider read from its cache.
    pub cached_input: u64,
    /// Output tokens.
    pub output: u64,
}

/// Reason why the model stopped generating.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// The response is complete.
    End,
    /// The model waits for tool results.
    Tools,
    /// The response reached its token limit.
    Length,
    /// The provider's content filter withheld the response.
    Filtered,
}

/// One response of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Text beside the tool calls.
    pub text: String,
    /// Requested tool calls, in order.
    pub calls: Vec<ToolCall>,
    /// Reason why the response ended.
    pub stop: StopReason,
    /// Token counts of the provider; `None` when it sends none.
    pub usage: Option<TokenUsage>,
    /// Name of the responding model, as the provider reports it.
    pub model: String,
}

/// A language model.
pub trait Model {
    /// Sends one request and returns the response. Passes text to `on_text` as it arrives.
    /// Temporary failures have been retried already when this returns an error.
    fn turn(
        &mut self,
        request: TurnRequest<'_>,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<Reply, ModelError>;
}

/// Error of a model request. No message contains a key, nor more than one line from the provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// Connecting failed, the response ended early, or retries were used up.
    #[error("the model's provider sent no usable response: {why}")]
    Unavailable {
        /// Last failure.
        why: String,
        /// Number of requests sent.
        attempts: u32,
    },
    /// The response violates the protocol.
    #[error("the response of the model's provider violates {protocol}: {why}")]
    Malformed {
        /// Expected protocol.
        protocol: &'static str,
        /// Violation of the protocol.
        why: String,
    },
    /// The provider rejected the key.
    #[error("the model's provider refused the key (status {status}): check the credentials")]
    Unauthorised {
        /// HTTP status of the response.
        status: u16,
    },
    /// The provider rejected the request.
    #[error("the model's provider refused the request (status {status}): {why}")]
    Rejected {
        /// HTTP status of the response.
        status: u16,
        /// Provider's message.
        why: String,
    },
    /// The conversation exceeds the model's context window. The loop shortens it and retries.
    #[error("the conversation is longer than the model's context window")]
    TooLong,
    /// The turn's deadline passed.
    #[error("the wall clock limit was reached while waiting for the model")]
    Deadline,
    /// The run was cancelled.
    #[error("the run was cancelled while waiting for the model")]
    Cancelled,
}

impl ModelError {
    /// Returns the outcome of the run after this error.
    pub fn stop(&self) -> Stop {
        let body = |code| ErrorBody::new(code, self.to_string());
        match self {
            Self::Unavailable { .. } | Self::Malformed { .. } => {
                Stop::Failed(body(ErrorCode::ProviderUnavailable))
            }
            Self::Unauthorised { .. } | Self::Rejected { .. } => {
                Stop::Blocked(body(ErrorCode::ProviderRejected))
            }
            Self::TooLong => Stop::Partial(body(ErrorCode::BudgetExhausted)),
            Self::Deadline => Stop::Timeout,
            Self::Cancelled => Stop::Cancelled,
        }
    }
}

/// Outcome of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolStatus {
    /// The call succeeded.
    Ok,
    /// The call failed; the result text says why and what to do.
    Failed,
    /// The policy does not allow the call.
    Denied,
}

/// The model's declaration that the task has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskEnd {
    /// The model called `task.finish`.
    Finished {
        /// The model's summary of its work.
        summary: String,
    },
    /// The model called `task.blocked`.
    Blocked {
        /// The obstacle that the model reports.
        reason: String,
    },
}

/// Result of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolAnswer {
    /// Text for the model, cut to a maximum length.
    pub text: String,
    /// Outcome of the call.
    pub status: ToolStatus,
    /// Set by the tools that end the task.
    pub end: Option<TaskEnd>,
    /// Ids of the guest executions that the call started, e.g. `exec-7`, for the transcript.
    pub executions: Vec<String>,
    /// Duration of the call.
    pub duration: Duration,
}

/// Set of callable tools.
pub trait Toolbox {
    /// Returns the offered tools; calls of other tools are refused.
    fn specs(&self) -> &[ToolSpec];
    /// Executes a call. An error ends the loop: the guest is gone, time is up, or the run's
    /// journal cannot be written.
    fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer, Halt>;
}

/// Reason why no further call is possible.
#[derive(Debug, Clone)]
pub enum Halt {
    /// Outcome of the run.
    Stop(Stop),
    /// The run's journal cannot be written.
    Failure(ErrorBody),
}

impl From<ErrorBody> for Halt {
    fn from(error: ErrorBody) -> Self {
        Self::Failure(error)
    }
}
