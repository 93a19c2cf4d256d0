//! Where a guest's writable files are stored.
//!
//! Usually the launcher mounts a tmpfs for them. The upper directories of overlays need user
//! xattrs, which a tmpfs stores since Linux 6.6. On older kernels the files of a guest lie in a
//! directory: on a file system that the spawner made for the run, whose size is the disk limit, or
//! else below the run's own directory, where the supervisor can only poll their size.

use crate::host_facts::HostFacts;
use crate::spawner::{GuestIdentity, SpawnerStorage};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use wp_codebox_artifacts::remove_tree_in;
use wp_codebox_contracts::TMPFS_USER_XATTRS;
use wp_codebox_contracts::{
    HostSource, IsolationAxis, IsolationLevel, IsolationReport, LaunchPlan, PlanScratch,
    ScratchSize,
};

/// Storage of the writable files of guests at level `full`. At `reduced` they lie in the guest's
/// tree on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScratchStorage {
    /// A tmpfs that the launcher mounts; its size is the guest's disk limit.
    Memory,
    /// A directory. The launch creates one for each guest below the given path, which must exist,
    /// unless the spawner has a file system for them.
    Disk(PathBuf),
}

impl ScratchStorage {
    /// Returns the storage that this kernel needs; `directory` is the path for files on disk.
    #[must_use]
    pub fn of_kernel(directory: impl Into<PathBuf>) -> Self {
        if HostFacts::running_kernel_at_least(TMPFS_USER_XATTRS) {
            Self::Memory
        } else {
            Self::Disk(directory.into())
        }
    }
}

/// Numbers the scratch directories of this process.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// The directory with the writable files of one guest. Removed when this value is dropped.
#[derive(Debug)]
pub(crate) struct ScratchDirectory {
    parent: OwnedFd,
    name: String,
    directory: OwnedFd,
    /// Path under which the launcher finds the directory.
    path: String,
    size: ScratchSize,
    /// Why no file system limits the size.
    reason: String,
    layers: BTreeSet<String>,
    kept: Kept,
}

/// What stays of a scratch directory that is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Nothing,
    Layers,
}

impl ScratchDirectory {
    /// Creates the directory for a guest; `None` if the guest needs none. The file system of the
    /// spawner is used if the guest's whole disk limit fits on it.
    pub(crate) fn make(
        storage: &ScratchStorage,
        identity: &GuestIdentity,
        plan: &LaunchPlan,
    ) -> io::Result<Option<Self>> {
        let ScratchStorage::Disk(path) = storage else {
            return Ok(None);
        };
        if plan.level != IsolationLevel::Full {
            return Ok(None);
        }
        let unlimited = |reason: &str| {
            let parent = open(CWD, path)?;
            io::Result::Ok((
                parent,
                path.as_path(),
                ScratchSize::Unlimited,
                reason.to_owned(),
            ))
        };
        let (parent, path, size, reason) = match identity.spawner().map(|one| one.scratch()) {
            Some(SpawnerStorage::FileSystem { mount, path, bytes })
                if *bytes >= plan.limits.disk_bytes =>
            {
                let size = ScratchSize::Limited(*bytes);
                (mount.try_clone()?, Path::new(path), size, String::new())
            }
            Some(SpawnerStorage::FileSystem { .. }) => {
                unlimited("the run's file system is smaller than the disk limit of this sandbox")?
            }
            Some(SpawnerStorage::Missing(reason)) => unlimited(reason)?,
            Some(SpawnerStorage::Memory) | None => {
                unlimited("only root can make a file system for them")?
            }
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // The sweep of templates removes what a killed process left under such a name.
        let name = format!(".tmp-scratch-{}-{number}", std::process::id());
        mkdirat(&parent, &name, Mode::RWXU)?;
        let path = path.join(&name).to_string_lossy().into_owned();
        Ok(Some(Self {
            directory: open(&parent, Path::new(&name))?,
            parent,
            name,
            path,
            size,
            reason,
            layers: BTreeSet::new(),
            kept: Kept::Nothing,
        }))
    }

    /// Returns the directory as the launch plan names it.
    pub(crate) fn planned(&self) -> PlanScratch {
        PlanScratch {
            directory: HostSource::of(&self.path),
            size: self.size,
        }
    }

    /// Opens the directory once more.
    pub(crate) fn reopen(&self) -> io::Result<OwnedFd> {
        self.directory.try_clone()
    }

    /// Returns the path of the directory if no file system limits its size.
    pub(crate) fn unlimited(&self) -> Option<&str> {
        match self.size {
            ScratchSize::Unlimited => Some(&self.path),
            ScratchSize::Limited(_) => None,
        }
    }

    /// Adds to the report why nothing limits the size of the guest's files.
    pub(crate) fn explain(&self, report: &mut IsolationReport) {
        let row = report
            .axes
            .iter_mut()
            .find(|row| row.axis == IsolationAxis::Disk);
        if let (Some(row), ScratchSize::Unlimited) = (row, self.size) {
            row.evidence = format!("{}: {}", row.evidence, self.reason);
        }
    }

    /// Records that the entry `name` of the directory is the upper directory of a captured overlay.
    pub(crate) fn add_layer(&mut self, name: &str) {
        self.layers.insert(name.to_owned());
    }

    /// Makes the upper directories of captured overlays stay when this value is dropped: their
    /// descriptors are read later. The end of the run removes them.
    pub(crate) fn keep_layers(&mut self) {
        self.kept = Kept::Layers;
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        // Removal of the run's directory, or the end of the run's file system, removes what a
        // failure leaves here.
        if self.kept == Kept::Nothing {
            let _ = remove_tree_in(self.parent.as_fd(), self.name.as_bytes());
            return;
        }
        let Ok(entries) = rustix::fs::Dir::read_from(&self.directory) else {
            return;
        };
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name().to_bytes();
            let layer = std::str::from_utf8(name).is_ok_and(|name| self.layers.contains(name));
            if !layer && !matches!(name, b"." | b"..") {
                let _ = remove_tree_in(self.directory.as_fd(), name);
            }
        }
    }
}

fn open(parent: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(parent, path, flags, Mode::empty())?)
}
