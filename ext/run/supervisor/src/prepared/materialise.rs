//! Turns an open mount source into directories that an overlay can use, and detects later changes
//! of the source.
//! The host directory itself becomes the lower layer if the owner of the state directory owns every
//! inode in it and launchers (programs that start guests) can reach it; otherwise the lower layer
//! is a private copy, made through the open descriptor.

use super::mask::{self, Mask};
use crate::request::git;
use crate::request::pinned::{open_dir, pinned};
use crate::request::scratch_space::ScratchSpace;
use crate::request::sources::{OpenMount, OpenStaged, Shown};
use std::os::fd::{AsFd, OwnedFd};
use wp_codebox_artifacts::{
    CaptureLimits, ExcludeRules, LeftOut, Links, Omitted, TreeScan, copy_tree, scan_tree,
};
use wp_codebox_backend_native::{PlannedCommits, PlannedGit};
use wp_codebox_contracts::{
    CodedError, ErrorBody, ErrorCode, GitView, HostSource, IsolationLevel, MountAccess, MountView,
    Sha256Hex, StagedFile,
};
use wp_codebox_runtime::RunDir;

/// A mount that is ready for guests.
#[derive(Debug)]
pub(crate) struct Materialised {
    pub mount: OpenMount,
    pub view: MountView,
    /// Host directories that make up the mount, topmost first.
    pub lowers: Vec<HostSource>,
    /// Original content of the mount, which the guest's changes are compared with: the source or
    /// its copy.
    pub baseline: OwnedFd,
    /// Git repository that the guest gets for the mount.
    pub git: Option<PlannedGit>,
    /// Entries of the source that the guest does not see.
    pub left_out: LeftOut,
    fingerprint: Sha256Hex,
}

fn describe(mount: &OpenMount, error: &wp_codebox_artifacts::TreeError) -> ErrorBody {
    let mut body = error.body();
    body.message = format!("mount {}: {}", mount.target, body.message);
    body.with("target", mount.target.as_str())
}

/// Reads the directory tree of a mount's source, decides whether the guest gets the source itself
/// or a copy, and makes the copy.
pub(crate) fn materialise(
    index: usize,
    mut mount: OpenMount,
    space: ScratchSpace<'_>,
) -> Result<Materialised, ErrorBody> {
    let owner = space.owner;
    let rules = ExcludeRules::new(&mount.request.exclude);
    let scan = scan_tree(mount.source.as_fd(), &rules, &CaptureLimits::TREE)
        .map_err(|e| describe(&mount, &e))?;
    let maps = scan
        .owners
        .iter()
        .all(|&(uid, gid)| (uid, gid) == (owner.uid, owner.gid));
    // The guest can see the source directory itself only through a kernel mount. A guest without a
    // mount namespace gets a copy instead, and changes are found by comparing it with a second
    // copy.
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
    let direct = space.level == IsolationLevel::Full && maps && visible;
    let git = git::at_level(&mount, space.level)?;
    let mask = |tree, hidden: &[Omitted]| {
        let layer = Mask { hidden, git };
        mask::write(&mount.target, tree, &layer, space.run_dir, index)
    };
    // A file system without whiteouts cannot hide entries; a copy leaves them out.
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
            git: git::write(&mount, git, (view, &lowers), space, index)?,
            left_out: with_made(left_out, &mut mount),
            mount,
            view,
            lowers,
            baseline,
            fingerprint,
        });
    }
    let (baseline, copy) = space
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
        git: git::write(&mount, git, (MountView::Copy, &lowers), space, index)?,
        left_out: with_made(left_out, &mut mount),
        lowers,
        baseline,
        fingerprint,
        mount,
    })
}

/// Returns the entries of a mount that the guest does not see: hidden ones, and those that were
/// left out when the mount's directory was generated.
fn with_made(mut left_out: LeftOut, mount: &mut OpenMount) -> LeftOut {
    left_out.hidden.append(&mut mount.left_out);
    left_out
}

fn copy_failed(mount: &OpenMount, error: std::io::Error) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::SandboxStartFailed,
        format!(
            "the source of mount {} cannot be opened or copied: {error}",
            mount.target
        ),
    )
}

/// Returns whether the owner of the state directory can open the mount's path and reaches the
/// directory that is already open. Launchers open the path with the permissions of the same user.
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
    /// Returns whether anything in the source has changed since the start of the run.
    pub(crate) fn source_changed(&self) -> bool {
        scan_tree(
            self.mount.source.as_fd(),
            &self.rules(),
            &CaptureLimits::TREE,
        )
        .map_or(true, |now| now.fingerprint != self.fingerprint)
    }

    /// Returns the digest of the names, inodes, sizes and timestamps that the source had at the
    /// start of the run.
    pub(crate) fn fingerprint(&self) -> &Sha256Hex {
        &self.fingerprint
    }

    /// Returns what kind of git repository the guest has for the mount.
    pub(crate) fn git_view(&self) -> GitView {
        match self.git.as_ref().map(|git| &git.commits) {
            None => GitView::None,
            Some(PlannedCommits::Base(_)) => GitView::Baseline,
            Some(PlannedCommits::Objects(_)) => GitView::History,
        }
    }

    /// Returns the rules of the capture: entries with a name in the request's `exclude`, at any depth,
    /// are not captured.
    pub(crate) fn rules(&self) -> ExcludeRules {
        ExcludeRules::new(&self.mount.request.exclude)
    }
}

/// Writes the staged files (host files that the guest may read) with read-only permissions into the
/// run's scratch directory, from which the launcher mounts them.
pub(crate) fn write_staged(
    files: &[OpenStaged],
    run_dir: &RunDir,
) -> Result<Vec<StagedFile>, ErrorBody> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let directory = run_dir.scratch("staged")?;
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
