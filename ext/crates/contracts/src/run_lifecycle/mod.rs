//! Runs in the format of the run registry, which is computed from [`RunView`](crate::RunView) and
//! not stored.
//!
//! A run's process starts as soon as the run is requested, so no run is ever in the state `queued`;
//! only the public list of states contains it. The current state of a run follows from its journal.
//! This module does no I/O; its callers pass what they observed, and when.

mod entry;
mod listing;
mod progress;
mod state;

pub use entry::{
    CancellationNote, LifecycleCleanup, LifecycleCleanupStatus, RecordedCancellation,
    RunCancellationRequest, RunLifecycle, RunObservations, RunRegistryEntry, RuntimeRunResult,
    ScratchState,
};
pub use listing::{RunArtifactList, RunBundle, RunRegistryPage};
pub use progress::RunProgress;
pub use state::{RunPhase, RunState, RunTransitionError};
