//! Episodes: sequences of actions and observations in one sandbox, recorded as a trace.
//!
//! A trace records actions, executions, observations and snapshots. It contains no scores;
//! readers of the trace compute their own. Every part contains its digest, or a [`TraceRef`] with
//! its digest refers to it; the artifacts crate computes the digests. These types describe traces
//! that this project writes. Traces from other programs are validated as JSON documents without
//! these types.

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
