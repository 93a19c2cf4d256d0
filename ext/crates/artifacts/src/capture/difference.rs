//! A whole tree read as changes over the tree it was a copy of.
//!
//! For guests without an overlay: the walk and its rules are those of the upper
//! directory; only what is equal on both sides is passed over without being kept.

use super::error::CaptureError;
use super::upper::{Merge, read_changes};
use super::{CaptureLimits, ExcludeRules, MountChanges};
use rustix::fd::BorrowedFd;

/// Reads how the whole tree `after` differs from the tree `before` that it was a copy of. The
/// guest must be dead. The limits hold for what differs; equal files are compared piece by
/// piece and not kept. An excluded name is listed whether it changed or not.
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
