//! Plans the steps of an apply or undo from the changes and the present state of the target.
//!
//! Order of steps: remove files, remove directories (deepest first), create directories (outermost
//! first), then exchange and create files. So each step finds the directories that it needs.

use crate::error::ApplyError;
use crate::metadata::Metadata;
use crate::path::{ancestors, open_dir, shown, split};
use crate::record::{Action, Kind, Need, Step, Stored};
use crate::steps::{Seen, io, see};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use wp_codebox_artifacts::{Conflict, FileMode, MountChanges, Node, sha256};

/// Mode of a new directory. It gets the set-group-id bit if the directory above it has the bit.
const NEW_DIRECTORY: u32 = 0o42755;

/// A step with the contents that it needs.
#[derive(Debug)]
pub(crate) struct Planned {
    pub step: Step,
    /// Contents of the file, or target of the link, that the step creates.
    pub new: Option<Vec<u8>>,
}

/// Steps for one target, and the paths that are not in the expected state.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub steps: Vec<Planned>,
    pub conflicts: Vec<Conflict>,
}

impl Plan {
    /// Sorts the steps into the order of their execution.
    pub(crate) fn sort(&mut self) {
        self.steps
            .sort_by(|a, b| order(&a.step).cmp(&order(&b.step)));
    }
}

fn order(step: &Step) -> (u8, std::cmp::Reverse<&[u8]>, &[u8]) {
    let path = step.path.as_slice();
    let none = std::cmp::Reverse(&b""[..]);
    match step.action {
        Action::Remove { .. } => (0, none, path),
        // A path sorts behind the directories above it, so the reverse order is deepest first.
        Action::RemoveDirectory { .. } => (1, std::cmp::Reverse(path), b""),
        Action::MakeDirectory { .. } => (2, none, path),
        Action::Replace { .. } | Action::Place { .. } => (3, none, path),
    }
}

/// The target directory that steps are planned for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub root: BorrowedFd<'a>,
    /// Index of this directory in [`crate::record::Record::targets`].
    pub target: usize,
}

impl Ground<'_> {
    fn step(&self, path: &[u8], action: Action) -> Step {
        Step {
            target: self.target,
            path: path.to_vec(),
            action,
        }
    }

    /// Returns what exists at a path of the target, or the reason of a conflict if the path leads
    /// through a symbolic link or another mount.
    pub(crate) fn see(&self, path: &[u8]) -> Result<Result<Seen, &'static str>, ApplyError> {
        let (parent, name) = split(path);
        let seen = open_dir(self.root, parent).and_then(|dir| see(dir.as_fd(), name));
        match seen {
            Ok(seen) => Ok(Ok(seen)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(Ok(Seen::Absent)),
            Err(Errno::LOOP | Errno::XDEV) => Ok(Err("reached through a link")),
            Err(error) => Err(io("read", path, error)),
        }
    }

    /// Returns the metadata for a new entry, derived from the nearest existing directory above it.
    fn inherited(&self, path: &[u8], mode: u32) -> Result<Metadata, ApplyError> {
        let failed = |error| io("read the directory of", path, error);
        for above in ancestors(path) {
            match open_dir(self.root, above) {
                Ok(dir) => return Metadata::inherited(dir, mode).map_err(failed),
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                // The same change replaces this link by a directory, so look further up.
                Err(Errno::LOOP) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Metadata::inherited(self.root, mode).map_err(failed)
    }

    /// Plans the steps that make the changes.
    pub(crate) fn apply(&self, changes: &MountChanges) -> Result<Plan, ApplyError> {
        let mut plan = Plan::default();
        for entry in &changes.entries {
            let (before, after) = (entry.change.before(), entry.change.after());
            match self.entry(&entry.path, before, after)? {
                Ok(steps) => plan.steps.extend(steps),
                Err(reason) => plan.conflicts.push(Conflict {
                    path: shown(&entry.path),
                    reason,
                }),
            }
        }
        let listed: BTreeSet<&[u8]> = changes
            .entries
            .iter()
            .filter(|e| e.change.after() == Some(&Node::Directory))
            .map(|e| e.path.as_slice())
            .collect();
        self.directories(&mut plan, &listed)?;
        plan.sort();
        Ok(plan)
    }

    /// Plans the steps for one changed path, or returns the reason of a conflict.
    fn entry(
        &self,
        path: &[u8],
        before: Option<&Node>,
        after: Option<&Node>,
    ) -> Result<Result<Vec<Planned>, &'static str>, ApplyError> {
        let seen = match self.see(path)? {
            Ok(seen) => seen,
            // The path is new and lies below a link. If the same change replaces this link, the
            // link has an entry of its own. Otherwise the execution of the step reports a conflict.
            Err(_) if before.is_none() => Seen::Absent,
            Err(reason) => return Ok(Err(reason)),
        };
        let from = match (before, &seen) {
            (None | Some(Node::Directory), Seen::Absent | Seen::Directory) => None,
            (Some(node), Seen::Stored(stored)) if is_node(stored, node) => Some(stored.clone()),
            (_, Seen::Absent) => return Ok(Err("missing")),
            (None, _) => return Ok(Err("exists already")),
            (Some(_), Seen::Stored(_)) => return Ok(Err("other contents")),
            (Some(_), _) => return Ok(Err("another type")),
        };
        let mut steps = Vec::new();
        let mut push = |action, new: Option<&[u8]>| {
            let step = self.step(path, action);
            steps.push(Planned {
                step,
                new: new.map(<[u8]>::to_vec),
            });
        };
        let is_directory = matches!(seen, Seen::Directory);
        match (from, after) {
            (Some(from), None) => push(Action::Remove { from }, None),
            (Some(from), Some(Node::Directory)) => {
                push(Action::Remove { from }, None);
                push(self.new_directory(path)?, None);
            }
            (Some(from), Some(node)) => {
                let to = self.new_node(path, node, Some(&from))?;
                push(Action::Replace { from, to }, node.blob());
            }
            (None, Some(Node::Directory)) if is_directory => {}
            (None, Some(Node::Directory)) => push(self.new_directory(path)?, None),
            (None, None) if is_directory => push(self.old_directory(path, Need::Required)?, None),
            (None, None) => {}
            (None, Some(node)) => {
                if is_directory {
                    push(self.old_directory(path, Need::Required)?, None);
                }
                let to = self.new_node(path, node, None)?;
                push(Action::Place { to }, node.blob());
            }
        }
        Ok(Ok(steps))
    }

    fn new_directory(&self, path: &[u8]) -> Result<Action, ApplyError> {
        Ok(Action::MakeDirectory {
            metadata: self.inherited(path, NEW_DIRECTORY)?,
        })
    }

    fn old_directory(&self, path: &[u8], need: Need) -> Result<Action, ApplyError> {
        let metadata = open_dir(self.root, path).and_then(Metadata::read);
        let metadata = metadata.map_err(|e| io("read", path, e))?;
        Ok(Action::RemoveDirectory { metadata, need })
    }

    /// Describes the new file or link for `node`. Its metadata come from the file `from` that it
    /// replaces, or from the directory above it if it replaces none.
    fn new_node(
        &self,
        path: &[u8],
        node: &Node,
        from: Option<&Stored>,
    ) -> Result<Stored, ApplyError> {
        let old = from
            .filter(|from| from.kind == Kind::File)
            .map(|from| &from.metadata);
        let (kind, metadata) = match node {
            Node::File { mode, .. } => {
                let metadata = match old {
                    Some(old) => old.clone().with_mode(*mode),
                    None => self.inherited(path, mode.bits())?,
                };
                (Kind::File, metadata)
            }
            Node::Symlink { .. } | Node::Directory => {
                let owner = from.map(|from| &from.metadata);
                let metadata = match owner {
                    Some(owner) => Metadata {
                        attributes: BTreeMap::new(),
                        ..owner.clone()
                    },
                    None => self.inherited(path, 0o777)?,
                };
                (Kind::Link, metadata)
            }
        };
        let sha256 = sha256(node.blob().unwrap_or_default());
        Ok(Stored {
            kind,
            sha256,
            metadata,
        })
    }

    /// Adds steps that create the directories which new files need and remove the directories which
    /// the change empties. `listed` has the directories that must exist after the change.
    fn directories(&self, plan: &mut Plan, listed: &BTreeSet<&[u8]>) -> Result<(), ApplyError> {
        let mut needed = BTreeSet::new();
        let mut emptied = BTreeSet::new();
        let (mut removed, mut planned) = (BTreeSet::new(), BTreeSet::new());
        for Planned { step, .. } in &plan.steps {
            match step.action {
                Action::Place { .. } | Action::MakeDirectory { .. } | Action::Replace { .. } => {
                    needed.extend(ancestors(&step.path).map(<[u8]>::to_vec));
                    planned.insert(step.path.clone());
                }
                Action::Remove { .. } | Action::RemoveDirectory { .. } => {
                    emptied.extend(ancestors(&step.path).map(<[u8]>::to_vec));
                    removed.insert(step.path.clone());
                }
            }
        }
        for path in listed {
            needed.extend(ancestors(path).map(<[u8]>::to_vec));
            needed.insert(path.to_vec());
        }
        for path in &needed {
            let exists = matches!(self.see(path)?, Ok(Seen::Directory));
            if (!exists || removed.contains(path)) && !planned.contains(path) {
                let step = self.step(path, self.new_directory(path)?);
                plan.steps.push(Planned { step, new: None });
            }
        }
        for path in emptied.difference(&needed) {
            if !removed.contains(path) && matches!(self.see(path)?, Ok(Seen::Directory)) {
                let need = match planned.contains(path) {
                    true => Need::Required,
                    false => Need::IfEmpty,
                };
                let step = self.step(path, self.old_directory(path, need)?);
                plan.steps.push(Planned { step, new: None });
            }
        }
        Ok(())
    }
}

fn is_node(stored: &Stored, node: &Node) -> bool {
    let kind = match node {
        Node::File { .. } => Kind::File,
        Node::Symlink { .. } => Kind::Link,
        Node::Directory => return false,
    };
    stored.kind == kind && node.blob().map(sha256).as_ref() == Some(&stored.sha256)
}

/// Returns the step that reverses `action`, given what exists at its path now. Returns `None` if
/// the path already has its old state, and the reason of a conflict if it was changed after the
/// step.
pub(crate) fn inverse(action: &Action, seen: Seen) -> Result<Option<Action>, &'static str> {
    match (action, seen) {
        (Action::Replace { from, to }, Seen::Stored(now)) if now.is_same(to) => {
            let both_files = from.kind == Kind::File && now.kind == Kind::File;
            let metadata = match both_files {
                // Keep the permissions that an administrator set after the apply.
                true => now
                    .metadata
                    .clone()
                    .with_mode(FileMode::from_raw(from.metadata.mode)),
                false => from.metadata.clone(),
            };
            let to = Stored {
                metadata,
                ..from.clone()
            };
            Ok(Some(Action::Replace { from: now, to }))
        }
        (Action::Place { to }, Seen::Stored(now)) if now.is_same(to) => {
            Ok(Some(Action::Remove { from: now }))
        }
        (Action::Remove { from }, Seen::Absent | Seen::Directory) => {
            Ok(Some(Action::Place { to: from.clone() }))
        }
        (Action::Replace { from, .. } | Action::Remove { from }, Seen::Stored(now))
            if now.is_same(from) =>
        {
            Ok(None)
        }
        (Action::Remove { .. }, _) => Err("exists already"),
        (Action::MakeDirectory { metadata }, Seen::Directory) => {
            let (metadata, need) = (metadata.clone(), Need::IfEmpty);
            Ok(Some(Action::RemoveDirectory { metadata, need }))
        }
        (Action::RemoveDirectory { metadata, .. }, Seen::Absent | Seen::Stored(_)) => {
            Ok(Some(Action::MakeDirectory {
                metadata: metadata.clone(),
            }))
        }
        (Action::MakeDirectory { .. } | Action::RemoveDirectory { .. }, _) => Ok(None),
        (Action::Place { .. }, Seen::Absent) => Ok(None),
        (Action::Replace { .. }, Seen::Absent) => Err("missing"),
        (Action::Replace { .. } | Action::Place { .. }, Seen::Stored(_)) => Err("other contents"),
        (Action::Replace { .. } | Action::Place { .. }, Seen::Directory | Seen::Special) => {
            Err("another type")
        }
    }
}
