//! Removes old applied changes, which can then no longer be undone.

use crate::document::read;
use crate::error::ApplyError;
use crate::journal::{Journal, names};
use crate::path::open_dir;
use crate::record::ApplyId;
use crate::steps::io;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, FileType, statat};
use rustix::io::Errno;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wp_codebox_artifacts::Dir;

/// Maximum directory depth to which `size` adds up file sizes. The directory of a change in the
/// journal has fewer levels.
const DEPTH: usize = 4;

/// Which applied changes are kept: those that are within all three limits, counted from the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepRules {
    /// Maximum number of changes.
    pub count: usize,
    /// Maximum time since the change was applied or last partly undone.
    pub max_age: Duration,
    /// Maximum size of all changes together, in bytes.
    pub max_bytes: u64,
}

impl Default for KeepRules {
    fn default() -> Self {
        Self {
            count: 100,
            max_age: Duration::from_secs(90 * 24 * 3600),
            max_bytes: 1 << 30,
        }
    }
}

/// A change that the rules do not keep: an applied one, or one that waits for a missing directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expired {
    /// Id of the change.
    pub id: ApplyId,
    /// Size of the change's journal, including the old contents of the changed files, in bytes.
    pub bytes: u64,
    /// Limit that the change exceeds; the first one if it exceeds several.
    pub limit: KeepLimit,
}

/// A limit of [`KeepRules`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepLimit {
    /// [`KeepRules::max_age`].
    Age,
    /// [`KeepRules::count`].
    Count,
    /// [`KeepRules::max_bytes`].
    Size,
}

impl Journal {
    /// Returns the applied changes that the rules do not keep, newest first.
    ///
    /// # Errors
    /// [`ApplyError::Io`] if the journal cannot be listed.
    pub fn expired(&self, rules: &KeepRules) -> Result<Vec<Expired>, ApplyError> {
        let failed = |e: Errno| io("list the journal", b"done", e);
        let mut all = Vec::new();
        for id in names(&self.done)? {
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            let stat = statat(&self.done, id.as_str(), flags).map_err(failed)?;
            let seconds = u64::try_from(stat.st_mtime).unwrap_or_default();
            all.push((seconds, stat.st_mtime_nsec, id));
        }
        all.sort_by(|a, b| b.cmp(a));
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let oldest = now.map_or(0, |now| now.saturating_sub(rules.max_age).as_secs());
        let (mut total, mut expired) = (0_u64, Vec::new());
        for (index, (changed, _, id)) in all.into_iter().enumerate() {
            let bytes = self.bytes(&id);
            total = total.saturating_add(bytes);
            let limits = [
                (changed < oldest, KeepLimit::Age),
                (index >= rules.count, KeepLimit::Count),
                (total > rules.max_bytes, KeepLimit::Size),
            ];
            if let Some((_, limit)) = limits.into_iter().find(|(exceeded, _)| *exceeded) {
                expired.push(Expired { id, bytes, limit });
            }
        }
        // An interrupted change waits for a missing directory until it is too old.
        for id in names(&self.open)? {
            let stat = statat(&self.open, id.as_str(), AtFlags::SYMLINK_NOFOLLOW);
            let changed = stat.map_or(u64::MAX, |s| u64::try_from(s.st_mtime).unwrap_or_default());
            if changed < oldest && self.is_lost(&id) {
                let bytes = size(self.open.as_fd(), id.as_str().as_bytes(), 0);
                let limit = KeepLimit::Age;
                expired.push(Expired { id, bytes, limit });
            }
        }
        Ok(expired)
    }

    /// Returns the size of the journal of an applied change, including the old contents of the
    /// changed files, in bytes; 0 if no apply has this id.
    #[must_use]
    pub fn bytes(&self, id: &ApplyId) -> u64 {
        size(self.done.as_fd(), id.as_str().as_bytes(), 0)
    }

    /// Returns whether a transaction waits for a missing target.
    fn is_lost(&self, id: &ApplyId) -> bool {
        let directory = open_dir(self.open.as_fd(), id.as_str().as_bytes());
        let found = directory.map(|directory| read(directory.as_fd(), id));
        matches!(found, Ok(Ok(Some(open))) if open.lost.is_some())
    }

    /// Removes a change that [`Self::expired`] returned, or any applied change. The files that it changed stay as they are.
    ///
    /// # Errors
    /// [`ApplyError::Io`] if a file cannot be removed.
    pub fn remove(&self, id: &ApplyId) -> Result<(), ApplyError> {
        self.remove_from(&self.done, id)?;
        match self.is_lost(id) {
            true => self.forget(id),
            false => Ok(()),
        }
    }
}

fn size(parent: BorrowedFd<'_>, name: &[u8], depth: usize) -> u64 {
    let Ok(stat) = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) else {
        return 0;
    };
    let own = u64::try_from(stat.st_blocks).unwrap_or_default() * 512;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory || depth > DEPTH {
        return own;
    }
    let below = open_dir(parent, name).and_then(|open| {
        let dir = Dir::reopen(open.as_fd())?;
        let sizes = dir.names()?.into_iter();
        Ok(sizes.map(|name| size(open.as_fd(), &name, depth + 1)).sum())
    });
    own + below.unwrap_or(0_u64)
}
