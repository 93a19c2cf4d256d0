//! Interface to run programs in the guest; implemented by a run and by a test double.

use std::time::Duration;
use wp_codebox_artifacts::MountChanges;
use wp_codebox_contracts::{ErrorBody, GuestPath};
use wp_codebox_runtime::{Call, Step};

/// Result of a guest program that prints file contents, both as recorded and unredacted.
#[derive(Debug)]
pub struct RawOutput {
    /// How the program ended, and its output as recorded.
    pub step: Step,
    /// Standard output of the program, not redacted.
    pub bytes: Vec<u8>,
}

/// Changes of the files in one mount.
#[derive(Debug)]
pub struct MountChange {
    /// Path in the guest where the mount is.
    pub at: GuestPath,
    /// Changed files, relative to the mount point.
    pub changes: MountChanges,
}

/// Runs programs in the guest and records them. An error of any method except [`Self::changes`]
/// means that the run's journal cannot be written.
pub trait GuestExecutor {
    /// Runs a program and returns its redacted output. The timeout ends only this program.
    fn run(&mut self, call: &Call, timeout: Duration) -> Result<Step, ErrorBody>;
    /// Runs a program that prints file contents, at most `most` bytes, and returns them unredacted.
    /// The unredacted bytes are for computing edits; they must not be shown to the model. The
    /// journal records only their size.
    fn take(&mut self, call: &Call, timeout: Duration, most: u64) -> Result<RawOutput, ErrorBody>;
    /// Returns whether the guest can still run programs.
    fn is_alive(&mut self) -> Result<bool, ErrorBody>;
    /// Returns the changes in each mount whose changes the run captures; fails when the changes
    /// cannot be read now.
    fn changes(&mut self) -> Result<Vec<MountChange>, ErrorBody>;
    /// Returns a text with secrets redacted.
    fn clean(&self, text: &str) -> String;
    /// Returns how many programs have run so far.
    fn executions(&self) -> usize;
    /// Returns the ids of the programs that ran after the first `count` ones.
    fn executions_since(&self, count: usize) -> Vec<String>;
}
