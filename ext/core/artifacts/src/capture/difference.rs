//! Changes of a guest, found by comparing its copy of a tree with the original.
//!
//! Used where no overlay can be mounted. Rules and walk are those for an overlay's upper directory,
//! except that entries equal on both sides are skipped and not held in memory.

use super::error::CaptureError;
use super::upper::{Merge, read_changes};
use super::{CaptureLimits, ExcludeRules, MountChanges};
use rustix::fd::BorrowedFd;

/// Returns the changes from the tree `before` to its copy `after`. No process may use the copy any
/// more, so the guest must be dead. The limits apply to the changes; equal files are compared in
/// pieces and not held in memory. Excluded names are listed as omitted even if nothing changed.
pub fn capture_difference(
    before: BorrowedFd<'_>,
    after: BorrowedFd<'_>,
    rules: &ExcludeRules,
    limits: &CaptureLimits,
) -> Result<MountChanges, CaptureError> {
    let most = limits.entries;
    let visits = CaptureLimits {
        depth: CaptureLimits::TREE.depth,
        entries: CaptureLimits::TREE.entries,
        ..*limits
    };
    read_changes(before, after, rules, &visits, Merge::Whole, most)
}
