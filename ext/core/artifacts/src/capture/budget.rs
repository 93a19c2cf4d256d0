//! Counts entries and bytes during a walk over a directory tree and enforces the limits of the
//! walk.
//!
//! Invariants: a name, a path and each byte are counted before they are stored. Memory stays
//! within the limits for any tree.

use super::CaptureLimits;
use crate::dirfd::{Dir, Listing, join};
use rustix::io::Errno;

/// Estimate of how often a bundle contains each path: in patch headers, lists and documents.
const PATH_COPIES: u64 = 8;

/// Limit that a directory tree exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exceeded {
    /// Limited quantity, e.g. `entries`, `bytes in one file` or `directory levels`.
    pub what: &'static str,
    /// Value of the limit, in the unit that `what` names.
    pub limit: u64,
}

/// Reason why a directory cannot be listed.
pub(crate) enum ListError {
    Exceeded(Exceeded),
    Io(Errno),
}

#[derive(Debug)]
pub(crate) struct Budget<'a> {
    pub limits: &'a CaptureLimits,
    listed: u64,
    bytes: u64,
}

impl<'a> Budget<'a> {
    pub(crate) const fn new(limits: &'a CaptureLimits) -> Self {
        Self {
            limits,
            listed: 0,
            bytes: 0,
        }
    }

    /// Returns the names in a directory. Each name counts towards the limit of entries.
    pub(crate) fn names(&mut self, dir: &Dir) -> Result<Vec<Vec<u8>>, ListError> {
        let left = self.limits.entries - self.listed;
        match dir.names_within(left).map_err(ListError::Io)? {
            Listing::Names(names) => {
                self.listed += names.len() as u64;
                Ok(names)
            }
            Listing::TooMany => Err(ListError::Exceeded(Exceeded {
                what: "entries",
                limit: self.limits.entries,
            })),
        }
    }

    /// Joins the path of a directory and a name. Fails if the result exceeds the limit of one path.
    pub(crate) fn path(&self, parent: &[u8], name: &[u8]) -> Result<Vec<u8>, Exceeded> {
        let limit = self.limits.path_bytes;
        if parent.len() + 1 + name.len() > limit {
            return Err(Exceeded {
                what: "bytes in one path",
                limit: limit as u64,
            });
        }
        Ok(join(parent, name))
    }

    pub(crate) const fn depth(&self, depth: usize) -> Result<(), Exceeded> {
        if depth > self.limits.depth {
            return Err(Exceeded {
                what: "directory levels",
                limit: self.limits.depth as u64,
            });
        }
        Ok(())
    }

    /// Fails if a file of this size exceeds the limit of one file.
    pub(crate) const fn file(&self, size: u64) -> Result<(), Exceeded> {
        if size > self.limits.file_bytes {
            return Err(Exceeded {
                what: "bytes in one file",
                limit: self.limits.file_bytes,
            });
        }
        Ok(())
    }

    /// Adds `bytes` to the bytes read or stored so far. Fails if their sum exceeds the total limit.
    pub(crate) const fn spend(&mut self, bytes: u64) -> Result<(), Exceeded> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limits.total_bytes {
            return Err(self.all_spent());
        }
        Ok(())
    }

    /// Counts the bytes that the path of a changed or omitted entry takes up in a bundle.
    pub(crate) const fn count_path(&mut self, path: &[u8]) -> Result<(), Exceeded> {
        self.spend(PATH_COPIES * path.len() as u64)
    }

    /// Returns the error for an exceeded limit of total bytes.
    pub(crate) const fn all_spent(&self) -> Exceeded {
        Exceeded {
            what: "bytes",
            limit: self.limits.total_bytes,
        }
    }

    /// Returns the number of bytes that may still be read or stored.
    pub(crate) const fn left(&self) -> u64 {
        self.limits.total_bytes.saturating_sub(self.bytes)
    }
}
