//! From an open mount source to directories an overlay can use, and back to the
//! question whether the source stayed as it was.
//!
//! The host directory itself is the lower layer where the guest's user owns every
//! inode and can reach it by path; otherwise a private copy is, made through the
//! open descriptor.

use super::git;
use super::mask::{self, Mask};
use super::sources::{OpenMount, OpenStaged, Shown};
use rustix::fs::{Mode, OFlags};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::{
    CaptureLimits, ExcludeRules, LeftOut, Links, Omitted, TreeScan, copy_tree, scan_tree,
};
use wp_codebox_backend_native::{GuestStore, PlannedCommits, PlannedGit};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, GitView, HostSource, InodeId, IsolationLevel, MountAccess, MountView,
    Sha256Hex, StagedFile,
};
use wp_codebox_runtime::{Owner, RunDir};

/// A mount that can be planned.
#[derive(Debug)]
pub(crate) struct Materialised {
    pub mount: OpenMount,
    pub view: MountView,
    /// Host directories the overlay or bind uses, topmost first.
    pub lowers: Vec<HostSource>,
    /// What a change is measured against: the source, or its copy.
    pub baseline: OwnedFd,
    /// Its repository in the guest.
    pub git: Option<PlannedGit>,
    /// What the guest does not get of it, whatever its view.
    pub left_out: LeftOut,
    fingerprint: Sha256Hex,
}

fn describe(mount: &OpenMount, error: &wp_codebox_artifacts::TreeError) -> ErrorBody {
    let mut body = error.body();
    body.message = format!("mount {}: {}", mount.target, body.message);
    body.with("target", mount.target.as_str())
}

/// Where sources are materialised, and for whom.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Workshop<'a> {
    pub owner: Owner,
    pub level: IsolationLevel,
    pub run_dir: &'a RunDir,
    /// Where copies are made instead of in the run's scratch.
    pub store: Option<&'a GuestStore>,
}

impl Workshop<'_> {
    /// A new directory for a copy, and its path for launchers.
    pub(super) fn directory(&self, name: &str) -> Result<(OwnedFd, PathBuf), std::io::Error> {
        if let Some(store) = self.store {
            let (directory, path) = store.directory(name)?;
            return Ok((directory, path.into()));
        }
        let path = self.run_dir.scratch(name).map_err(std::io::Error::other)?;
        Ok((open_dir(&path)?, path))
    }
}

/// Scans the source and decides its view.
pub(crate) fn materialise(
    index: usize,
    mut mount: OpenMount,
    workshop: Workshop<'_>,
) -> Result<Materialised, ErrorBody> {
    let owner = workshop.owner;
    let rules = ExcludeRules::new(&mount.request.exclude);
    let scan = scan_tree(mount.source.as_fd(), &rules, &CaptureLimits::TREE)
        .map_err(|e| describe(&mount, &e))?;
    let maps = scan
        .owners
        .iter()
        .all(|&(uid, gid)| (uid, gid) == (owner.uid, owner.gid));
    // Without mounts everything is a copy, and so is what a change is measured against.
    let visible = match mount.shown {
        Shown::ByPath => reachable(&mount),
        Shown::ByView => true,
        Shown::Never | Shown::Stored => false,
    };
    let TreeScan {
        fingerprint,
        left_out,
        ..
    } = scan;
    let direct = workshop.level == IsolationLevel::Full && maps && visible;
    let git = git::at_level(&mount, workshop.level)?;
    let mask = |tree, hidden: &[Omitted]| {
        let layer = Mask { hidden, git };
        mask::write(&mount.target, tree, &layer, workshop.run_dir, index)
    };
    // On a file system without whiteouts nothing can be hidden; a copy lacks these entries.
    let layers = match direct {
        true => mask(mount.source.as_fd(), &left_out.hidden).ok(),
        false => None,
    };
    if let Some(mut lowers) = layers {
        let baseline = mount
            .source
            .try_clone()
            .map_err(|e| copy_failed(&mount, e))?;
        let view = match mount.request.mode {
            MountAccess::Readonly => MountView::Bind,
            MountAccess::Readwrite => MountView::Overlay,
        };
        let source = pinned(&mount.path, &mount.source).map_err(|e| copy_failed(&mount, e))?;
        lowers.push(source);
        return Ok(Materialised {
            git: git::write(&mount, git, (view, &lowers), workshop, index)?,
            left_out: with_made(left_out, &mut mount),
            mount,
            view,
            lowers,
            baseline,
            fingerprint,
        });
    }
    let (baseline, copy) = workshop
        .directory(&format!("mount-{index}"))
        .map_err(|e| copy_failed(&mount, e))?;
    copy_tree(
        mount.source.as_fd(),
        baseline.as_fd(),
        &ExcludeRules::default(),
        Links::AsTheyAre,
        &CaptureLimits::TREE,
    )
    .map_err(|e| describe(&mount, &e))?;
    let mut lowers = mask(baseline.as_fd(), &[])?;
    lowers.push(pinned(&copy, &baseline).map_err(|e| copy_failed(&mount, e))?);
    Ok(Materialised {
        view: MountView::Copy,
        git: git::write(&mount, git, (MountView::Copy, &lowers), workshop, index)?,
        left_out: with_made(left_out, &mut mount),
        lowers,
        baseline,
        fingerprint,
        mount,
    })
}

/// What was left out of the mount and of the directory that it was made of.
fn with_made(mut left_out: LeftOut, mount: &mut OpenMount) -> LeftOut {
    left_out.hidden.append(&mut mount.left_out);
    left_out
}

fn copy_failed(mount: &OpenMount, error: std::io::Error) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::SandboxStartFailed,
        format!("mount {}: its copy cannot be made: {error}", mount.target),
    )
}

pub(super) fn open_dir(path: &Path) -> std::io::Result<OwnedFd> {
    Ok(rustix::fs::open(
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// The path, and the inode it must still lead to when the guest is built.
pub(super) fn pinned(path: &Path, open: &OwnedFd) -> std::io::Result<HostSource> {
    let stat = rustix::fs::fstat(open)?;
    Ok(HostSource {
        path: path.to_string_lossy().into_owned(),
        inode: Some(InodeId {
            device: stat.st_dev,
            inode: stat.st_ino,
        }),
    })
}

/// Whether the path leads to the open directory for the user the guest will be.
fn reachable(mount: &OpenMount) -> bool {
    let Ok(by_path) = open_dir(&mount.path) else {
        return false;
    };
    let (Ok(a), Ok(b)) = (
        rustix::fs::fstat(&by_path),
        rustix::fs::fstat(&mount.source),
    ) else {
        return false;
    };
    (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)
}

impl Materialised {
    /// Whether anything below the source changed since it was scanned.
    pub(crate) fn source_changed(&self) -> bool {
        scan_tree(
            self.mount.source.as_fd(),
            &self.rules(),
            &CaptureLimits::TREE,
        )
        .map_or(true, |now| now.fingerprint != self.fingerprint)
    }

    /// What the source held when the run began: a digest over names, inodes, sizes and times.
    pub(crate) fn fingerprint(&self) -> &Sha256Hex {
        &self.fingerprint
    }

    /// Which repository the guest has of it.
    pub(crate) fn git_view(&self) -> GitView {
        match self.git.as_ref().map(|git| &git.commits) {
            None => GitView::None,
            Some(PlannedCommits::Base(_)) => GitView::Baseline,
            Some(PlannedCommits::Objects(_)) => GitView::History,
        }
    }

    /// Names left out of the capture.
    pub(crate) fn rules(&self) -> ExcludeRules {
        ExcludeRules::new(&self.mount.request.exclude)
    }
}

/// Writes staged files where the guest can have them bound, readable and not writable.
pub(crate) fn write_staged(
    files: &[OpenStaged],
    run_dir: &RunDir,
) -> Result<Vec<StagedFile>, ErrorBody> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let directory = run_dir.scratch("staged").map_err(|e| e.body())?;
    files
        .iter()
        .enumerate()
        .map(|(index, file)| {
            let path = directory.join(index.to_string());
            std::fs::write(&path, &file.bytes).map_err(|e| {
                ErrorBody::new(
                    ErrorCode::SandboxStartFailed,
                    format!("staged file {} cannot be written: {e}", file.target),
                )
            })?;
            Ok(StagedFile {
                source: path.to_string_lossy().into_owned(),
                target: file.target.as_str().to_owned(),
            })
        })
        .collect()
}
