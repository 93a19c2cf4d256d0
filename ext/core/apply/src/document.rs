//! Documents and phases of a transaction in its directory of the journal.
//!
//! The directory has these files; which of them exist tells the phase:
//!
//! | file | written | meaning |
//! |---|---|---|
//! | `begin.json` | first | targets; staging may be incomplete, no path was exchanged |
//! | `old/NNNNNN` | while staging | old contents of the path of step N |
//! | `journal.json` | after everything is staged | all steps; paths may be exchanged |
//! | `exchanged` | renamed from `begin.json` | all paths are exchanged; staging directories may be left |
//! | `reverse` | renamed from `begin.json` | the exchanged paths are being put back |
//! | `lost.json` | at the end | targets that were missing; if they come back, the rest is done there |
//!
//! A finished apply keeps these files, also `lost.json` if a target that was missing at its end can have a
//! staging directory.

use crate::error::ApplyError;
use crate::path::sync;
use crate::record::{ApplyId, Record, SCHEMA};
use crate::steps::io;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

pub(crate) const BEGIN: &str = "begin.json";
pub(crate) const JOURNAL: &str = "journal.json";
pub(crate) const EXCHANGED: &str = "exchanged";
pub(crate) const REVERSE: &str = "reverse";
const LOST: &str = "lost.json";
/// Maximum size of a journal document in bytes; a larger one is refused.
const LARGEST: u64 = 256 * 1024 * 1024;

/// Phase of a transaction, derived from the files in its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    Staging,
    Moving,
    Exchanged,
    Reversing,
}

/// A transaction that has not ended, as its directory in the journal describes it.
#[derive(Debug)]
pub(crate) struct Open {
    pub phase: Phase,
    pub record: Record,
    /// Missing targets for which the transaction waits; it has ended in all others. `None` if it waits
    /// for none.
    pub lost: Option<BTreeSet<usize>>,
}

/// Reads an open transaction from its directory in the journal; `None` if no document was written
/// yet.
pub(crate) fn read(directory: BorrowedFd<'_>, id: &ApplyId) -> Result<Option<Open>, ApplyError> {
    let has = |name: &str| match fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(io("read the journal", name.as_bytes(), error)),
    };
    let (phase, record) = match read_record(directory, JOURNAL, id)? {
        Some(record) if has(REVERSE)? => (Phase::Reversing, record),
        Some(record) if has(EXCHANGED)? => (Phase::Exchanged, record),
        Some(record) => (Phase::Moving, record),
        None => match read_record(directory, BEGIN, id)? {
            Some(record) => (Phase::Staging, record),
            None => return Ok(None),
        },
    };
    let lost = match phase {
        // An exchanged apply ends in the directory of finished applies. It was interrupted before.
        Phase::Exchanged if record.undoes.is_none() => None,
        _ => read_lost(directory, id)?,
    };
    Ok(Some(Open {
        phase,
        record,
        lost,
    }))
}

/// Reads for which missing targets a transaction or finished apply waits.
pub(crate) fn read_lost(
    directory: BorrowedFd<'_>,
    id: &ApplyId,
) -> Result<Option<BTreeSet<usize>>, ApplyError> {
    read_document(directory, LOST, id)
}

/// Reads the record of a finished transaction.
pub(crate) fn read_finished(directory: BorrowedFd<'_>, id: &ApplyId) -> Result<Record, ApplyError> {
    read_record(directory, JOURNAL, id)?
        .ok_or_else(|| unusable(id, "its journal.json is missing; restore it from a backup"))
}

fn read_record(
    directory: BorrowedFd<'_>,
    name: &str,
    id: &ApplyId,
) -> Result<Option<Record>, ApplyError> {
    /// The one member that every version of the document has.
    #[derive(Deserialize)]
    struct Version {
        schema: String,
    }
    let Some(bytes) = read_own(directory, name, LARGEST).map_err(|why| unusable(id, why))? else {
        return Ok(None);
    };
    let damaged = || unusable(id, "a JSON file of it is damaged; restore it from a backup");
    let version: Version = serde_json::from_slice(&bytes).map_err(|_| damaged())?;
    if version.schema != SCHEMA {
        let family = SCHEMA.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = version.schema.strip_prefix(family);
        return Err(match number.and_then(|number| number.parse::<u32>().ok()) {
            Some(_) => unusable(
                id,
                "its format is newer; use the newer wp-codebox that wrote it",
            ),
            None => damaged(),
        });
    }
    let record: Record = serde_json::from_slice(&bytes).map_err(|_| damaged())?;
    match record.id == *id {
        true => Ok(Some(record)),
        false => Err(unusable(id, "it has the id of another change")),
    }
}

/// Reads a JSON file of the journal; `None` if it does not exist.
pub(crate) fn read_document<T: DeserializeOwned>(
    directory: BorrowedFd<'_>,
    name: &str,
    id: &ApplyId,
) -> Result<Option<T>, ApplyError> {
    let bytes = read_own(directory, name, LARGEST).map_err(|why| unusable(id, why))?;
    let parsed = bytes.map(|bytes| serde_json::from_slice(&bytes));
    parsed
        .transpose()
        .map_err(|_| unusable(id, "a JSON file of it is damaged; restore it from a backup"))
}

/// Writes the targets that were missing at the end of the transaction.
pub(crate) fn write_lost(
    directory: BorrowedFd<'_>,
    targets: &BTreeSet<usize>,
) -> Result<(), ApplyError> {
    write_document(directory, LOST, targets)
}

/// Records that a finished apply waits for no target any more.
pub(crate) fn remove_lost(directory: BorrowedFd<'_>) -> Result<(), ApplyError> {
    fs::unlinkat(directory, LOST, AtFlags::empty())
        .and_then(|()| sync(directory))
        .map_err(|e| io("remove", LOST.as_bytes(), e))
}

/// Writes a JSON file of the journal so that a crash leaves the old file or the new one.
pub(crate) fn write_document(
    directory: BorrowedFd<'_>,
    name: &str,
    document: &impl Serialize,
) -> Result<(), ApplyError> {
    let bytes = serde_json::to_vec_pretty(document).unwrap_or_default();
    let new = format!(".{name}.new");
    write_file(directory, &new, &bytes)
        .and_then(|_| fs::renameat(directory, &*new, directory, name))
        .and_then(|()| sync(directory))
        .map_err(|e| io("write the journal", name.as_bytes(), e))
}

/// Begins another phase: renames `begin.json`, which needs no disk space.
pub(crate) fn begin_phase(directory: BorrowedFd<'_>, name: &str) -> Result<(), ApplyError> {
    fs::renameat(directory, BEGIN, directory, name)
        .and_then(|()| sync(directory))
        .map_err(|e| io("write the journal", name.as_bytes(), e))
}

pub(crate) fn unusable(id: &ApplyId, why: &'static str) -> ApplyError {
    ApplyError::Journal {
        id: id.to_string(),
        why,
    }
}

/// Reads a file of the journal. It must belong to the user of this process: another user, such as
/// the owner of the state directory, must not decide what root writes.
pub(crate) fn read_own(
    directory: BorrowedFd<'_>,
    name: &str,
    most: u64,
) -> Result<Option<Vec<u8>>, &'static str> {
    use std::io::Read;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match fs::openat(directory, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        file => file.map_err(|_| "a file of it cannot be opened")?,
    };
    let stat = fs::fstat(&file).map_err(|_| "a file of it cannot be read")?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err("it belongs to another user; call this as the user who applied the change");
    }
    let mut bytes = Vec::new();
    let read = std::fs::File::from(file)
        .take(most + 1)
        .read_to_end(&mut bytes);
    match read {
        Ok(_) if bytes.len() as u64 <= most => Ok(Some(bytes)),
        Ok(_) => Err("a file of it is too large"),
        Err(_) => Err("a file of it cannot be read"),
    }
}

/// Writes a new file with mode 0600 and synchronises it.
pub(crate) fn write_file(
    directory: BorrowedFd<'_>,
    name: &str,
    bytes: &[u8],
) -> Result<OwnedFd, Errno> {
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = fs::openat(directory, name, flags, Mode::from_raw_mode(0o600))?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(&file, rest))?;
        rest = rest.get(written..).unwrap_or_default();
    }
    fs::fsync(&file)?;
    Ok(file)
}
