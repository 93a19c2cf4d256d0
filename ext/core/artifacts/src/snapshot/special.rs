//! Makes the special files that a snapshot layer omits visible to a capture of that layer.

use super::{LayerSnapshotError, read_failed, write_failed};
use crate::dirfd::Dir;
use rustix::fd::BorrowedFd;
use rustix::fs::{self, AtFlags, FileType, Mode};

/// Replaces the whiteout at each path in `left_out`, where the guest had a special file, with a
/// FIFO. A capture of the layer then lists the path as omitted; a whiteout would count as a
/// deletion. No process opens the FIFO.
pub fn mark_special_files(
    layer: BorrowedFd<'_>,
    left_out: &[Vec<u8>],
) -> Result<(), LayerSnapshotError> {
    let root = Dir::reopen(layer).map_err(read_failed(b""))?;
    for path in left_out {
        let write = write_failed(path);
        let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (&b"."[..], path.as_slice()),
        };
        let parent = root.dir(parent).map_err(&write)?;
        fs::unlinkat(&parent, name, AtFlags::empty()).map_err(&write)?;
        let mode = Mode::from_raw_mode(0o600);
        fs::mknodat(&parent, name, FileType::Fifo, mode, 0).map_err(&write)?;
    }
    Ok(())
}
