//! Types exchanged between model client, tools and agent loop, independent of any provider.

use serde_json::{Map, Value};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_runtime::Stop;

/// One message of the conversation between the agent loop and the model.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Text that the agent loop sends: the task, a warning or a question.
    User(String),
    /// Response of the model.
    Assistant {
        /// Text of the response.
        text: String,
        /// Tool calls that the response requests.
        calls: Vec<ToolCall>,
    },
    /// Result of a tool call.
    Tool {
        /// Id of the call to which this result belongs.
        call_id: String,
        /// Result text for the model.
        text: String,
        /// Whether the tool call succeeded, failed or was denied.
        status: ToolStatus,
    },
}

/// Tool that the agent loop offers to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Id of the tool in this product, e.g. `workspace.read`.
    pub id: String,
    /// Name of the tool in the provider's protocol: letters, digits and `_`, at most 64 characters.
    pub name: String,
    /// What the tool does, as the model reads it.
    pub description: String,
    /// JSON Schema of the tool's arguments; its type is object.
    pub parameters: Value,
}

/// Call of a tool, requested by the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Provider's id of the tool call; the client generates one when the provider sends none.
    pub id: String,
    /// Name of the called tool in the provider's protocol.
    pub name: String,
    /// Parsed arguments of the tool call, or the parse error. A parse error fails this call only,
    /// never the run.
    pub arguments: Result<Map<String, Value>, String>,
}

/// One request to the model; a turn is this request with its response.
#[derive(Debug, Clone, Copy)]
pub struct TurnRequest<'a> {
    /// System prompt.
    pub system: &'a str,
    /// Conversation so far, oldest message first.
    pub messages: &'a [Message],
    /// Tools offered to the model.
    pub tools: &'a [ToolSpec],
    /// Maximum length of the response, in tokens.
    pub max_output_tokens: u64,
    /// Deadline for the whole turn, including retries.
    pub deadline: Instant,
}

/// Token counts of one response of the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Number of tokens that the provider read from the request.
    pub input: u64,
    /// Number of tokens in `input` that the provider read from its prompt cache.
    pub cached_input: u64,
    /// Number of tokens that the model generated.
    pub output: u64,
}

/// Reason why the model stopped generating.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// The response is complete.
    End,
    /// The model waits for the results of the tool calls that it requested.
    Tools,
    /// The response reached its token limit.
    Length,
    /// The provider's content filter withheld the response.
    Filtered,
}

/// One response of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Text of the response; a response may contain text and tool calls.
    pub text: String,
    /// Tool calls that the response requests, in the model's order.
    pub calls: Vec<ToolCall>,
    /// Reason why the model stopped generating.
    pub stop: StopReason,
    /// Token counts that the provider reports; `None` when it reports none.
    pub usage: Option<TokenUsage>,
    /// Name of the responding model, as the provider reports it.
    pub model: String,
}

/// A language model that the agent loop sends requests to.
pub trait Model {
    /// Sends one request and returns the response. Calls `on_text` with each piece of the
    /// response's text as it arrives. Retries temporary failures itself, so an error is final.
    fn turn(
        &mut self,
        request: TurnRequest<'_>,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<Reply, ModelError>;
}

/// Error of a model request. Its message contains no key and at most one line from the provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// Connecting failed, the response ended early, or retries were used up.
    #[error(
        "the model's provider sent no usable response ({why}); check base_url, or try again later"
    )]
    Unavailable {
        /// Description of the last failure.
        why: String,
        /// Number of requests sent, retries included.
        attempts: u32,
    },
    /// The response violates the protocol.
    #[error(
        "the response of the model's provider violates {protocol}: {why}; check base_url and the API of the model"
    )]
    Malformed {
        /// Name of the protocol that the provider should follow.
        protocol: &'static str,
        /// How the response violates the protocol.
        why: String,
    },
    /// The provider rejected the API key.
    #[error(
        "the model's provider refused the key (status {status}); correct the secret that holds it"
    )]
    Unauthorised {
        /// HTTP status of the response.
        status: u16,
    },
    /// The provider rejected the request.
    #[error("the model's provider refused the request (status {status}): {why}")]
    Rejected {
        /// HTTP status of the response.
        status: u16,
        /// The provider's error message, shortened to one line.
        why: String,
    },
    /// The conversation exceeds the model's context window. The loop shortens it and retries.
    #[error(
        "the conversation is longer than the model's context window; use a model with a larger window, or give a smaller task"
    )]
    TooLong,
    /// The deadline of the turn passed; it limits the first request and all retries together.
    #[error(
        "the run reached its wall clock limit while the agent waited for the model; raise the limit or use a faster model"
    )]
    Deadline,
    /// The run was cancelled.
    #[error("the run was cancelled while the agent waited for the model")]
    Cancelled,
}

impl ModelError {
    /// Returns how the run ends because of this error.
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
    /// The policy or the parent process does not allow the call.
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

/// Result of a tool call, as the agent loop gets it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolAnswer {
    /// Text for the model, cut to a maximum length.
    pub text: String,
    /// Whether the tool call succeeded.
    pub status: ToolStatus,
    /// How the task ended; set only by the tools `task.finish` and `task.blocked`.
    pub end: Option<TaskEnd>,
    /// Ids of the guest executions that the call started, e.g. `exec-7`, for the transcript.
    pub executions: Vec<String>,
    /// How long the tool call took.
    pub duration: Duration,
}

/// The tools that the model may call, and the code that executes the calls.
pub trait Toolbox {
    /// Returns the tools that the loop offers to the model; calls of other tools are refused.
    fn specs(&self) -> &[ToolSpec];
    /// Executes a tool call. An error ends the agent loop: the guest has ended, the run's time is
    /// up, or the run's journal cannot be written.
    fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer, Halt>;
}

/// Reason why the agent loop must end at once.
#[derive(Debug, Clone)]
pub enum Halt {
    /// The run ends with this outcome.
    Stop(Stop),
    /// The run's journal cannot be written.
    Failure(ErrorBody),
}

impl From<ErrorBody> for Halt {
    fn from(error: ErrorBody) -> Self {
        Self::Failure(error)
    }
}
