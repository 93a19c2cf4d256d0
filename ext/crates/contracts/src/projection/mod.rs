//! The journal in other vocabularies: names of an event bus, and server-sent events.
//!
//! Projections are pure: one event in, one out or none, and nothing is kept between two calls.
//! The journal stays the record; whoever needs what a projection leaves out reads that.

mod bus;
mod sse;

pub use bus::{BusEvent, BusEventType, BusProjection, project_to_bus};
pub use sse::{SseError, SseFrame, last_event_id};
