//! Records which steps of an apply were undone.

use crate::error::ApplyError;
use crate::path::sync;
use crate::record::ApplyId;
use crate::steps::io;
use crate::transaction::{read_own, write_file};
use rustix::fd::BorrowedFd;
use rustix::fs;
use std::collections::BTreeSet;

/// File with the indexes of the undone steps of an apply.
const UNDONE: &str = "undone.json";
/// Maximum size in bytes of `undone.json`; a larger file is refused.
const LARGEST: u64 = 64 * 1024 * 1024;

/// Reads the indexes of the undone steps of an apply.
pub(crate) fn read_undone(
    directory: BorrowedFd<'_>,
    id: &ApplyId,
) -> Result<BTreeSet<usize>, ApplyError> {
    let refused = |why| ApplyError::Journal {
        id: id.to_string(),
        why,
    };
    match read_own(directory, UNDONE, LARGEST).map_err(refused)? {
        None => Ok(BTreeSet::new()),
        Some(bytes) => {
            serde_json::from_slice(&bytes).map_err(|_| refused("undone.json is damaged"))
        }
    }
}

/// Records the indexes of the undone steps of an apply.
pub(crate) fn write_undone(
    directory: BorrowedFd<'_>,
    steps: &BTreeSet<usize>,
) -> Result<(), ApplyError> {
    let bytes = serde_json::to_vec(steps).unwrap_or_default();
    let new = format!(".{UNDONE}.new");
    write_file(directory, &new, &bytes)
        .and_then(|_| fs::renameat(directory, &*new, directory, UNDONE))
        .and_then(|()| sync(directory))
        .map_err(|e| io("write the journal", UNDONE.as_bytes(), e))
}
