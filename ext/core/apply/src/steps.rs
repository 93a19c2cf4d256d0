//! Executes one step of a transaction, forwards or backwards.
//!
//! Invariants:
//! - A step and its reverse may be repeated: the entries in the staging directory and at the path
//!   show whether the step was done.
//! - A file that another program wrote meanwhile is never lost: if the entry that an exchange moved
//!   to the staging directory is not the expected one, the exchange is reversed.

use crate::error::ApplyError;
use crate::metadata::Metadata;
use crate::path::{open_dir, open_file, shown, split, sync};
use crate::record::{Action, Kind, Need, Step, Stored};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{self, AtFlags, FileType, Mode, RenameFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use wp_codebox_artifacts::{sha256, sha256_of_file};

/// What exists at a path.
#[derive(Debug)]
pub(crate) enum Seen {
    Absent,
    Stored(Stored),
    Directory,
    /// A FIFO, socket or device.
    Special,
}

/// Determines what exists under a name in a directory; reads its contents and metadata.
pub(crate) fn see(directory: BorrowedFd<'_>, name: &[u8]) -> Result<Seen, Errno> {
    let stat = match fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(Seen::Absent),
        stat => stat?,
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            let file = open_file(directory, name)?;
            let metadata = Metadata::read(&file)?;
            let sha256 = sha256_of_file(&file)?;
            Ok(Seen::Stored(Stored {
                kind: Kind::File,
                sha256,
                metadata,
            }))
        }
        FileType::Symlink => {
            let target = fs::readlinkat(directory, name, Vec::new())?;
            Ok(Seen::Stored(Stored {
                kind: Kind::Link,
                sha256: sha256(target.as_bytes()),
                metadata: Metadata::of(&stat),
            }))
        }
        FileType::Directory => Ok(Seen::Directory),
        _ => Ok(Seen::Special),
    }
}

/// Result of a step: done, or the reason of the conflict for which the path was left unchanged.
pub(crate) type Outcome = Result<(), &'static str>;

/// An open target with its staging directory.
#[derive(Debug)]
pub(crate) struct Place {
    pub root: OwnedFd,
    pub staging: OwnedFd,
}

/// Name of a step's new file in the staging directory, and of its old contents in the journal.
pub(crate) fn staged_name(index: usize) -> String {
    format!("{index:06}")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// The path of a step with its open parent directory.
struct At<'a> {
    direction: Direction,
    parent: OwnedFd,
    name: &'a [u8],
    staging: BorrowedFd<'a>,
    staged: String,
    path: &'a [u8],
}

impl Place {
    /// Executes a step unless it was executed before.
    pub(crate) fn forward(&self, index: usize, step: &Step) -> Result<Outcome, ApplyError> {
        let at = match self.at(index, step, Direction::Forward) {
            Ok(at) => at,
            Err(Errno::LOOP | Errno::XDEV) => return Ok(Err("reached through a link")),
            Err(Errno::NOENT | Errno::NOTDIR) => {
                return Ok(match step.action {
                    Action::Remove { .. } | Action::RemoveDirectory { .. } => Ok(()),
                    _ => Err("missing"),
                });
            }
            Err(error) => return Err(io("open the directory of", &step.path, error)),
        };
        match &step.action {
            Action::Replace { from, to } => at.exchange(from, to),
            Action::Place { to } => at.place(to),
            Action::Remove { from } => at.remove(from),
            Action::MakeDirectory { metadata } => at.make_directory(metadata),
            Action::RemoveDirectory { need, .. } => at.remove_directory(*need),
        }
    }

    /// Reverses a step if it was executed.
    pub(crate) fn backward(&self, index: usize, step: &Step) -> Result<Outcome, ApplyError> {
        let at = match self.at(index, step, Direction::Backward) {
            Ok(at) => at,
            Err(Errno::LOOP | Errno::XDEV | Errno::NOENT | Errno::NOTDIR) => return Ok(Ok(())),
            Err(error) => return Err(io("open the directory of", &step.path, error)),
        };
        match &step.action {
            Action::Replace { from, to } => at.exchange(to, from),
            Action::Place { to } => at.remove(to),
            Action::Remove { from } => at.place(from),
            Action::MakeDirectory { .. } => at.remove_directory(Need::IfEmpty),
            Action::RemoveDirectory { metadata, .. } => at.make_directory(metadata),
        }
    }

    fn at<'a>(
        &'a self,
        index: usize,
        step: &'a Step,
        direction: Direction,
    ) -> Result<At<'a>, Errno> {
        let (parent, name) = split(&step.path);
        Ok(At {
            direction,
            parent: open_dir(self.root.as_fd(), parent)?,
            name,
            staging: self.staging.as_fd(),
            staged: staged_name(index),
            path: &step.path,
        })
    }
}

impl At<'_> {
    fn see(&self) -> Result<Seen, ApplyError> {
        see(self.parent.as_fd(), self.name).map_err(|e| io("read", self.path, e))
    }

    fn see_staged(&self) -> Result<Seen, ApplyError> {
        see(self.staging, self.staged.as_bytes()).map_err(|e| io("read the copy of", self.path, e))
    }

    /// Exchanges the entry `from` at the path for the entry `to` in the staging directory.
    fn exchange(&self, from: &Stored, to: &Stored) -> Result<Outcome, ApplyError> {
        let is = |seen: &Seen, stored| matches!(seen, Seen::Stored(s) if s.is_same(stored));
        match self.see_staged()? {
            staged if is(&staged, to) => {}
            // The exchange was made before.
            staged if is(&staged, from) => return Ok(Ok(())),
            Seen::Absent => return self.without_staged(to),
            // An earlier call was interrupted after it had moved another program's entry here.
            _ if is(&self.see()?, to) => {
                self.swap()?;
                return Ok(Err("other contents"));
            }
            _ => return self.without_staged(to),
        }
        match self.see()? {
            Seen::Absent => return Ok(Err("missing")),
            seen if is(&seen, from) => {}
            Seen::Stored(_) => return Ok(Err("other contents")),
            Seen::Directory | Seen::Special => return Ok(Err("another type")),
        }
        self.swap()?;
        // Another program may have replaced the entry after the check above.
        if is(&self.see_staged()?, from) {
            return Ok(Ok(()));
        }
        self.swap()?;
        Ok(Err("other contents"))
    }

    /// Returns the outcome of a step that should bring `to` to the path, if the staging directory has
    /// no such entry: the step was made before, or another program removed the entry.
    fn without_staged(&self, to: &Stored) -> Result<Outcome, ApplyError> {
        match (self.see()?, self.direction) {
            (Seen::Stored(seen), _) if seen.is_same(to) => Ok(Ok(())),
            (_, Direction::Forward) => Err(io("find the staged copy of", self.path, Errno::NOENT)),
            // Another program changed the path after the step.
            (_, Direction::Backward) => Ok(Err("other contents")),
        }
    }

    fn swap(&self) -> Result<(), ApplyError> {
        fs::renameat_with(
            self.staging,
            self.staged.as_str(),
            &self.parent,
            self.name,
            RenameFlags::EXCHANGE,
        )
        .map_err(|e| io("exchange", self.path, e))
    }

    /// Moves the staged entry to the path, where nothing may exist.
    fn place(&self, to: &Stored) -> Result<Outcome, ApplyError> {
        if !matches!(self.see_staged()?, Seen::Stored(staged) if staged.is_same(to)) {
            return self.without_staged(to);
        }
        let moved = fs::renameat_with(
            self.staging,
            self.staged.as_str(),
            &self.parent,
            self.name,
            RenameFlags::NOREPLACE,
        );
        match moved {
            Ok(()) => Ok(Ok(())),
            Err(Errno::EXIST) => Ok(Err("exists already")),
            Err(error) => Err(io("create", self.path, error)),
        }
    }

    /// Moves the entry at the path to the staging directory.
    fn remove(&self, from: &Stored) -> Result<Outcome, ApplyError> {
        let rename = |from: (BorrowedFd<'_>, &[u8]), to: (BorrowedFd<'_>, &[u8])| {
            fs::renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE)
                .map_err(|e| io("remove", self.path, e))
        };
        let here = (self.parent.as_fd(), self.name);
        let there = (self.staging, self.staged.as_bytes());
        match (self.see_staged()?, self.see()?) {
            (Seen::Absent, Seen::Stored(seen)) if seen.is_same(from) => rename(here, there)?,
            // Nothing is at the path, as the step wants it. An earlier call may have moved the entry, and
            // another program may have removed it from the staging directory.
            (Seen::Absent, Seen::Absent) => return Ok(Ok(())),
            (Seen::Absent, Seen::Stored(_)) => return Ok(Err("other contents")),
            (Seen::Absent, Seen::Directory | Seen::Special) => return Ok(Err("another type")),
            // An earlier call moved the entry, and may have been interrupted before it looked at it.
            _ => {}
        }
        match self.see_staged()? {
            Seen::Stored(seen) if seen.is_same(from) => Ok(Ok(())),
            _ => {
                rename(there, here)?;
                Ok(Err("other contents"))
            }
        }
    }

    /// Creates the directory in the staging directory, sets its metadata and moves it to the path,
    /// so that it is never at the path with wrong permissions.
    fn make_directory(&self, metadata: &Metadata) -> Result<Outcome, ApplyError> {
        match self.see()? {
            Seen::Absent => {}
            Seen::Directory => return Ok(Ok(())),
            Seen::Stored(_) | Seen::Special => return Ok(Err("exists already")),
        }
        let failed = |error| io("create", self.path, error);
        match fs::mkdirat(self.staging, self.staged.as_str(), Mode::RWXU) {
            // An interrupted call may have left the directory.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(failed(error)),
        }
        open_dir(self.staging, self.staged.as_bytes())
            .and_then(|made| metadata.write(&made))
            .map_err(|e| io("set owner and permissions of", self.path, e))?;
        let moved = fs::renameat_with(
            self.staging,
            self.staged.as_str(),
            &self.parent,
            self.name,
            RenameFlags::NOREPLACE,
        );
        match moved {
            Ok(()) => Ok(Ok(())),
            Err(Errno::EXIST) => Ok(Err("exists already")),
            Err(error) => Err(failed(error)),
        }
    }

    fn remove_directory(&self, need: Need) -> Result<Outcome, ApplyError> {
        match fs::unlinkat(&self.parent, self.name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => Ok(Ok(())),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(match need {
                Need::Required => Err("not empty"),
                Need::IfEmpty => Ok(()),
            }),
            Err(error) => Err(io("remove", self.path, error)),
        }
    }
}

/// Synchronises to the disk each directory that contains the path of a step.
pub(crate) fn sync_parents<'s>(
    places: &BTreeMap<usize, Place>,
    steps: impl Iterator<Item = &'s Step>,
) -> Result<(), ApplyError> {
    let mut parents: Vec<_> = steps.map(|s| (s.target, split(&s.path).0)).collect();
    parents.sort_unstable();
    parents.dedup();
    for (target, parent) in parents {
        let Some(place) = places.get(&target) else {
            continue;
        };
        match open_dir(place.root.as_fd(), parent).and_then(sync) {
            // A step removed this directory or replaced it; the directory above it is in the list, too.
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(error) => return Err(io("synchronise", parent, error)),
        }
    }
    Ok(())
}

pub(crate) fn io(action: &'static str, path: &[u8], source: Errno) -> ApplyError {
    ApplyError::Io {
        action,
        path: shown(path),
        source,
    }
}
