//! Copies of a directory for a tool of the host, and the merge of the tool's changes.
//!
//! The tool never sees the directory itself. The first copy, the base, stays as it is: it is the
//! state from which the tool started. The tool works on a second copy, or on an overlay over the
//! base. The changes are read by the rules of a capture: only regular files are read, links are
//! never followed, and links that lead out are left out.

mod merge;

pub use merge::MergeError;

use super::tree::{CopyReport, Links, TreeError, copy_tree};
use super::{CaptureError, CaptureLimits, ExcludeRules, MountChanges, capture, capture_difference};
use crate::dirfd::Dir;
use rustix::fd::{AsFd, BorrowedFd};

/// A directory and the copy of it that is the base of a tool's changes.
#[derive(Debug)]
pub struct Shadow {
    original: Dir,
    base: Dir,
    rules: ExcludeRules,
}

impl Shadow {
    /// Copies the contents of `original` into the empty directory `base`, within the limits for the
    /// directory of a mount. Links are copied as they are, FIFOs, sockets and devices are refused.
    /// The tool must not be able to write the base.
    pub fn make(
        original: BorrowedFd<'_>,
        base: BorrowedFd<'_>,
        rules: ExcludeRules,
    ) -> Result<(Self, CopyReport), TreeError> {
        let limits = CaptureLimits::TREE;
        let report = copy_tree(original, base, &rules, Links::AsTheyAre, &limits)?;
        let reopen = |fd| {
            Dir::reopen(fd).map_err(|source| TreeError::Write {
                path: String::new(),
                source,
            })
        };
        let shadow = Self {
            original: reopen(original)?,
            base: reopen(base)?,
            rules,
        };
        Ok((shadow, report))
    }

    /// Copies the base into the empty directory `copy`, on which the tool works.
    pub fn copy_to(&self, copy: BorrowedFd<'_>) -> Result<(), TreeError> {
        let limits = CaptureLimits::TREE;
        let base = self.base.as_fd();
        copy_tree(base, copy, &self.rules, Links::AsTheyAre, &limits).map(drop)
    }

    /// Returns what the tool changed in a copy that [`Self::copy_to`] filled. The tool must have
    /// ended.
    pub fn changes_in_copy(&self, copy: BorrowedFd<'_>) -> Result<MountChanges, CaptureError> {
        let limits = CaptureLimits::default();
        capture_difference(self.base.as_fd(), copy, &self.rules, &limits)
    }

    /// Returns what the tool changed in an overlay whose lower directory is the base. `upper` is
    /// its upper directory. The tool must have ended.
    pub fn changes_in_layer(&self, upper: BorrowedFd<'_>) -> Result<MountChanges, CaptureError> {
        let limits = CaptureLimits::default();
        capture(self.base.as_fd(), upper, &self.rules, &limits)
    }

    /// Writes changes to the original directory. Each file is replaced by one rename; it keeps the
    /// owner, and the permissions except for the execute bits.
    ///
    /// The merge locks the directory like an apply, and first compares each changed path with the
    /// base. If one differs, it changes nothing. While it writes, it compares each path again after
    /// it has moved the old entry aside, and puts an entry back that another program changed since.
    /// A program that keeps a file open and writes to it after the comparison loses that write.
    /// There is no journal: a merge that fails or is killed leaves the paths written so far, and a
    /// killed one possibly a file `.wp-codebox-merge` beside a path.
    pub fn merge(&self, changes: &MountChanges) -> Result<(), MergeError> {
        merge::merge(&self.original, changes, &mut |_| {})
    }
}

#[cfg(test)]
mod tests;
