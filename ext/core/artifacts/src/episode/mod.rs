//! Episodes: traces in which every digest can be recomputed.
//!
//! [`EpisodeBuilder`] writes a trace during an episode and redacts its input before it computes
//! digests. [`validate_episode_trace`] checks any trace. Both compute digests with `payload`, and
//! the builder checks each part with the rules of the validator before it stores the part, so the
//! validator accepts every trace written here.

mod builder;
mod error;
mod inputs;
mod issues;
mod parts;
mod payload;
mod redact;
mod validate;

pub use builder::{ClosedEpisode, EpisodeBuilder};
pub use error::EpisodeError;
pub use inputs::{
    EpisodeArtifacts, EpisodeStart, ObservationInput, SnapshotInput, StepInput, StepObservation,
};
pub use issues::{MAX_TRACE_ISSUES, TraceIssue};
pub use parts::{EpisodePart, cut_episode};
pub use validate::{MAX_TRACE_BYTES, TraceValidation, validate_episode_trace};
