//! Episodes: a stateful conversation with one runtime, kept as a trace.
//!
//! A trace says what was asked for (actions), what came of it (executions, observations,
//! snapshots) and nothing about how good that was: scores belong to whoever reads it. Every
//! part carries a digest, or is named by a reference that does; how they are computed is the
//! artifacts crate's. Types here are what this project writes; a foreign trace is judged as a
//! document, not through them.

mod action;
mod observation;
mod reference;
mod trace;

pub use action::{ActionKind, ActionRequest, EpisodeAction};
pub use observation::{
    EpisodeObservation, EpisodeSnapshot, ObservationRedaction, ObservationSpec, ObservationType,
    SnapshotSemantics,
};
pub use reference::{TraceRef, TraceRefKind};
pub use trace::{
    EpisodeExecution, EpisodeRecord, EpisodeReset, EpisodeStep, EpisodeTrace, TRACE_VERSION,
};
