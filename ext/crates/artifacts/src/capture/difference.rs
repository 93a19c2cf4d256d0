//! A whole tree read as changes over the tree it was a copy of.
//!
//! For guests without an overlay: the walk and its rules are those of the upper
//! directory; only what is equal on both sides is passed over without being kept.

use super::error::CaptureError;
use super::upper::{Merge, read_changes};
use super::{CaptureLimits, ExcludeRules, FileMode, MountChanges};
use crate::beneath::{Dir, same_bytes, size_of};
use rustix::fd::BorrowedFd;
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

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

/// Whether both sides are regular files of equal mode and bytes; neither is kept in memory.
pub(super) fn same_file(
    lower: &Dir,
    before: &Stat,
    upper: &Dir,
    after: &Stat,
    name: &[u8],
) -> Result<bool, Errno> {
    let regular = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let alike = regular(before)
        && regular(after)
        && size_of(before) == size_of(after)
        && FileMode::from_raw(before.st_mode) == FileMode::from_raw(after.st_mode);
    if !alike {
        return Ok(false);
    }
    let ((one, _), (other, _)) = (lower.open_file(name)?, upper.open_file(name)?);
    same_bytes(&one, &other)
}
