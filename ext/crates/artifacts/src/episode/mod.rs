//! Episodes: traces whose every digest can be computed again.
//!
//! [`EpisodeBuilder`] writes a trace as an episode goes on and redacts what it is given before
//! anything is digested; [`validate_episode_trace`] judges any trace. Both compute digests
//! through `payload`, and the builder asks the validator about each part before it keeps it,
//! so what is written here is what is accepted here.

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
