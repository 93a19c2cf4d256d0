//! Conversion of journal events to other formats: events of an agent's event bus, and server-sent
//! events.
//!
//! Each conversion takes one event and gives one event or none, without state. The journal remains
//! the complete record; readers who need an omitted event read the journal.

mod bus;
mod sse;

pub use bus::{BusEvent, BusEventType, BusProjection, project_to_bus};
pub use sse::{SseError, SseFrame, last_event_id};
