//! Runs in the format of the run registry. Its documents are computed from
//! [`RunView`](crate::RunView) and not stored.
//!
//! A run of this host starts as soon as it is requested, so it is never in the state `queued`; a
//! run of a cluster is, until a node has claimed it. The current state of a run follows from its
//! journal. This module does no I/O; its callers pass what they observed, and when.

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
