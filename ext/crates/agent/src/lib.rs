//! The built-in agent: the model outside the guest, every tool inside it.
//!
//! Four parts that know each other only by the types of `conversation`:
//!
//! - `model` speaks to a provider and answers one turn;
//! - `tools` offers what the tool policy allows and carries calls out in the guest, through
//!   the exec channel, as any other program of the run;
//! - `edit` changes texts: exact-match edits and patches. Pure;
//! - `turns` is the loop: budgets, compaction, and why it stops.
//!
//! Invariants: whatever the model says is data; a tool that is not offered is refused when
//! called; the key goes to the model's own address only, and into nothing else; every call is
//! in the transcript, bounded and redacted; nothing the model says can make a check pass.
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
pub use tools::{GuestExecutor, MountChange, Place, Taken, Tools};
pub use turns::CallStatus;
pub use turns::Counted;
pub use turns::{
    Assignment, BriefedMount, Briefing, CallRecord, Ended, Ending, Parent, ParentAnswer,
    ParentTools, TurnRecord, Witness, drive, first_message, parent_unavailable, system_prompt,
};
