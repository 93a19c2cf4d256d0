//! What the service needs of the machine besides sandboxes: profiles, and the runs and artifacts of
//! the command line. The command line implements it with the functions of its own commands.

use crate::actor::Actor;
use crate::profile::ProfileDocument;
use serde_json::Value;
use wp_codebox_contracts::ErrorBody;

/// Page of a list of runs or artifacts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Number of rows to leave out, from the newest on.
    pub offset: usize,
    /// Maximum number of rows.
    pub limit: usize,
}

/// Access to profiles, runs and artifacts. All methods block and may be called from several threads
/// at once.
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

    /// Lists runs, newest first: `run-list/v1`.
    ///
    /// # Errors
    /// When they cannot be read.
    fn runs(&self, page: Page) -> Result<Value, ErrorBody>;

    /// Returns a run: `run/v1`.
    ///
    /// # Errors
    /// `wp_codebox_run_not_found` when there is none.
    fn run(&self, id: &str) -> Result<Value, ErrorBody>;

    /// Returns a page of a run's journal: `run-events/v1`.
    ///
    /// # Errors
    /// `wp_codebox_run_not_found` when there is none.
    fn run_events(&self, id: &str, after: u64) -> Result<Value, ErrorBody>;

    /// Starts a detached run from a task document, the input of the ability `run-agent-task`, and
    /// returns `run-handle/v1`. The document may set only fields that are open to callers.
    ///
    /// # Errors
    /// When the task is not valid or the run cannot start.
    fn start_run(&self, task: &Value, actor: &Actor) -> Result<Value, ErrorBody>;

    /// Cancels a run: `run-cancellation/v1`.
    ///
    /// # Errors
    /// `wp_codebox_run_not_found` when there is none.
    fn cancel_run(&self, id: &str, actor: &Actor, reason: &str) -> Result<Value, ErrorBody>;

    /// Lists artifact bundles, newest first: `artifact-list/v1`.
    ///
    /// # Errors
    /// When they cannot be read.
    fn artifacts(&self, page: Page) -> Result<Value, ErrorBody>;

    /// Returns a bundle: `artifact/v1`.
    ///
    /// # Errors
    /// `wp_codebox_artifact_not_found` when there is none.
    fn artifact(&self, id: &str) -> Result<Value, ErrorBody>;

    /// Verifies digests and signature of a bundle.
    ///
    /// # Errors
    /// `wp_codebox_artifact_not_found` when there is none.
    fn verify_artifact(&self, id: &str) -> Result<Value, ErrorBody>;

    /// Returns whether the machine can start sandboxes; the error says what is missing.
    ///
    /// # Errors
    /// When it cannot.
    fn ready(&self) -> Result<(), ErrorBody>;
}
