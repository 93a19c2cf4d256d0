//! Special files in a layer that is captured instead of stored.

use super::{LayerSnapshotError, read_failed, write_failed};
use crate::dirfd::Dir;
use rustix::fd::BorrowedFd;
use rustix::fs::{self, AtFlags, FileType, Mode};

/// Puts a FIFO in the place of each special file that the snapshot layer left out, so that a capture
/// of the layer lists the path as omitted. The whiteout there would count as a deletion. Nobody
/// opens the FIFO.
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
