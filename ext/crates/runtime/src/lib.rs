//! What every backend has in common: the lifecycle, the state directory, the
//! directory of a run and its journal, collecting what runs left, and the contract of a
//! backend.
//!
//! Invariants: the state directory has one owner who is not root; files below it
//! are created 0600 and directories 0700; a journal line is written whole or not
//! at all; a run without a living holder of its lease is dead.
#![forbid(unsafe_code)]

mod backend;
mod cancellation;
mod disk;
mod gc;
mod journal;
mod lifecycle;
mod run_dir;
mod state_dir;
mod timestamp;

pub use backend::{
    Backend, BackendError, Capabilities, Destroyed, EgressListeners, Execution, ExecutionEnd,
    ExecutionResult, Left, Runtime, Usage,
};
pub use cancellation::{CancelReason, Cancellation};
pub use gc::{
    ArtifactRule, GcFailure, GcItem, GcKind, GcMode, GcReason, GcReport, GcRules, SizeBudget,
    collect, sites,
};
pub use journal::{Journal, JournalError};
pub use lifecycle::{IllegalTransition, RuntimeState};
pub use run_dir::{Reaped, RunDir, RunDirError, RunRecord, Scratch, reap_dead};
pub use state_dir::{Owner, StateDir, StateDirError};
pub use timestamp::{now_rfc3339, rfc3339};
