//! Runs programs in the guest: that of a run, or a stand-in of the tests.

use std::time::Duration;
use wp_codebox_artifacts::MountChanges;
use wp_codebox_contracts::{ErrorBody, GuestPath};
use wp_codebox_runtime::{Call, Step};

/// A program that hands over the content of files.
#[derive(Debug)]
pub struct Taken {
    /// How the program ended, and its output.
    pub step: Step,
    /// Its standard output as it is.
    pub bytes: Vec<u8>,
}

/// What has changed in one mount.
#[derive(Debug)]
pub struct MountChange {
    /// Where the mount is.
    pub at: GuestPath,
    /// What changed in it.
    pub changes: MountChanges,
}

/// Runs programs in the guest and records them. Errors mean that our own record cannot be written.
pub trait GuestExecutor {
    /// Runs a program; after the timeout it alone is ended. Its output comes back redacted.
    fn run(&mut self, call: &Call, timeout: Duration) -> Result<Step, ErrorBody>;
    /// Runs a program whose output is the content of files, at most so many bytes. The record
    /// keeps the size only, and the bytes are not redacted: they are for edits, not to be shown.
    fn take(&mut self, call: &Call, timeout: Duration, most: u64) -> Result<Taken, ErrorBody>;
    /// Whether the guest still runs programs.
    fn is_alive(&mut self) -> Result<bool, ErrorBody>;
    /// What has changed in each mount that is captured, or why that cannot be told now.
    fn changes(&mut self) -> Result<Vec<MountChange>, ErrorBody>;
    /// A text without what must not be shown.
    fn clean(&self, text: &str) -> String;
    /// Executions so far.
    fn executions(&self) -> usize;
    /// Ids of the executions after the first so many.
    fn executions_since(&self, count: usize) -> Vec<String>;
}
