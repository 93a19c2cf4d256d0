//! Runs in the format of the run registry: a projection of [`RunView`](crate::RunView), not a
//! second record.
//!
//! A run refers to a process that starts with the request, so no run is ever in the state
//! `queued`; the state exists only in the table. The journal tells the current state of a run.
//! This module does no I/O; its callers pass observations and their time.

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
