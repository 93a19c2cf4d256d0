//! The anchor: number of entries and newest hash, in a file apart from the database.
//!
//! A hash chain alone does not reveal that its last entries are missing. The anchor is replaced
//! (written, synchronised, renamed) while the ledger is locked and after the entry is on the disk.
//! So after a crash the database has one entry more than the anchor, and never fewer.

use crate::files::{FilesError, Place, Presence};
use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use wp_codebox_contracts::{CodedError, Sha256Hex};

/// Largest anchor file in bytes.
const MAX_BYTES: usize = 4096;

/// Length of a ledger and hash of its last entry at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// Number of entries.
    pub length: u64,
    /// Hash of the last one; for an empty ledger its id.
    pub hash: Sha256Hex,
}

/// Content of the anchor file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Anchor {
    /// Id of the ledger.
    pub(crate) ledger: Sha256Hex,
    /// Length and newest hash.
    pub(crate) head: Head,
}

/// Why the anchor cannot be used, or contradicts the database.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(LedgerDamaged)]
pub enum AnchorError {
    /// A file operation failed.
    #[error(transparent)]
    #[code(source)]
    Files(#[from] FilesError),
    /// The file is not an anchor.
    #[error("{} is not the anchor file of a ledger; restore database and anchor file from the same backup", .path.display())]
    Malformed {
        /// Path of the anchor.
        path: PathBuf,
    },
    /// The file is missing although the ledger has entries.
    #[error("the ledger has {length} entries, but its anchor file {} is missing; restore the anchor file", .path.display())]
    Missing {
        /// Path of the anchor.
        path: PathBuf,
        /// Number of entries.
        length: u64,
    },
    /// The database is missing although the anchor exists.
    #[error("the database of the ledger is missing, but its anchor file {} states {length} entries; restore the database", .path.display())]
    DatabaseMissing {
        /// Path of the anchor.
        path: PathBuf,
        /// Number of entries that the anchor names.
        length: u64,
    },
    /// The anchor belongs to another ledger.
    #[error("the anchor file {} belongs to another ledger; restore database and anchor file from the same backup", .path.display())]
    OtherLedger {
        /// Path of the anchor.
        path: PathBuf,
    },
    /// The database has fewer entries than the anchor.
    #[error(
        "the ledger lacks its last {missing} entries: the database is an older copy, or entries were removed; restore the newest database"
    )]
    RolledBack {
        /// Number of missing entries.
        missing: u64,
    },
    /// The entry that the anchor names has another hash.
    #[error(
        "entry {seq} of the ledger does not have the hash in the anchor file; restore database and anchor file from the same backup"
    )]
    Replaced {
        /// Number of the entry.
        seq: u64,
    },
    /// The database has more entries than one operation adds.
    #[error(
        "the last {count} entries of the ledger are newer than its anchor file: the file is an older copy, or another program wrote the entries; restore the newest anchor file"
    )]
    Unanchored {
        /// Number of entries after the anchor.
        count: u64,
    },
}

/// Relation of an anchor to a database that does not contradict it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Standing {
    /// The anchor names the last entry.
    Current,
    /// The anchor names the entry before the last one: a process died after it stored the entry
    /// and before it wrote the anchor.
    OneBehind,
}

/// Location of the anchor file.
#[derive(Debug)]
pub(crate) struct AnchorFile {
    place: Place,
}

impl AnchorFile {
    pub(crate) fn open(path: &std::path::Path) -> Result<Self, FilesError> {
        let place = Place::open(path)?;
        Ok(Self { place })
    }

    /// Reads the anchor; `None` if there is no file.
    pub(crate) fn read(&self) -> Result<Option<Anchor>, AnchorError> {
        if self.place.check("")? == Presence::Missing {
            return Ok(None);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = fs::openat(
            &self.place.directory,
            self.place.name.as_str(),
            flags,
            Mode::empty(),
        )
        .map_err(self.failed("opened"))?;
        let mut bytes = vec![0; MAX_BYTES + 1];
        let mut end = 0;
        while end < bytes.len() {
            match rustix::io::read(&file, &mut bytes[end..]) {
                Ok(0) => break,
                Ok(count) => end += count,
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.failed("read")(error)),
            }
        }
        let malformed = || AnchorError::Malformed {
            path: self.place.path.clone(),
        };
        if end > MAX_BYTES {
            return Err(malformed());
        }
        serde_json::from_slice(&bytes[..end])
            .map(Some)
            .map_err(|_| malformed())
    }

    /// Replaces the anchor. After success the new one is on the disk; after a failure or a crash the
    /// old or the new one is there as a whole.
    pub(crate) fn write(&self, anchor: &Anchor) -> Result<(), AnchorError> {
        let malformed = |_| AnchorError::Malformed {
            path: self.place.path.clone(),
        };
        let mut bytes = serde_json::to_vec(anchor).map_err(malformed)?;
        bytes.push(b'\n');
        let new = format!(".{}.new", self.place.name);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        let directory = &self.place.directory;
        let file = fs::openat(directory, new.as_str(), flags | OFlags::CLOEXEC, mode)
            .map_err(self.failed("written"))?;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            match rustix::io::write(&file, rest) {
                Ok(count) => rest = &rest[count..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.failed("written")(error)),
            }
        }
        fs::fsync(&file)
            .and_then(|()| {
                fs::renameat(directory, new.as_str(), directory, self.place.name.as_str())
            })
            .and_then(|()| fs::fsync(directory))
            .map_err(self.failed("written"))
    }

    fn failed(&self, action: &'static str) -> impl Fn(Errno) -> AnchorError {
        let path = self.place.path.clone();
        move |source| {
            AnchorError::Files(FilesError::Io {
                action,
                path: path.clone(),
                source,
            })
        }
    }

    /// Returns the error for a ledger with entries and without an anchor.
    pub(crate) fn missing(&self, length: u64) -> AnchorError {
        AnchorError::Missing {
            path: self.place.path.clone(),
            length,
        }
    }

    /// Returns the error for an anchor without a database.
    pub(crate) fn database_missing(&self, anchor: &Anchor) -> AnchorError {
        AnchorError::DatabaseMissing {
            path: self.place.path.clone(),
            length: anchor.head.length,
        }
    }

    /// Compares the anchor with a database of `length` entries, in which the entry that the anchor
    /// names has the hash `named`; `None` if it has no such entry.
    pub(crate) fn compare(
        &self,
        anchor: &Anchor,
        id: &Sha256Hex,
        length: u64,
        named: Option<&Sha256Hex>,
    ) -> Result<Standing, AnchorError> {
        if anchor.ledger != *id {
            return Err(AnchorError::OtherLedger {
                path: self.place.path.clone(),
            });
        }
        let Some(newer) = length.checked_sub(anchor.head.length) else {
            return Err(AnchorError::RolledBack {
                missing: anchor.head.length - length,
            });
        };
        if named != Some(&anchor.head.hash) {
            return Err(AnchorError::Replaced {
                seq: anchor.head.length,
            });
        }
        match newer {
            0 => Ok(Standing::Current),
            1 => Ok(Standing::OneBehind),
            count => Err(AnchorError::Unanchored { count }),
        }
    }
}
