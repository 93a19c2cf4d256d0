//! Comparison of a whole tree with the tree that it was copied from.
//!
//! Used for guests without an overlay. The walk and its rules are those for an upper directory,
//! except that entries equal on both sides are skipped and not held in memory.

use super::error::CaptureError;
use super::upper::{Merge, read_changes};
use super::{CaptureLimits, ExcludeRules, MountChanges};
use rustix::fd::BorrowedFd;

/// Returns how the tree `after` differs from the tree `before` that it was copied from. The guest
/// must be dead. The limits apply to the differences; equal files are compared piece by piece and
/// not held in memory. Excluded names are listed whether they changed or not.
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
