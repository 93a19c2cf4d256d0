//! What the service needs of the machine besides sandboxes: profiles, and the runs and artifacts of
//! the command line. The command line implements it with the functions of its own commands.
//!
//! The host does not know who asks. The service passes it only ids that the client may use.

use crate::actor::Actor;
use crate::extension::{SandboxId, SandboxUsage};
use crate::profile::ProfileDocument;
use serde_json::Value;
use std::collections::HashSet;
use wp_codebox_contracts::ErrorBody;

/// Page of a list of runs or artifacts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Number of rows to leave out, from the newest on.
    pub offset: usize,
    /// Maximum number of rows.
    pub limit: usize,
}

/// Runs to list, or whose bundles to list. Other runs are neither listed nor counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunSelection {
    /// Every run of the machine, also those that this service did not start.
    All,
    /// The runs with these ids.
    Only(HashSet<String>),
}

impl RunSelection {
    /// Returns whether the run is selected.
    #[must_use]
    pub fn has(&self, run: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(ids) => ids.contains(run),
        }
    }
}

/// Who asks for a run; decides which fields of a task are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requester {
    /// Owner of the service or root, on the unix socket without a token.
    Administrator,
    /// Client with a token.
    Token,
}

/// A run that a client asks for.
#[derive(Debug, Clone)]
pub struct RunOrder {
    /// Id of the run, chosen by the server.
    pub run: SandboxId,
    /// Task document, the input of the ability `run-agent-task`.
    pub task: Value,
    /// Profile that bounds the run, if one was named.
    pub profile: Option<ProfileDocument>,
    /// Actor who asks.
    pub actor: Actor,
    /// Rights of the client.
    pub requester: Requester,
}

/// A run whose task was checked, and of which nothing was started.
pub trait PlannedRun {
    /// Returns the longest time that the run may take, in milliseconds.
    fn duration_ms(&self) -> u64;

    /// Returns the bundle that the task continues, as the client named it.
    fn follow_up(&self) -> Option<&str>;

    /// Makes the task continue the bundle of exactly this run.
    fn set_follow_up(&mut self, run: &str);

    /// Starts the run, detached, and returns `run-handle/v1`.
    ///
    /// # Errors
    /// When the start was not confirmed. The run may exist; see [`Host::forestall_run`].
    fn start(self: Box<Self>) -> Result<Value, ErrorBody>;
}

/// State of a run for the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunProgress {
    /// The machine does not know the run.
    Unknown,
    /// The run has not ended.
    Running,
    /// The run has ended and used this.
    Ended(SandboxUsage),
}

/// Access to profiles, runs and artifacts. All methods block and may be called from several threads
/// at once. A run is named by its whole id, never by a part of it.
pub trait Host: Send + Sync {
    /// Lists the valid profiles, sorted by id and version.
    ///
    /// # Errors
    /// When they cannot be read.
    fn profiles(&self) -> Result<Vec<ProfileDocument>, ErrorBody>;

    /// Returns the profile `profile.shop` (its highest version) or `profile.shop@1.2.0`.
    ///
    /// # Errors
    /// `wp_codebox_profile_not_found` when there is none.
    fn profile(&self, reference: &str) -> Result<ProfileDocument, ErrorBody>;

    /// Returns the id of the extension whose prices apply to runs.
    fn run_extension(&self) -> &str;

    /// Lists the selected runs, newest first: `run-list/v1`.
    ///
    /// # Errors
    /// When they cannot be read.
    fn runs(&self, which: &RunSelection, page: Page) -> Result<Value, ErrorBody>;

    /// Returns a run: `run/v1`.
    ///
    /// # Errors
    /// `wp_codebox_run_not_found` when there is none.
    fn run(&self, run: &str) -> Result<Value, ErrorBody>;

    /// Returns a page of a run's journal: `run-events/v1`.
    ///
    /// # Errors
    /// `wp_codebox_run_not_found` when there is none.
    fn run_events(&self, run: &str, after: u64) -> Result<Value, ErrorBody>;

    /// Returns whether a run has ended, and what it used.
    ///
    /// # Errors
    /// When its state cannot be read.
    fn run_progress(&self, run: &str) -> Result<RunProgress, ErrorBody>;

    /// Checks the task of a run and its bounds: those of its profile, or the usual ones of runs
    /// without a profile. The task may set only fields that are open to the requester.
    ///
    /// # Errors
    /// When the task is not valid or exceeds a bound.
    fn plan_run(&self, order: RunOrder) -> Result<Box<dyn PlannedRun + '_>, ErrorBody>;

    /// Makes sure that no earlier [`PlannedRun::start`] starts the run from now on.
    ///
    /// # Errors
    /// When the run exists or may still come to exist.
    fn forestall_run(&self, run: &SandboxId) -> Result<(), ErrorBody>;

    /// Cancels a run: `run-cancellation/v1`.
    ///
    /// # Errors
    /// `wp_codebox_run_not_found` when there is none.
    fn cancel_run(&self, run: &str, actor: &Actor, reason: &str) -> Result<Value, ErrorBody>;

    /// Lists the artifact bundles of the selected runs, newest first: `artifact-list/v1`.
    ///
    /// # Errors
    /// When they cannot be read.
    fn artifacts(&self, which: &RunSelection, page: Page) -> Result<Value, ErrorBody>;

    /// Returns the runs that made the bundle with this id, newest first. Equal changes have equal
    /// bundle ids, so there may be several. A run's id names its own bundle.
    ///
    /// # Errors
    /// When the bundles cannot be read.
    fn runs_of_artifact(&self, id: &str) -> Result<Vec<String>, ErrorBody>;

    /// Returns the bundle of a run: `artifact/v1`.
    ///
    /// # Errors
    /// `wp_codebox_artifact_not_found` when there is none.
    fn artifact(&self, run: &str) -> Result<Value, ErrorBody>;

    /// Verifies digests and signature of the bundle of a run.
    ///
    /// # Errors
    /// `wp_codebox_artifact_not_found` when there is none.
    fn verify_artifact(&self, run: &str) -> Result<Value, ErrorBody>;

    /// Returns whether the machine can start sandboxes; the error says what is missing.
    ///
    /// # Errors
    /// When it cannot.
    fn ready(&self) -> Result<(), ErrorBody>;
}
