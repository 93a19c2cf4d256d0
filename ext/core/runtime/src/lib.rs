//! Parts common to all backends: the lifecycle, the state directory, the directory and journal of
//! a run, the run registry, garbage collection, and the backend traits.
//!
//! Invariants: the state directory belongs to one user, who is not root. Its files have mode 0600
//! and its directories 0700. A journal line is written completely or not at all. A run is dead if
//! no living process holds the lock on its `lease` file.
#![forbid(unsafe_code)]

mod backend;
mod call;
mod cancellation;
mod check;
mod disk;
mod document;
mod event_log;
mod gc;
mod guest_program;
mod held;
mod host_note;
mod journal;
mod kernel_error;
mod lifecycle;
mod markers;
mod reap;
mod recover;
mod recovery;
mod registry;
mod run_dir;
mod run_record;
mod run_usage;
mod snapshots;
mod spend;
mod state_dir;
mod supervisor_death;
mod timestamp;

/// Name of the directory below `sites/<site>/` with one file per sandbox: the data to create the
/// sandbox again.
pub const SEEDS: &str = "sandboxes";

pub use backend::{
    Backend, BackendError, Capabilities, CapturedMounts, Connected, Connector, Destroyed,
    EgressListeners, Execution, ExecutionEnd, ExecutionResult, Launch, LaunchedEnd, Runtime,
    Terminal, Usage,
};
pub use call::{Bounds, COMPONENTS, Call, Cut, Step, Stop};
pub use cancellation::{CancelHook, CancelReason, Cancellation};
pub use check::{CheckRecord, check_report, is_check_setting};
pub use document::DocumentError;
pub use event_log::{EventPage, PageLimits, read_events};
pub use gc::{
    ArtifactRule, GcFailure, GcItem, GcKind, GcMode, GcReason, GcReport, GcRetainReason,
    GcRetained, GcRules, SizeBudget, SnapshotRule, collect, sites,
};
pub use guest_program::{
    AGENT_COMMAND, DIAGNOSTICS, GuestMount, agent_program, check_program, command_program,
    guest_command, requester_variables, working_directory,
};
pub use held::{HeldFacts, HeldMount};
pub use host_note::host_oom_kills;
pub use journal::{Journal, JournalError};
pub use kernel_error::kernel_error;
pub use lifecycle::{IllegalTransition, RuntimeState};
pub use reap::{Reaped, reap_dead};
pub use recover::{RecoverError, recover_run};
pub use registry::{
    DirectoryRun, FoundRun, ListFilter, RegistryError, RunPage, StatusFilter, cancellation, cost,
    entry, events, find, list, list_entries, list_of_user, list_selected, runs_of_directory,
    status, view,
};
pub use run_dir::{RECOVERY_BUNDLE, RESULT_FILE, RunDir, RunDirError, Scratch};
pub use run_record::{Ending, LiveRecord, NewRun, RecordedWork, RunRecord};
pub use run_usage::{RunUsage, SAMPLE_INTERVAL, UsageMeter, UsageRecord};
pub use snapshots::{
    LayerSource, OpenSnapshot, Removal, SNAPSHOT_SEMANTICS, SnapshotError, SnapshotFacts,
    SnapshotScope, SnapshotStore,
};
pub use spend::{SpendError, SpendReservation};
pub use state_dir::{Owner, STATES, StateDir, StateDirError};
pub use supervisor_death::crash_note;
pub use timestamp::{now_rfc3339, rfc3339};
