//! Copies an overlay's upper directory into a snapshot layer. If the guest started from a snapshot
//! layer, merges that layer into the copy.

use super::row::{SnapshotEntry, SnapshotNode};
use super::{LayerSnapshotError, feature, listing, read_failed, write_failed};
use crate::capture::{Budget, CaptureLimits};
use crate::dirfd::{
    Dir, IfExists, OverlayAttribute, SparseWriter, overlay_attribute, read_pieces, size_of,
};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{self, FileType, Mode, Stat, Timespec, Timestamps, UTIME_OMIT, XattrFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use wp_codebox_contracts::Sha256Hex;

/// What a snapshot layer contains and leaves out.
#[derive(Debug)]
pub struct LayerSnapshot {
    /// All entries of the layer, directories before the entries in them.
    pub entries: Vec<SnapshotEntry>,
    /// Total size of the layer's files in bytes.
    pub bytes: u64,
    /// Paths of special files that the snapshot omits.
    pub left_out: Vec<Vec<u8>>,
}

/// Copies the upper directory `upper`, merged over the snapshot layer `below` that the guest
/// started on, into the empty directory `to`. The guest may be alive, but none of its processes
/// may write; a check after the copy detects writes.
pub fn snapshot_layer(
    upper: BorrowedFd<'_>,
    below: Option<BorrowedFd<'_>>,
    to: BorrowedFd<'_>,
    limits: &CaptureLimits,
) -> Result<LayerSnapshot, LayerSnapshotError> {
    let read = read_failed(b"");
    let upper = Dir::reopen_owned(upper).map_err(&read)?;
    let below = below.map(Dir::reopen_owned).transpose().map_err(&read)?;
    let to = Dir::reopen(to).map_err(write_failed(b""))?;
    Copy::of(&upper, below.as_ref(), &to, limits)?.if_unchanged(&upper)
}

/// The directories at one path whose entries are merged into one directory of the layer.
#[derive(Clone, Copy)]
struct Sides<'d> {
    upper: Option<&'d Dir>,
    below: Option<&'d Dir>,
}

/// Mode of a directory in the layer, and whether it hides the directory at the same path in the
/// mount's source.
#[derive(Clone, Copy)]
struct Shape {
    mode: u32,
    opaque: bool,
}

impl Shape {
    fn of(stat: &Stat, opaque: bool) -> Self {
        Self {
            mode: stat.st_mode & 0o777 | 0o700,
            opaque,
        }
    }
}

/// A copy whose entries were noted as they were copied. It becomes a snapshot if none has changed.
pub(super) struct Copy<'a> {
    budget: Budget<'a>,
    seen: Seen,
    kept: LayerSnapshot,
}

impl<'a> Copy<'a> {
    pub(super) fn of(
        upper: &Dir,
        below: Option<&Dir>,
        to: &Dir,
        limits: &'a CaptureLimits,
    ) -> Result<Self, LayerSnapshotError> {
        let mut copy = Self {
            budget: Budget::new(limits),
            seen: Seen::default(),
            kept: LayerSnapshot {
                entries: Vec::new(),
                bytes: 0,
                left_out: Vec::new(),
            },
        };
        if upper.overlay_attribute("opaque") != OverlayAttribute::Absent {
            return Err(feature(b"", "opaque"));
        }
        let stat = upper.own_stat().map_err(read_failed(b""))?;
        let sides = Sides {
            upper: Some(upper),
            below,
        };
        copy.directory(sides, to, b"", Shape::of(&stat, false), 0)?;
        Ok(copy)
    }

    /// Returns the snapshot, unless something was written to the upper directory since the copy
    /// began.
    pub(super) fn if_unchanged(self, upper: &Dir) -> Result<LayerSnapshot, LayerSnapshotError> {
        let mut again = Seen::default();
        again.walk(upper, b"")?;
        if again != self.seen {
            return Err(LayerSnapshotError::Moving);
        }
        Ok(self.kept)
    }

    fn directory(
        &mut self,
        sides: Sides<'_>,
        to: &Dir,
        path: &[u8],
        shape: Shape,
        depth: usize,
    ) -> Result<(), LayerSnapshotError> {
        self.budget.depth(depth)?;
        let Shape { mode, opaque } = shape;
        self.entry(path, SnapshotNode::Directory { mode, opaque });
        let mut names = BTreeSet::new();
        for side in [sides.upper, sides.below].into_iter().flatten() {
            if side.overlay_attribute("redirect") != OverlayAttribute::Absent {
                return Err(feature(path, "redirect"));
            }
            names.extend(self.budget.names(side).map_err(|e| listing(path, e))?);
        }
        for name in &names {
            self.step(sides, to, name, path, depth)?;
        }
        let write = write_failed(path);
        if opaque {
            fs::fsetxattr(to, "user.overlay.opaque", b"y", XattrFlags::empty()).map_err(&write)?;
        }
        fs::fchmod(to, Mode::from_raw_mode(mode)).map_err(&write)?;
        if let Some(upper) = sides.upper {
            let stat = upper.own_stat().map_err(read_failed(path))?;
            self.seen.note(path, &stat);
        }
        Ok(())
    }

    fn step(
        &mut self,
        sides: Sides<'_>,
        to: &Dir,
        name: &[u8],
        parent: &[u8],
        depth: usize,
    ) -> Result<(), LayerSnapshotError> {
        let path = self.budget.path(parent, name)?;
        let read = read_failed(&path);
        let look = |side: Option<&Dir>| match side {
            Some(dir) => dir.stat(name).map_err(&read),
            None => Ok(None),
        };
        let (over, under) = (look(sides.upper)?, look(sides.below)?);
        match (sides.upper, over, sides.below, under) {
            (Some(upper), Some(stat), below, under) => {
                if !is_directory(&stat) {
                    // Notes the attributes before the read, so that the comparison after the copy
                    // detects a write during the read.
                    self.seen.note(&path, &stat);
                    return self.leaf(upper, to, name, &path, &stat);
                }
                let child = upper.dir_owned(name).map_err(&read)?;
                let own = opaque(&child, &path)?;
                let mut shape = Shape::of(&stat, own);
                let hidden = match (below, under) {
                    (Some(below), Some(under)) if !own && is_directory(&under) => {
                        let hidden = below.dir_owned(name).map_err(&read)?;
                        shape.opaque = opaque(&hidden, &path)?;
                        Some(hidden)
                    }
                    // The entry in the guest's snapshot layer hid the source's entry. The guest
                    // deleted that layer entry and created this directory, which must therefore
                    // hide the source's entry as well.
                    (Some(_), Some(_)) => {
                        shape.opaque = true;
                        None
                    }
                    (_, None) | (None, _) => None,
                };
                let sides = Sides {
                    upper: Some(&child),
                    below: hidden.as_ref(),
                };
                self.enter(sides, to, name, &path, shape, depth)?;
                restore(&child, &stat, &path)
            }
            (_, _, Some(below), Some(stat)) => {
                if !is_directory(&stat) {
                    return self.leaf(below, to, name, &path, &stat);
                }
                let child = below.dir_owned(name).map_err(&read)?;
                let shape = Shape::of(&stat, opaque(&child, &path)?);
                let sides = Sides {
                    upper: None,
                    below: Some(&child),
                };
                self.enter(sides, to, name, &path, shape, depth)
            }
            // The entry was listed and has disappeared since, so a program is still writing in the
            // guest.
            _ => Err(LayerSnapshotError::Moving),
        }
    }

    fn enter(
        &mut self,
        sides: Sides<'_>,
        to: &Dir,
        name: &[u8],
        path: &[u8],
        shape: Shape,
        depth: usize,
    ) -> Result<(), LayerSnapshotError> {
        let made = to.open_dir(name, IfExists::Fail);
        let made = made.map_err(write_failed(path))?;
        self.directory(sides, &made, path, shape, depth + 1)
    }

    fn leaf(
        &mut self,
        from: &Dir,
        to: &Dir,
        name: &[u8],
        path: &[u8],
        stat: &Stat,
    ) -> Result<(), LayerSnapshotError> {
        let write = write_failed(path);
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => self.file(from, to, name, path, stat),
            FileType::Symlink => {
                let text = from.link_text(name).map_err(read_failed(path))?;
                self.budget.spend(text.len() as u64)?;
                fs::symlinkat(text.as_slice(), to, name).map_err(write)?;
                self.entry(path, SnapshotNode::link(&text));
                Ok(())
            }
            kind => {
                // A special file also hides the lower entry of the same name, so a whiteout takes
                // its place in the layer.
                if kind != FileType::CharacterDevice || stat.st_rdev != 0 {
                    self.kept.left_out.push(path.to_vec());
                }
                fs::mknodat(to, name, FileType::CharacterDevice, Mode::empty(), 0)
                    .map_err(write)?;
                self.entry(path, SnapshotNode::Gone {});
                Ok(())
            }
        }
    }

    fn file(
        &mut self,
        from: &Dir,
        to: &Dir,
        name: &[u8],
        path: &[u8],
        seen: &Stat,
    ) -> Result<(), LayerSnapshotError> {
        let (read, write) = (read_failed(path), write_failed(path));
        self.budget.file(size_of(seen))?;
        let (source, _) = from.open_file_owned(name).map_err(&read)?;
        for what in ["metacopy", "whiteout"] {
            if overlay_attribute(&source, what) != OverlayAttribute::Absent {
                return Err(feature(path, what));
            }
        }
        let file = to.create(name).map_err(&write)?;
        let (sha256, bytes) = self.content(&source, &file, path)?;
        let mode = seen.st_mode & 0o777 | 0o400;
        let times = Timestamps {
            last_access: Timespec {
                tv_sec: 0,
                tv_nsec: UTIME_OMIT,
            },
            last_modification: Timespec {
                tv_sec: seen.st_mtime,
                tv_nsec: i64::try_from(seen.st_mtime_nsec).unwrap_or_default(),
            },
        };
        fs::futimens(&file, &times).map_err(&write)?;
        fs::fchmod(&file, Mode::from_raw_mode(mode)).map_err(&write)?;
        if seen.st_mode & 0o400 == 0 {
            fs::fchmod(&source, Mode::from_raw_mode(seen.st_mode & 0o7777)).map_err(&read)?;
        }
        self.kept.bytes += bytes;
        self.entry(
            path,
            SnapshotNode::File {
                mode,
                bytes,
                sha256,
            },
        );
        Ok(())
    }

    fn content(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        path: &[u8],
    ) -> Result<(Sha256Hex, u64), LayerSnapshotError> {
        let mut hasher = Sha256::new();
        let mut bytes = 0_u64;
        let mut stopped = None;
        let mut sparse = SparseWriter::new(to);
        let read = read_pieces(from, |piece| {
            bytes += piece.len() as u64;
            // The file can grow while it is read.
            let within = self.budget.file(bytes);
            let within = within.and_then(|()| self.budget.spend(piece.len() as u64));
            if let Err(exceeded) = within {
                stopped = Some(exceeded.into());
                return Err(Errno::CANCELED);
            }
            hasher.update(piece);
            sparse.write(piece).map_err(|error| {
                stopped = Some(write_failed(path)(error));
                Errno::CANCELED
            })
        });
        let read = read.and_then(|()| {
            sparse.finish().map_err(|error| {
                stopped = Some(write_failed(path)(error));
                Errno::CANCELED
            })
        });
        match (stopped, read) {
            (Some(error), _) => Err(error),
            (None, Err(error)) => Err(read_failed(path)(error)),
            (None, Ok(())) => Ok((Sha256Hex::from_bytes(&hasher.finalize().into()), bytes)),
        }
    }

    fn entry(&mut self, path: &[u8], node: SnapshotNode) {
        self.kept.entries.push(SnapshotEntry::new(path, node));
    }
}

/// Restores the original mode of a guest directory that was made readable for the copy.
fn restore(dir: &Dir, seen: &Stat, path: &[u8]) -> Result<(), LayerSnapshotError> {
    if seen.st_mode & 0o700 == 0o700 {
        return Ok(());
    }
    let mode = Mode::from_raw_mode(seen.st_mode & 0o7777);
    fs::fchmod(dir.as_fd(), mode).map_err(read_failed(path))
}

fn stat_again(dir: &Dir, name: &[u8], path: &[u8]) -> Result<Stat, LayerSnapshotError> {
    match dir.stat(name).map_err(read_failed(path))? {
        Some(stat) => Ok(stat),
        None => Err(LayerSnapshotError::Moving),
    }
}

fn opaque(dir: &Dir, path: &[u8]) -> Result<bool, LayerSnapshotError> {
    match dir.overlay_attribute("opaque") {
        OverlayAttribute::Absent => Ok(false),
        OverlayAttribute::Yes => Ok(true),
        OverlayAttribute::Other => Err(feature(path, "opaque")),
    }
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// Number of entries and XOR of the digests of their attributes, which does not depend on the order
/// of the walk. If both are the same before and after a copy, nothing was written during the copy.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    entries: u64,
    sum: [u8; 32],
}

impl Seen {
    fn note(&mut self, path: &[u8], stat: &Stat) {
        // The copy makes unreadable files and directories readable with chmod, which changes their
        // ctime. The ctime of unreadable files and of all directories is therefore ignored.
        let changed = match is_directory(stat) || stat.st_mode & 0o400 == 0 {
            true => (0, 0),
            false => (stat.st_ctime, stat.st_ctime_nsec),
        };
        let mut hasher = Sha256::new();
        hasher.update((path.len() as u64).to_le_bytes());
        hasher.update(path);
        hasher.update(stat.st_ino.to_le_bytes());
        hasher.update(stat.st_size.to_le_bytes());
        hasher.update(stat.st_mtime.to_le_bytes());
        hasher.update(stat.st_mtime_nsec.to_le_bytes());
        hasher.update(changed.0.to_le_bytes());
        hasher.update(changed.1.to_le_bytes());
        let digest: [u8; 32] = hasher.finalize().into();
        self.entries += 1;
        for (sum, byte) in self.sum.iter_mut().zip(digest) {
            *sum ^= byte;
        }
    }

    fn walk(&mut self, dir: &Dir, path: &[u8]) -> Result<(), LayerSnapshotError> {
        let read = read_failed(path);
        self.note(path, &dir.own_stat().map_err(&read)?);
        for name in dir.names().map_err(&read)? {
            let at = crate::dirfd::join(path, &name);
            let stat = stat_again(dir, &name, &at)?;
            if is_directory(&stat) {
                let child = dir.dir_owned(&name).map_err(read_failed(&at))?;
                self.walk(&child, &at)?;
                restore(&child, &stat, &at)?;
            } else {
                self.note(&at, &stat);
            }
        }
        Ok(())
    }
}
