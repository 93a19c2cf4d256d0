//! What a walk over a tree may still cost.
//!
//! Invariants: a name is counted before it is kept, and so is a path and each byte that is
//! held; whatever the tree, memory stays within the limits.

use super::CaptureLimits;
use crate::beneath::{Dir, Listing, join};
use rustix::io::Errno;

/// How often a bundle repeats a path: in headers of the patch, in lists, in its documents.
const PATH_COPIES: u64 = 8;

/// A bound that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exceeded {
    /// `entries`, `bytes`, `bytes in one file`, `bytes in one path` or `directory levels`.
    pub what: &'static str,
    /// The bound.
    pub limit: u64,
}

/// Why a directory cannot be listed.
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

    /// The names of a directory, each of which counts as an entry.
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

    /// The path of an entry.
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

    /// A file of `size` bytes lies there.
    pub(crate) const fn file(&self, size: u64) -> Result<(), Exceeded> {
        if size > self.limits.file_bytes {
            return Err(Exceeded {
                what: "bytes in one file",
                limit: self.limits.file_bytes,
            });
        }
        Ok(())
    }

    /// `bytes` more are read or kept.
    pub(crate) const fn spend(&mut self, bytes: u64) -> Result<(), Exceeded> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limits.total_bytes {
            return Err(self.all_spent());
        }
        Ok(())
    }

    /// A path goes into the result.
    pub(crate) const fn keep_path(&mut self, path: &[u8]) -> Result<(), Exceeded> {
        self.spend(PATH_COPIES * path.len() as u64)
    }

    /// What it is when there is no room for the next byte.
    pub(crate) const fn all_spent(&self) -> Exceeded {
        Exceeded {
            what: "bytes",
            limit: self.limits.total_bytes,
        }
    }

    /// Bytes that may still be read or kept.
    pub(crate) const fn left(&self) -> u64 {
        self.limits.total_bytes.saturating_sub(self.bytes)
    }
}
