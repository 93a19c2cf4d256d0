//! Directories and changes for the tests of this crate.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use wp_codebox_apply::{
    AppliedChange, ApplyError, ApplyId, ApplyRequest, BundleReference, Journal, TargetChanges,
    UndoReport, UndoneTrial,
};
use wp_codebox_artifacts::{Change, EntryChange, FileMode, MountChanges, Node, sha256};

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A new transaction id.
pub fn id(kind: &str) -> ApplyId {
    let number = NEXT.fetch_add(1, Ordering::SeqCst);
    ApplyId::new(format!("{kind}_{number:032x}")).unwrap()
}

pub fn file(bytes: &[u8]) -> Node {
    Node::File {
        mode: FileMode::Regular,
        bytes: bytes.to_vec(),
    }
}

pub fn executable(bytes: &[u8]) -> Node {
    Node::File {
        mode: FileMode::Executable,
        bytes: bytes.to_vec(),
    }
}

pub fn link(target: &str) -> Node {
    Node::Symlink {
        target: target.as_bytes().to_vec(),
    }
}

fn entry(path: &str, change: Change) -> EntryChange {
    EntryChange {
        path: path.as_bytes().to_vec(),
        change,
    }
}

pub fn added(path: &str, node: Node) -> EntryChange {
    entry(path, Change::Added(node))
}

pub fn deleted(path: &str, node: Node) -> EntryChange {
    entry(path, Change::Deleted(node))
}

pub fn modified(path: &str, before: Node, after: Node) -> EntryChange {
    entry(path, Change::Modified { before, after })
}

pub fn changes(mut entries: Vec<EntryChange>) -> MountChanges {
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    MountChanges {
        entries,
        ..MountChanges::default()
    }
}

pub fn bundle() -> BundleReference {
    BundleReference {
        confirmed_origin: None,
        artifact_id: "artifact-bundle-sha256-test".to_owned(),
        manifest_sha256: sha256(b"manifest"),
        run_id: None,
    }
}

/// A target directory and the directory of a site with its journal.
pub struct Bench {
    _temp: Option<tempfile::TempDir>,
    pub target: PathBuf,
    pub site: PathBuf,
}

impl Bench {
    pub fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let mut bench = Self::at(temp.path());
        bench._temp = Some(temp);
        bench
    }

    /// Uses the directories `target` and `site` below `root`, and creates those that are missing.
    pub fn at(root: &Path) -> Self {
        let (target, site) = (root.join("target"), root.join("site"));
        for directory in [&target, &site] {
            fs::create_dir_all(directory).unwrap();
            fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self {
            _temp: None,
            target: target.canonicalize().unwrap(),
            site,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.target.join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
    }

    pub fn journal(&self) -> Journal {
        Journal::open(&self.site).unwrap()
    }

    pub fn apply(&self, changes: MountChanges) -> Result<AppliedChange, ApplyError> {
        self.apply_to(self.one(changes))
    }

    fn one(&self, changes: MountChanges) -> Vec<TargetChanges> {
        vec![TargetChanges {
            mount: "/workspace/x".to_owned(),
            path: self.target.clone(),
            changes,
        }]
    }

    /// Applies a change as the transaction with this id.
    pub fn apply_as(
        &self,
        id: ApplyId,
        changes: MountChanges,
    ) -> Result<AppliedChange, ApplyError> {
        let request = request(self.one(changes));
        self.journal().apply(ApplyRequest { id, ..request })
    }

    pub fn apply_to(&self, targets: Vec<TargetChanges>) -> Result<AppliedChange, ApplyError> {
        self.journal().apply(request(targets))
    }

    /// Applies a change on trial and does not end the trial, as if the process died before the
    /// check.
    pub fn apply_on_trial(&self, changes: MountChanges) -> Result<AppliedChange, ApplyError> {
        self.apply_on_trial_to(self.one(changes))
    }

    pub fn apply_on_trial_to(
        &self,
        targets: Vec<TargetChanges>,
    ) -> Result<AppliedChange, ApplyError> {
        let journal = self.journal();
        let request = request(targets);
        let claim = journal.claim().unwrap();
        let _lasts = journal.begin_trial(&claim, &request.id)?;
        journal.apply(request)
    }

    /// Ends a trial, as a process does after it checked the site.
    pub fn end_trial(&self, of: &ApplyId) -> Result<(), ApplyError> {
        let journal = self.journal();
        let claim = journal.claim().unwrap();
        journal.begin_trial(&claim, of)?.end()
    }

    pub fn undo_trial(&self) -> Option<UndoneTrial> {
        let journal = self.journal();
        let claim = journal.claim().unwrap();
        let now = "2026-01-01T00:00:00Z".to_owned();
        journal.undo_trial(&claim, now).unwrap()
    }

    pub fn undo(&self, of: &ApplyId, files: Option<&[String]>) -> Result<UndoReport, ApplyError> {
        let now = "2026-01-01T00:00:00Z".to_owned();
        self.journal().undo(of, files, id("undo"), now)
    }
}

fn request(targets: Vec<TargetChanges>) -> ApplyRequest {
    ApplyRequest {
        id: id("apply"),
        now: "2026-01-01T00:00:00Z".to_owned(),
        bundle: bundle(),
        targets,
    }
}

/// Returns every path below a directory with its mode and its contents.
pub fn tree(root: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let about = fs::symlink_metadata(&path).unwrap();
            let bytes = if about.is_symlink() {
                fs::read_link(&path)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned()
                    .into_bytes()
            } else if about.is_dir() {
                open.push(path.clone());
                Vec::new()
            } else {
                fs::read(&path).unwrap()
            };
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_string_lossy()
                .into_owned();
            all.insert(name, (about.mode(), bytes));
        }
    }
    all
}

/// A small file system in memory, mounted until it is dropped.
pub struct SmallDisk {
    directory: tempfile::TempDir,
}

impl SmallDisk {
    /// Mounts a file system of this size; `None` if this process has no permission to mount.
    pub fn new(bytes: u64) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let options = std::ffi::CString::new(format!("size={bytes}")).unwrap();
        rustix::mount::mount(
            "tmpfs",
            directory.path(),
            "tmpfs",
            rustix::mount::MountFlags::empty(),
            options.as_c_str(),
        )
        .ok()?;
        Some(Self { directory })
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let flags = rustix::mount::UnmountFlags::DETACH;
        let _ = rustix::mount::unmount(self.directory.path(), flags);
    }
}
