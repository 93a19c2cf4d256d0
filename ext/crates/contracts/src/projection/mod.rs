//! The journal in other formats: event bus names, and server-sent events.
//!
//! Projections are pure and stateless: one event in, one event or none out. The journal remains
//! the complete record; readers who need an omitted event read the journal.

mod bus;
mod sse;

pub use bus::{BusEvent, BusEventType, BusProjection, project_to_bus};
pub use sse::{SseError, SseFrame, last_event_id};
