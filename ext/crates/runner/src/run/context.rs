//! What every guest of a run shares once its mounts, components and template are ready.

use super::components::ReadyComponent;
use super::materialise::Materialised;
use super::prepare::Prepared;
use crate::agent::Parent;
use crate::mail::Mailbox;
use std::sync::Arc;
use std::time::Instant;
use wp_codebox_backend_native::NativeBackend;
use wp_codebox_contracts::{GuestPath, IsolationLevel, StagedFile};
use wp_codebox_policy::Redactor;
use wp_codebox_runtime::{GuestMount, RunDir};

/// When the caller began to ask for the run, and when the run must end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    pub asked: Instant,
    /// The limit counts from when the run was prepared: a slow caller does not shorten it.
    pub deadline: Instant,
}

/// A run that is ready to start guests; nothing in it changes afterwards but the mailbox.
pub(crate) struct RunContext<'a> {
    pub prepared: &'a Prepared,
    pub run_dir: &'a RunDir,
    pub backend: NativeBackend,
    /// What every guest of this run is asked to be.
    pub level: IsolationLevel,
    pub mounts: Vec<Materialised>,
    pub guest_mounts: Vec<GuestMount>,
    pub components: Vec<ReadyComponent>,
    pub cwd: GuestPath,
    pub staged: Vec<StagedFile>,
    pub clock: Clock,
    /// Who answers for tools outside of the guest.
    pub parent: &'a dyn Parent,
    pub redactor: &'a Redactor,
    /// What its guests sent.
    pub mailbox: Arc<Mailbox>,
}
