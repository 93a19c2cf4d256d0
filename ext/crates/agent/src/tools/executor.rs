//! Interface to run programs in the guest; implemented by a run and by a test double.

use std::time::Duration;
use wp_codebox_artifacts::MountChanges;
use wp_codebox_contracts::{ErrorBody, GuestPath};
use wp_codebox_runtime::{Call, Step};

/// Result of a program that outputs file contents.
#[derive(Debug)]
pub struct RawOutput {
    /// Exit state of the program and its recorded output.
    pub step: Step,
    /// Raw standard output.
    pub bytes: Vec<u8>,
}

/// Changes in one mount.
#[derive(Debug)]
pub struct MountChange {
    /// Mount point in the guest.
    pub at: GuestPath,
    /// Changes below the mount point.
    pub changes: MountChanges,
}

/// Runs programs in the guest and records them. An error means that the run's journal cannot be
/// written.
pub trait GuestExecutor {
    /// Runs a program and returns its redacted output. The timeout ends only this program.
    fn run(&mut self, call: &Call, timeout: Duration) -> Result<Step, ErrorBody>;
    /// Runs a program that outputs file contents, at most `most` bytes. The journal records only
    /// the size. The bytes are not redacted: they are for edits and must not be shown.
    fn take(&mut self, call: &Call, timeout: Duration, most: u64) -> Result<RawOutput, ErrorBody>;
    /// Returns whether the guest can still run programs.
    fn is_alive(&mut self) -> Result<bool, ErrorBody>;
    /// Returns the changes in each captured mount; fails when the mounts cannot be compared now.
    fn changes(&mut self) -> Result<Vec<MountChange>, ErrorBody>;
    /// Returns a text with secrets redacted.
    fn clean(&self, text: &str) -> String;
    /// Returns the number of executions so far.
    fn executions(&self) -> usize;
    /// Returns the ids of the executions after the first `count`.
    fn executions_since(&self, count: usize) -> Vec<String>;
}
