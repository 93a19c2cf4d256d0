//! The built-in agent: the model runs outside of the guest. Tools run inside the guest, except
//! those that the parent process executes.
//!
//! Four modules, connected only by the types of `conversation`:
//!
//! - `model` sends one request to a provider and returns its response;
//! - `tools` offers the tools that the policy allows and executes calls in the guest through the
//!   exec channel, like any other program of the run;
//! - `edit` changes texts: exact-match edits and patches, as pure functions;
//! - `turns` is the agent loop: budgets, compaction and stop reasons.
//!
//! Invariants:
//!
//! - Output of the model is untrusted data.
//! - A call of a tool that is not offered is refused.
//! - The API key is sent to the model's own address only.
//! - The transcript contains every call, redacted and cut to a maximum length.
//! - Whether a check passed is decided by executing it, never by a statement of the model.
#![forbid(unsafe_code)]

mod conversation;
mod edit;
mod model;
mod tools;
mod turns;

pub use conversation::{
    Halt, Message, Model, ModelError, Reply, StopReason, TaskEnd, TokenUsage, ToolAnswer, ToolCall,
    ToolSpec, ToolStatus, Toolbox, TurnRequest,
};
pub use model::ModelClient;
pub use tools::{GuestExecutor, GuestWasiTool, MountChange, RawOutput, ToolContext, Tools};
pub use turns::CallStatus;
pub use turns::Counted;
pub use turns::{
    Assignment, BriefedMount, Briefing, CallRecord, Ended, Ending, LoopObserver, Parent,
    ParentAnswer, ParentTools, TurnRecord, drive, first_message, parent_unavailable, system_prompt,
};
