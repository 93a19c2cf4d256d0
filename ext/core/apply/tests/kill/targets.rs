//! The three directories that the tests change, and their contents before and after.

use crate::trees::{Bench, added, changes, deleted, executable, file, link, modified, tree};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use wp_codebox_apply::{AppliedChange, ApplyError, TargetChanges};
use wp_codebox_artifacts::MountChanges;

/// Number of target directories.
pub const COUNT: usize = 3;

/// Paths below a directory, each with mode and contents.
pub type Tree = BTreeMap<String, (u32, Vec<u8>)>;
/// Trees of all targets.
pub type Trees = [Tree; COUNT];

/// Number of changed paths of the first target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// One of each kind of change.
    Full,
    /// One replaced, one removed and one new file, where another program's act is of interest.
    Small,
}

/// Name of a file beside the targets that says that the first one gets the small change.
const SMALL: &str = "small";

/// Three targets with a journal.
pub struct Setup {
    pub bench: Bench,
}

impl Setup {
    /// Opens the targets below `root`.
    pub fn at(root: &Path) -> Self {
        Self {
            bench: Bench::at(root),
        }
    }

    /// Makes the targets below `root`, with an applied change for `undo`.
    pub fn begin(kind: &str, root: &Path, size: Size) -> Self {
        let setup = Self::at(root);
        if size == Size::Small {
            fs::write(root.join(SMALL), "").unwrap();
        }
        let [first, second, third] = setup.paths();
        for (target, name, bytes) in [
            (&first, "a.php", "<?php 1;\n"),
            (&first, "run.sh", "#!/bin/sh\n"),
            (&first, "old/only.txt", "old\n"),
            (&first, "flat", "flat\n"),
            (&second, "z.php", "<?php 1;\n"),
            (&second, "zz.txt", "gone\n"),
            (&third, "gone.txt", "gone\n"),
        ] {
            let path = target.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        std::os::unix::fs::symlink("a.php", first.join("link")).unwrap();
        std::os::unix::fs::symlink("a", third.join("link")).unwrap();
        if kind == "undo" {
            setup.bench.apply_to(setup.changes()).unwrap();
        }
        setup
    }

    pub fn paths(&self) -> [PathBuf; COUNT] {
        ["target", "second", "third"].map(|name| self.bench.target.with_file_name(name))
    }

    pub fn changes(&self) -> Vec<TargetChanges> {
        let first = match self.bench.target.with_file_name(SMALL).exists() {
            true => small_change(),
            false => full_change(),
        };
        let changes = [first, second_change(), third_change()];
        let targets = self.paths().into_iter().zip(changes).enumerate();
        let target = |(index, (path, changes))| TargetChanges {
            mount: format!("/workspace/{index}"),
            path,
            changes,
        };
        targets.map(target).collect()
    }

    /// Returns the contents of the targets; those of a missing target are empty.
    pub fn trees(&self) -> Trees {
        self.paths().map(|path| match path.exists() {
            true => tree(&path),
            false => Tree::new(),
        })
    }

    /// Calls `recover` and returns its errors.
    pub fn recover(&self) -> Vec<ApplyError> {
        let recovered = self.bench.journal().recover().unwrap();
        recovered.into_iter().filter_map(|one| one.error).collect()
    }

    /// Directory of this user's journal.
    pub fn journal(&self) -> PathBuf {
        let user = rustix::process::geteuid().as_raw();
        self.bench.site.join(format!("applies/{user}"))
    }

    /// Names of the files of the open transaction; none if there is no transaction.
    pub fn open_documents(&self) -> Vec<String> {
        let open = self.journal().join("open");
        let transactions = names(&open);
        let of_apply = |name: &&String| name.starts_with("apply_") || name.starts_with("undo_");
        let transaction = transactions.iter().find(of_apply);
        transaction.map_or_else(Vec::new, |name| names(&open.join(name)))
    }

    /// Checks that the journal agrees with the targets: a change that it lists as applied can be
    /// undone, and otherwise the targets have the old trees and the change can be applied again. No
    /// transaction is open.
    pub fn check_journal(&self, is_applied: bool, before: &Trees, at: &str) {
        let is_open = |c: &AppliedChange| c.undone.len() < c.files.len();
        let all = self.bench.journal().list().unwrap().complete().unwrap();
        let open: Vec<_> = all.into_iter().filter(is_open).collect();
        assert_eq!(open.len(), usize::from(is_applied), "{at}: {open:?}");
        self.check_nothing_is_open(at);
        match open.first() {
            Some(change) => {
                let report = self.bench.undo(&change.id, None).unwrap();
                assert_eq!(report.conflicts, [], "{at}");
            }
            None => {
                let applied = self.bench.apply_to(self.changes()).unwrap();
                self.bench.undo(&applied.id, None).unwrap();
            }
        }
        assert_eq!(self.trees(), *before, "{at}");
    }

    /// Checks that the journal has no open transaction. One that was killed while it wrote its first
    /// document may stay for a minute.
    pub fn check_nothing_is_open(&self, at: &str) {
        let documents = self.open_documents();
        assert!(
            documents.is_empty() || documents == [".begin.json.new"],
            "{at}: {documents:?}"
        );
    }
}

/// Returns the names of the entries of a directory; none if it does not exist.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    entries
        .map(|entry| name(entry).into_string().unwrap())
        .collect()
}

/// Returns the staging directories in a target.
pub fn staging(target: &Path) -> Vec<PathBuf> {
    let staging = |name: &String| name.starts_with(".wp-codebox-");
    let found = names(target).into_iter().filter(staging);
    found.map(|name| target.join(name)).collect()
}

fn full_change() -> MountChanges {
    changes(vec![
        modified("a.php", file(b"<?php 1;\n"), file(b"<?php 2;\n")),
        modified("run.sh", file(b"#!/bin/sh\n"), executable(b"#!/bin/sh\n")),
        deleted("old/only.txt", file(b"old\n")),
        added("new/deep/b.txt", file(b"new\n")),
        modified("link", link("a.php"), link("run.sh")),
        deleted("flat", file(b"flat\n")),
        added("flat/inner.txt", file(b"inner\n")),
    ])
}

fn small_change() -> MountChanges {
    changes(vec![
        modified("a.php", file(b"<?php 1;\n"), file(b"<?php 2;\n")),
        deleted("flat", file(b"flat\n")),
        added("new.txt", file(b"new\n")),
    ])
}

fn second_change() -> MountChanges {
    changes(vec![
        modified("z.php", file(b"<?php 1;\n"), file(b"<?php 2;\n")),
        deleted("zz.txt", file(b"gone\n")),
        added("zz/new.txt", file(b"new\n")),
    ])
}

fn third_change() -> MountChanges {
    changes(vec![
        modified("link", link("a"), link("b")),
        deleted("gone.txt", file(b"gone\n")),
        added("new.txt", file(b"new\n")),
    ])
}

/// Trees before and after an apply.
pub struct States {
    pub size: Size,
    pub before: Trees,
    pub after: Trees,
}

impl States {
    /// Returns the trees before and after the change.
    pub fn of_change(size: Size) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let setup = Setup::begin("apply", temp.path(), size);
        let before = setup.trees();
        setup.bench.apply_to(setup.changes()).unwrap();
        let after = setup.trees();
        Self {
            size,
            before,
            after,
        }
    }

    /// Returns the trees before and after a transaction of this kind.
    pub fn of(&self, kind: &str) -> (&Trees, &Trees) {
        match kind {
            "undo" => (&self.after, &self.before),
            _ => (&self.before, &self.after),
        }
    }
}
