//! Conversion of stored documents to other formats: a run result to the documents about its task,
//! and journal events to events of an agent's event bus and to server-sent events.
//!
//! Conversions have no state. An event becomes one event or none. The journal remains the complete
//! record; readers who need an omitted event read the journal.

mod agent_task;
mod bus;
mod session;
mod sse;

pub use agent_task::{
    AgentTaskError, AgentTaskFacts, agent_task_row, agent_task_run, agent_task_started,
    task_document,
};
pub use bus::{BusEvent, BusEventType, BusProjection, project_to_bus};
pub use session::{SessionState, sandbox_session, session_id};
pub use sse::{SseError, SseFrame, last_event_id};
