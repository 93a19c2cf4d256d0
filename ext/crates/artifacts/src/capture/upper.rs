//! The overlay's upper directory read as changes over its lower directory.
//!
//! Invariants: a whiteout (character device 0:0) is a deletion; a directory marked
//! opaque, or lying where the baseline has none, hides everything below it in the
//! baseline; a file equal in bytes and mode to its baseline is no change; what is left
//! out keeps its baseline and is listed.

use super::difference::same_file;
use super::error::CaptureError;
use super::{
    CaptureLimits, Change, EntryChange, ExcludeRules, FileMode, MountChanges, Node, OmitReason,
    Omitted,
};
use crate::beneath::{Dir, ReadOutcome, join, size_of};
use crate::patch::quote_name;
use rustix::fd::BorrowedFd;
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use std::collections::HashSet;

/// Reads what the overlay's `upper` directory changes over `lower`. The guest must be dead.
pub fn capture(
    lower: BorrowedFd<'_>,
    upper: BorrowedFd<'_>,
    rules: &ExcludeRules,
    limits: &CaptureLimits,
) -> Result<MountChanges, CaptureError> {
    read_changes(lower, upper, rules, limits, Merge::Over, u64::MAX)
}

/// The walk behind both ways to capture; `most` bounds the changes.
pub(super) fn read_changes(
    lower: BorrowedFd<'_>,
    upper: BorrowedFd<'_>,
    rules: &ExcludeRules,
    limits: &CaptureLimits,
    merge: Merge,
    most: u64,
) -> Result<MountChanges, CaptureError> {
    let open = |fd, side| Dir::reopen(fd).map_err(|source| io(side, b"", source));
    let lower = open(lower, BASELINE)?;
    let upper = open(upper, RESULT)?;
    let mut walk = Walk {
        rules,
        limits,
        entries: 0,
        bytes: 0,
        out: MountChanges::default(),
    };
    walk.merge(Some(&lower), &upper, merge, b"", 0)?;
    let mut out = walk.out;
    if out.entries.len() as u64 > most {
        return Err(limit("entries", most));
    }
    out.entries.sort_by(|a, b| a.path.cmp(&b.path));
    out.omitted.sort_by(|a, b| a.path.cmp(&b.path));
    out.removed_directories.sort_unstable();
    Ok(out)
}

const BASELINE: &str = "baseline";
const RESULT: &str = "result";

fn io(side: &'static str, path: &[u8], source: Errno) -> CaptureError {
    CaptureError::Io {
        side,
        path: quote_name(path),
        source,
    }
}

/// How an upper directory relates to the baseline's directory of the same path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Merge {
    /// Baseline entries show through.
    Over,
    /// They do not.
    Instead,
    /// Both sides are whole trees: what the result lacks was deleted.
    Whole,
}

/// Whether a directory has entries after the run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occupancy {
    Empty,
    Occupied,
}

/// What a look at one upper entry means.
enum Taken {
    Node(Node),
    Omit(OmitReason),
}

struct Walk<'a> {
    rules: &'a ExcludeRules,
    limits: &'a CaptureLimits,
    entries: u64,
    bytes: u64,
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
        self.check_depth(depth)?;
        if merge != Merge::Whole && upper.has_overlay_attribute("redirect") {
            return Err(feature(path, "redirect"));
        }
        let names = upper.names().map_err(|e| io(RESULT, path, e))?;
        let mut occupancy = Occupancy::Empty;
        let mut whiteouts = HashSet::new();
        for name in &names {
            self.count_entry()?;
            let at = join(path, name);
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
                self.omit(&at, OmitReason::Excluded);
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
                        self.omit(&at, reason);
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
                // Listed only when it matters: the cost follows the changes.
                Merge::Over if occupancy == Occupancy::Empty => {
                    let shown = lower.names().map_err(|e| io(BASELINE, path, e))?;
                    if shown.iter().any(|n| !whiteouts.contains(n.as_slice())) {
                        occupancy = Occupancy::Occupied;
                    }
                }
                Merge::Over => {}
            }
        }
        Ok(occupancy)
    }

    /// Baseline entries that a replaced directory hides.
    fn hidden(
        &mut self,
        lower: &Dir,
        upper_names: &[Vec<u8>],
        path: &[u8],
        depth: usize,
    ) -> Result<(), CaptureError> {
        for name in lower.names().map_err(|e| io(BASELINE, path, e))? {
            if upper_names.binary_search(&name).is_err() {
                let at = join(path, &name);
                if let Some(before) = look(lower, &name, BASELINE, &at)? {
                    self.removed(lower, &name, &before, &at, depth)?;
                }
            }
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)] // One step of the recursion; a struct would only rename them.
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
        let child = upper.dir(name).map_err(|e| io(RESULT, at, e))?;
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
            match (old, occupancy) {
                (Some(before), Occupancy::Empty) => self.push(
                    at,
                    Change::Modified {
                        before,
                        after: Node::Directory,
                    },
                ),
                (Some(before), Occupancy::Occupied) => self.push(at, Change::Deleted(before)),
                (None, Occupancy::Empty) => self.push(at, Change::Added(Node::Directory)),
                (None, Occupancy::Occupied) => {}
            }
            return Ok(());
        };
        let below = lower.dir(name).map_err(|e| io(BASELINE, at, e))?;
        let inner = match merge {
            Merge::Whole => Merge::Whole,
            Merge::Over if !child.overlay_flag("opaque") => Merge::Over,
            Merge::Over | Merge::Instead => Merge::Instead,
        };
        let occupancy = self.merge(Some(&below), &child, inner, at, depth + 1)?;
        let was_empty = || {
            below
                .names()
                .map(|names| names.is_empty())
                .map_err(|e| io(BASELINE, at, e))
        };
        if occupancy == Occupancy::Empty && !was_empty()? {
            self.push(at, Change::Added(Node::Directory));
        }
        Ok(())
    }

    /// A file or link now lies at `at`.
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
            self.push(at, Change::Added(after));
            return Ok(());
        };
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            let below = lower.dir(name).map_err(|e| io(BASELINE, at, e))?;
            let names = below.names().map_err(|e| io(BASELINE, at, e))?;
            if names.is_empty() {
                let before = Node::Directory;
                self.push(at, Change::Modified { before, after });
            } else {
                self.hidden(&below, &[], at, depth + 1)?;
                self.push(at, Change::Added(after));
            }
            return Ok(());
        }
        match self.baseline_node(lower, name, &stat, at)? {
            Some(before) if before == after => {}
            Some(before) => self.push(at, Change::Modified { before, after }),
            None => self.push(at, Change::Added(after)),
        }
        Ok(())
    }

    /// A baseline entry exists no more.
    fn removed(
        &mut self,
        lower: &Dir,
        name: &[u8],
        before: &Stat,
        at: &[u8],
        depth: usize,
    ) -> Result<(), CaptureError> {
        self.check_depth(depth)?;
        self.count_entry()?;
        if self.rules.excludes(name) {
            self.omit(at, OmitReason::Excluded);
            return Ok(());
        }
        if FileType::from_raw_mode(before.st_mode) != FileType::Directory {
            match self.baseline_node(lower, name, before, at)? {
                Some(node) => self.push(at, Change::Deleted(node)),
                None => self.omit(at, OmitReason::SpecialFile),
            }
            return Ok(());
        }
        let below = lower.dir(name).map_err(|e| io(BASELINE, at, e))?;
        let names = below.names().map_err(|e| io(BASELINE, at, e))?;
        if names.is_empty() {
            self.push(at, Change::Deleted(Node::Directory));
        } else {
            self.hidden(&below, &[], at, depth + 1)?;
        }
        self.out.removed_directories.push(at.to_vec());
        Ok(())
    }

    /// The baseline's file or link; none for a special file.
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
                Ok(Some(Node::Symlink { target }))
            }
            _ => Ok(None),
        }
    }

    /// Reads an upper entry that is neither directory nor whiteout.
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
                let same_before = lower.is_some_and(|l| l.link_text(name).as_ref() == Ok(&target));
                Ok(match judge_link(at, &target) {
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
        let left = self.limits.total_bytes - self.bytes;
        let bound = self.limits.file_bytes.min(left);
        let (outcome, stat) = dir.read(name, bound).map_err(|e| io(side, at, e))?;
        let ReadOutcome::Bytes(bytes) = outcome else {
            let one = self.limits.file_bytes;
            return Err(if size_of(&stat) > one {
                limit("bytes in one file", one)
            } else {
                limit("bytes", self.limits.total_bytes)
            });
        };
        if side == RESULT && dir.file_has_overlay_attribute(name, "metacopy") {
            return Err(feature(at, "metacopy"));
        }
        self.bytes += bytes.len() as u64;
        Ok(Node::File {
            mode: FileMode::from_raw(stat.st_mode),
            bytes,
        })
    }

    fn push(&mut self, path: &[u8], change: Change) {
        self.out.entries.push(EntryChange {
            path: path.to_vec(),
            change,
        });
    }

    fn omit(&mut self, path: &[u8], reason: OmitReason) {
        self.out.omitted.push(Omitted {
            path: path.to_vec(),
            reason,
        });
    }

    fn count_entry(&mut self) -> Result<(), CaptureError> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(limit("entries", self.limits.entries));
        }
        Ok(())
    }

    fn check_depth(&self, depth: usize) -> Result<(), CaptureError> {
        if depth > self.limits.depth {
            return Err(limit("directory levels", self.limits.depth as u64));
        }
        Ok(())
    }
}

const fn limit(what: &'static str, limit: u64) -> CaptureError {
    CaptureError::Limit { what, limit }
}

fn feature(path: &[u8], feature: &'static str) -> CaptureError {
    CaptureError::OverlayFeature {
        path: quote_name(path),
        feature,
    }
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

/// Whether a link at `path` stays inside the mount. `..` is accepted only at the front:
/// after a name it could climb out through another link.
pub(super) fn judge_link(path: &[u8], target: &[u8]) -> Result<(), OmitReason> {
    if target.starts_with(b"/") {
        return Err(OmitReason::AbsoluteSymlink);
    }
    let mut levels = path.iter().filter(|b| **b == b'/').count();
    let mut named = false;
    for part in target.split(|b| *b == b'/') {
        match part {
            b"" | b"." => {}
            b".." if named || levels == 0 => return Err(OmitReason::EscapingSymlink),
            b".." => levels -= 1,
            _ => named = true,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
