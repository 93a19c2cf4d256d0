//! Records which steps of an apply were undone.

use crate::document::{read_document, write_document};
use crate::error::ApplyError;
use crate::record::ApplyId;
use rustix::fd::BorrowedFd;
use std::collections::BTreeSet;

/// File with the indexes of the undone steps of an apply.
const UNDONE: &str = "undone.json";

/// Reads the indexes of the undone steps of an apply.
pub(crate) fn read_undone(
    directory: BorrowedFd<'_>,
    id: &ApplyId,
) -> Result<BTreeSet<usize>, ApplyError> {
    Ok(read_document(directory, UNDONE, id)?.unwrap_or_default())
}

/// Records the indexes of the undone steps of an apply.
pub(crate) fn write_undone(
    directory: BorrowedFd<'_>,
    steps: &BTreeSet<usize>,
) -> Result<(), ApplyError> {
    write_document(directory, UNDONE, steps)
}
