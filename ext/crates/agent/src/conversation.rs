//! What model, tools and loop say to each other, in no provider's words.

use serde_json::{Map, Value};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_runtime::Stop;

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Of the task, or of the loop itself.
    User(String),
    /// Of the model.
    Assistant {
        /// What it said.
        text: String,
        /// The tool calls it asks for.
        calls: Vec<ToolCall>,
    },
    /// What came of a call.
    Tool {
        /// Id of the call that this answers.
        call_id: String,
        /// What the model reads.
        text: String,
        /// How the call ended.
        status: ToolStatus,
    },
}

/// A tool as the model is told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Id, e.g. `workspace.read`.
    pub id: String,
    /// Name on the wire: letters, digits and `_`, at most 64.
    pub name: String,
    /// What the model is told of it.
    pub description: String,
    /// JSON Schema of the arguments, an object.
    pub parameters: Value,
}

/// A call that the model asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The provider's id of it; made up where the provider gives none.
    pub id: String,
    /// As on the wire.
    pub name: String,
    /// Arguments, or why they cannot be read. Never a reason to end the run.
    pub arguments: Result<Map<String, Value>, String>,
}

/// One question to the model.
#[derive(Debug, Clone, Copy)]
pub struct TurnRequest<'a> {
    /// The system prompt.
    pub system: &'a str,
    /// The conversation so far, oldest first.
    pub messages: &'a [Message],
    /// The tools on offer.
    pub tools: &'a [ToolSpec],
    /// Longest reply, tokens.
    pub max_output_tokens: u64,
    /// When it is broken off, retries included.
    pub deadline: Instant,
}

/// Tokens of one answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Tokens read.
    pub input: u64,
    /// Of `input`, those the provider had cached.
    pub cached_input: u64,
    /// Tokens written.
    pub output: u64,
}

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// It has nothing more to say.
    End,
    /// It waits for tools.
    Tools,
    /// The answer was cut at its limit.
    Length,
    /// The provider withheld the answer.
    Filtered,
}

/// One answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// What the model said beside its calls.
    pub text: String,
    /// The tool calls it asks for, in order.
    pub calls: Vec<ToolCall>,
    /// Why the reply ended.
    pub stop: StopReason,
    /// As the provider counts; absent when it does not say.
    pub usage: Option<TokenUsage>,
    /// The model that answered, as it names itself.
    pub model: String,
}

/// A model that can be asked.
pub trait Model {
    /// One turn. Text is handed on as it comes. Temporary failures were tried again already.
    fn turn(
        &mut self,
        request: TurnRequest<'_>,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<Reply, ModelError>;
}

/// Why there is no answer. Sentences never hold a key, nor more than a line of what the
/// provider said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// It could not be reached, or broke off, or kept failing.
    #[error("the model's provider did not answer: {why}")]
    Unavailable {
        /// Why it cannot be used.
        why: String,
        /// Requests made.
        attempts: u32,
    },
    /// It answered something that is not its protocol.
    #[error("the model's provider answered something that is not {protocol}: {why}")]
    Malformed {
        /// The protocol it should follow.
        protocol: &'static str,
        /// What does not.
        why: String,
    },
    /// It refused the key.
    #[error("the model's provider refused the key (status {status}): check the credentials")]
    Unauthorised {
        /// HTTP status.
        status: u16,
    },
    /// It refused the request.
    #[error("the model's provider refused the request (status {status}): {why}")]
    Rejected {
        /// HTTP status.
        status: u16,
        /// What the provider said.
        why: String,
    },
    /// The conversation is longer than the model's window. The loop shortens it and asks again.
    #[error("the conversation is longer than the model's window")]
    TooLong,
    /// The deadline passed.
    #[error("the wall clock limit was reached while the model was answering")]
    Deadline,
    /// The run was cancelled.
    #[error("the run was cancelled while the model was answering")]
    Cancelled,
}

impl ModelError {
    /// What the run comes to because of it.
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

/// How a call went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolStatus {
    /// It did what was asked.
    Ok,
    /// It did not; the text says why and what to do.
    Failed,
    /// The policy does not allow it.
    Denied,
}

/// What the model says of the whole task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskEnd {
    /// `task.finish`.
    Finished {
        /// What it says that it did.
        summary: String,
    },
    /// `task.blocked`.
    Blocked {
        /// What it says is in its way.
        reason: String,
    },
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolAnswer {
    /// For the model, bounded.
    pub text: String,
    /// How the call ended.
    pub status: ToolStatus,
    /// Set by the tools that end the task.
    pub end: Option<TaskEnd>,
    /// The guest's executions that it took, e.g. `exec-7`, for the transcript.
    pub executions: Vec<String>,
    /// How long the call took.
    pub duration: Duration,
}

/// Tools that can be called.
pub trait Toolbox {
    /// Those that are offered; others are refused.
    fn specs(&self) -> &[ToolSpec];
    /// Carries a call out. An error ends the work: the guest is gone, time is up, or our own
    /// record cannot be written.
    fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer, Halt>;
}

/// Why no further call is possible.
#[derive(Debug, Clone)]
pub enum Halt {
    /// What the run comes to.
    Stop(Stop),
    /// Our own evidence cannot be written.
    Failure(ErrorBody),
}

impl From<ErrorBody> for Halt {
    fn from(error: ErrorBody) -> Self {
        Self::Failure(error)
    }
}
