//! Reads an overlay's upper directory as changes over its lower directory.
//!
//! Invariants: a whiteout (character device 0:0) is a deletion. A directory with the opaque
//! attribute, or one that the baseline lacks, hides everything below its path in the baseline. A
//! file with the same bytes and mode as in the baseline is not a change. An omitted entry keeps the
//! state of the baseline and is listed.

use super::budget::Budget;
use super::error::{BASELINE, CaptureError, RESULT, feature, io, listing};
use super::link::check_link;
use super::{
    CaptureLimits, Change, EntryChange, ExcludeRules, FileMode, MountChanges, Node, OmitReason,
    Omitted,
};
use crate::dirfd::{
    Dir, OverlayAttribute, ReadOutcome, overlay_attribute, read_within, same_bytes, size_of,
};
use rustix::fd::BorrowedFd;
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use std::collections::HashSet;

/// Returns the changes of the overlay's `upper` directory over `lower`. The guest must be dead.
pub fn capture(
    lower: BorrowedFd<'_>,
    upper: BorrowedFd<'_>,
    rules: &ExcludeRules,
    limits: &CaptureLimits,
) -> Result<MountChanges, CaptureError> {
    read_changes(lower, upper, rules, limits, Merge::Over, u64::MAX)
}

/// Reads the changes for [`capture`] and `capture_difference`. Fails if more than `most` entries
/// changed.
pub(super) fn read_changes(
    lower: BorrowedFd<'_>,
    upper: BorrowedFd<'_>,
    rules: &ExcludeRules,
    limits: &CaptureLimits,
    merge: Merge,
    most: u64,
) -> Result<MountChanges, CaptureError> {
    let lower = Dir::reopen(lower).map_err(|e| io(BASELINE, b"", e))?;
    let upper = Dir::reopen_owned(upper).map_err(|e| io(RESULT, b"", e))?;
    let mut walk = Walk {
        rules,
        budget: Budget::new(limits),
        out: MountChanges::default(),
    };
    walk.merge(Some(&lower), &upper, merge, b"", 0)?;
    let mut out = walk.out;
    if out.entries.len() as u64 > most {
        return Err(CaptureError::Limit {
            what: "entries",
            limit: most,
        });
    }
    out.entries.sort_by(|a, b| a.path.cmp(&b.path));
    out.omitted.sort_by(|a, b| a.path.cmp(&b.path));
    out.removed_directories.sort_unstable();
    Ok(out)
}

/// Relation of an upper directory to the baseline's directory at the same path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Merge {
    /// An overlay merges both: entries of the baseline without an upper entry still exist.
    Over,
    /// The upper directory replaces the baseline's: entries of the baseline without an upper entry
    /// are deleted.
    Instead,
    /// The upper directory is a complete copy of the baseline's: entries missing in it were
    /// deleted, and a character device 0:0 is not a whiteout.
    Whole,
}

/// Whether a directory has entries after the run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occupancy {
    Empty,
    Occupied,
}

/// Result of reading one entry of the upper directory: a file or link, or the reason why the
/// capture leaves it out.
enum Taken {
    Node(Node),
    Omit(OmitReason),
}

struct Walk<'a> {
    rules: &'a ExcludeRules,
    budget: Budget<'a>,
    out: MountChanges,
}

impl Walk<'_> {
    fn merge(
        &mut self,
        lower: Option<&Dir>,
        upper: &Dir,
        merge: Merge,
        path: &[u8],
        depth: usize,
    ) -> Result<Occupancy, CaptureError> {
        self.budget.depth(depth)?;
        let redirect = upper.overlay_attribute("redirect");
        if merge != Merge::Whole && redirect != OverlayAttribute::Absent {
            return Err(feature(path, "redirect"));
        }
        let names = self.names(upper, RESULT, path)?;
        let mut occupancy = Occupancy::Empty;
        let mut whiteouts = HashSet::new();
        for name in &names {
            let at = self.budget.path(path, name)?;
            let stat =
                look(upper, name, RESULT, &at)?.ok_or_else(|| io(RESULT, &at, Errno::NOENT))?;
            let before = match lower {
                Some(lower) => look(lower, name, BASELINE, &at)?,
                None => None,
            };
            if merge != Merge::Whole && is_whiteout(&stat) {
                whiteouts.insert(name.as_slice());
                if let (Some(lower), Some(before)) = (lower, before) {
                    self.removed(lower, name, &before, &at, depth)?;
                }
            } else if self.rules.excludes(name) {
                self.omit(&at, OmitReason::Excluded)?;
                occupancy = Occupancy::Occupied;
            } else if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                occupancy = Occupancy::Occupied;
                self.directory(lower, upper, merge, name, before, &at, depth)?;
            } else if merge == Merge::Whole
                && let (Some(lower), Some(before)) = (lower, &before)
                && same_file(lower, before, upper, &stat, name).map_err(|e| io(RESULT, &at, e))?
            {
                occupancy = Occupancy::Occupied;
            } else {
                match self.take(upper, lower, name, &stat, &at)? {
                    Taken::Omit(reason) => {
                        self.omit(&at, reason)?;
                        if before.is_some() {
                            occupancy = Occupancy::Occupied;
                        }
                    }
                    Taken::Node(after) => {
                        occupancy = Occupancy::Occupied;
                        self.replaced(lower, name, before, after, &at, depth)?;
                    }
                }
            }
        }
        if let Some(lower) = lower {
            match merge {
                Merge::Instead | Merge::Whole => self.hidden(lower, &names, path, depth)?,
                // Lists the baseline's directory only if the upper one shows no entry, so that the
                // cost of a capture grows with the number of changes and not with the baseline.
                Merge::Over if occupancy == Occupancy::Empty => {
                    let shows = lower.has_entry(|name| !whiteouts.contains(name));
                    if shows.map_err(|e| io(BASELINE, path, e))? {
                        occupancy = Occupancy::Occupied;
                    }
                }
                Merge::Over => {}
            }
        }
        Ok(occupancy)
    }

    /// Records as deleted all entries of the baseline directory `lower` whose names are not in
    /// `upper_names`.
    fn hidden(
        &mut self,
        lower: &Dir,
        upper_names: &[Vec<u8>],
        path: &[u8],
        depth: usize,
    ) -> Result<(), CaptureError> {
        for name in self.names(lower, BASELINE, path)? {
            if upper_names.binary_search(&name).is_err() {
                let at = self.budget.path(path, &name)?;
                if let Some(before) = look(lower, &name, BASELINE, &at)? {
                    self.removed(lower, &name, &before, &at, depth)?;
                }
            }
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)] // One recursion step; a struct would only move the arguments.
    fn directory(
        &mut self,
        lower: Option<&Dir>,
        upper: &Dir,
        merge: Merge,
        name: &[u8],
        before: Option<Stat>,
        at: &[u8],
        depth: usize,
    ) -> Result<(), CaptureError> {
        let child = upper.dir_owned(name).map_err(|e| io(RESULT, at, e))?;
        let was_directory = before
            .as_ref()
            .is_some_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::Directory);
        let (Some(lower), true) = (lower, was_directory) else {
            let old = match (lower, before) {
                (Some(lower), Some(stat)) => self.baseline_node(lower, name, &stat, at)?,
                _ => None,
            };
            let inner = match merge {
                Merge::Whole => Merge::Whole,
                Merge::Over | Merge::Instead => Merge::Instead,
            };
            let occupancy = self.merge(None, &child, inner, at, depth + 1)?;
            return match (old, occupancy) {
                (Some(before), Occupancy::Empty) => {
                    let after = Node::Directory;
                    self.push(at, Change::Modified { before, after })
                }
                (Some(before), Occupancy::Occupied) => self.push(at, Change::Deleted(before)),
                (None, Occupancy::Empty) => self.push(at, Change::Added(Node::Directory)),
                (None, Occupancy::Occupied) => Ok(()),
            };
        };
        let below = lower.dir(name).map_err(|e| io(BASELINE, at, e))?;
        let inner = match (merge, child.overlay_attribute("opaque")) {
            (Merge::Whole, _) => Merge::Whole,
            (Merge::Over, OverlayAttribute::Absent) => Merge::Over,
            (Merge::Instead, _) | (_, OverlayAttribute::Yes) => Merge::Instead,
            (Merge::Over, OverlayAttribute::Other) => return Err(feature(at, "opaque")),
        };
        let occupancy = self.merge(Some(&below), &child, inner, at, depth + 1)?;
        if occupancy == Occupancy::Empty && !is_empty(&below, at)? {
            self.push(at, Change::Added(Node::Directory))?;
        }
        Ok(())
    }

    /// Records that the file or link `after` took the place of the baseline's entry at `at`.
    fn replaced(
        &mut self,
        lower: Option<&Dir>,
        name: &[u8],
        before: Option<Stat>,
        after: Node,
        at: &[u8],
        depth: usize,
    ) -> Result<(), CaptureError> {
        let (Some(lower), Some(stat)) = (lower, before) else {
            return self.push(at, Change::Added(after));
        };
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            let below = lower.dir(name).map_err(|e| io(BASELINE, at, e))?;
            if is_empty(&below, at)? {
                let before = Node::Directory;
                return self.push(at, Change::Modified { before, after });
            }
            self.hidden(&below, &[], at, depth + 1)?;
            return self.push(at, Change::Added(after));
        }
        match self.baseline_node(lower, name, &stat, at)? {
            Some(before) if before == after => Ok(()),
            Some(before) => self.push(at, Change::Modified { before, after }),
            None => self.push(at, Change::Added(after)),
        }
    }

    /// Records that a baseline entry was deleted; for a directory, with everything below it.
    fn removed(
        &mut self,
        lower: &Dir,
        name: &[u8],
        before: &Stat,
        at: &[u8],
        depth: usize,
    ) -> Result<(), CaptureError> {
        self.budget.depth(depth)?;
        if self.rules.excludes(name) {
            return self.omit(at, OmitReason::Excluded);
        }
        if FileType::from_raw_mode(before.st_mode) != FileType::Directory {
            return match self.baseline_node(lower, name, before, at)? {
                Some(node) => self.push(at, Change::Deleted(node)),
                None => self.omit(at, OmitReason::SpecialFile),
            };
        }
        let below = lower.dir(name).map_err(|e| io(BASELINE, at, e))?;
        if is_empty(&below, at)? {
            self.push(at, Change::Deleted(Node::Directory))?;
        } else {
            self.hidden(&below, &[], at, depth + 1)?;
        }
        self.budget.count_path(at)?;
        self.out.removed_directories.push(at.to_vec());
        Ok(())
    }

    /// Returns the file or link of the baseline; `None` for a special file.
    fn baseline_node(
        &mut self,
        lower: &Dir,
        name: &[u8],
        stat: &Stat,
        at: &[u8],
    ) -> Result<Option<Node>, CaptureError> {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => self.file(lower, name, BASELINE, at).map(Some),
            FileType::Symlink => {
                let target = lower.link_text(name).map_err(|e| io(BASELINE, at, e))?;
                self.budget.spend(target.len() as u64)?;
                Ok(Some(Node::Symlink { target }))
            }
            _ => Ok(None),
        }
    }

    /// Reads an upper entry that is neither a directory nor a whiteout.
    fn take(
        &mut self,
        upper: &Dir,
        lower: Option<&Dir>,
        name: &[u8],
        stat: &Stat,
        at: &[u8],
    ) -> Result<Taken, CaptureError> {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => self.file(upper, name, RESULT, at).map(Taken::Node),
            FileType::Symlink => {
                let target = upper.link_text(name).map_err(|e| io(RESULT, at, e))?;
                self.budget.spend(target.len() as u64)?;
                let same_before = lower.is_some_and(|l| l.link_text(name).as_ref() == Ok(&target));
                Ok(match check_link(at, &target) {
                    Err(reason) if !same_before => Taken::Omit(reason),
                    _ => Taken::Node(Node::Symlink { target }),
                })
            }
            _ => Ok(Taken::Omit(OmitReason::SpecialFile)),
        }
    }

    fn file(
        &mut self,
        dir: &Dir,
        name: &[u8],
        side: &'static str,
        at: &[u8],
    ) -> Result<Node, CaptureError> {
        let open = match side {
            // Adding read permission to a file of the layer disturbs no other process: the guest
            // is dead and this process owns the layer.
            RESULT => dir.open_file_owned(name),
            _ => dir.open_file(name),
        };
        let (fd, stat) = open.map_err(|e| io(side, at, e))?;
        if side == RESULT {
            for what in ["metacopy", "whiteout"] {
                if overlay_attribute(&fd, what) != OverlayAttribute::Absent {
                    return Err(feature(at, what));
                }
            }
        }
        self.budget.file(size_of(&stat))?;
        let bound = self.budget.limits.file_bytes.min(self.budget.left());
        match read_within(&fd, &stat, bound).map_err(|e| io(side, at, e))? {
            ReadOutcome::Bytes(bytes) => {
                self.budget.spend(bytes.len() as u64)?;
                let mode = FileMode::from_raw(stat.st_mode);
                Ok(Node::File { mode, bytes })
            }
            // The size of this file was checked before. Either the file grew since, or the limit of
            // total bytes is used up.
            ReadOutcome::TooLarge => Err(self.budget.all_spent().into()),
        }
    }

    fn names(
        &mut self,
        dir: &Dir,
        side: &'static str,
        path: &[u8],
    ) -> Result<Vec<Vec<u8>>, CaptureError> {
        let names = self.budget.names(dir);
        names.map_err(|e| listing(side, path, e))
    }

    fn push(&mut self, path: &[u8], change: Change) -> Result<(), CaptureError> {
        self.budget.count_path(path)?;
        let path = path.to_vec();
        self.out.entries.push(EntryChange { path, change });
        Ok(())
    }

    fn omit(&mut self, path: &[u8], reason: OmitReason) -> Result<(), CaptureError> {
        self.budget.count_path(path)?;
        let path = path.to_vec();
        self.out.omitted.push(Omitted { path, reason });
        Ok(())
    }
}

/// Returns whether a directory of the baseline has no entries.
fn is_empty(dir: &Dir, at: &[u8]) -> Result<bool, CaptureError> {
    let occupied = dir.has_entry(|_| true);
    occupied.map(|o| !o).map_err(|e| io(BASELINE, at, e))
}

fn look(
    dir: &Dir,
    name: &[u8],
    side: &'static str,
    at: &[u8],
) -> Result<Option<Stat>, CaptureError> {
    dir.stat(name).map_err(|e| io(side, at, e))
}

fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0
}

/// Returns whether both sides are regular files of equal mode and bytes. Neither is held in
/// memory.
fn same_file(
    lower: &Dir,
    before: &Stat,
    upper: &Dir,
    after: &Stat,
    name: &[u8],
) -> Result<bool, Errno> {
    let regular = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let alike = regular(before)
        && regular(after)
        && size_of(before) == size_of(after)
        && FileMode::from_raw(before.st_mode) == FileMode::from_raw(after.st_mode);
    if !alike {
        return Ok(false);
    }
    let ((one, _), (other, _)) = (lower.open_file(name)?, upper.open_file(name)?);
    same_bytes(&one, &other)
}

#[cfg(test)]
mod tests;
