//! Runs in the words of the run registry: a projection of [`RunView`](crate::RunView), never a
//! second record.
//!
//! A run here is a process handle. It begins when it is asked for, so `queued` is a word of
//! the table that no run of ours is ever in; what a run is doing now is read from its journal.
//! Nothing here does I/O: whoever asks says what was seen and when.

mod entry;
mod listing;
mod progress;
mod state;

pub use entry::{
    CancellationNote, LifecycleCleanup, LifecycleCleanupStatus, RunCancellationRequest,
    RunLifecycle, RunRegistryEntry, RunSeen, RuntimeRunResult, SeenCancellation, SeenScratch,
};
pub use listing::{RunArtifactList, RunBundle, RunRegistryPage};
pub use progress::RunProgress;
pub use state::{RunPhase, RunState, RunTransitionError};
