//! The layer over a mount's source that hides what a guest must not see of it, and puts a `.git`
//! of the guest's own there.
//!
//! Only views of the source itself hide something: a copy is made without these entries. The layer and
//! the source are both lower layers of the guest's overlay, so a guest cannot remove it.

use super::pinned::{open_dir, pinned};
use std::os::fd::{AsFd, BorrowedFd};
use wp_codebox_artifacts::{Omitted, write_mask};
use wp_codebox_backend_native::git_file;
use wp_codebox_contracts::{ErrorBody, ErrorCode, GitView, GuestPath, HostSource};
use wp_codebox_runtime::RunDir;

/// What the layer over one directory does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mask<'a> {
    /// What it hides.
    pub hidden: &'a [Omitted],
    /// The repository that its `.git` names.
    pub git: GitView,
}

/// Writes the layer over `tree` into the run's scratch; none when it would do nothing.
pub(super) fn write(
    target: &GuestPath,
    tree: BorrowedFd<'_>,
    mask: &Mask<'_>,
    run_dir: &RunDir,
    index: usize,
) -> Result<Vec<HostSource>, ErrorBody> {
    let git_file = match mask.git {
        GitView::None => None,
        GitView::Baseline | GitView::History => Some(git_file(index)),
    };
    if mask.hidden.is_empty() && git_file.is_none() {
        return Ok(Vec::new());
    }
    // Where whiteouts cannot be made, the layer of a copy is written after a failed attempt, which
    // left its directory in the scratch: the two have different names.
    let kind = match mask.hidden {
        [] => "git-file",
        _ => "mask",
    };
    let path = run_dir
        .scratch(&format!("{kind}-{index}"))
        .map_err(|e| e.body())?;
    let failed = |e: std::io::Error| {
        let message = format!("mount {target}: the layer over it cannot be written: {e}");
        ErrorBody::new(ErrorCode::SandboxStartFailed, message)
    };
    let layer = open_dir(&path).map_err(failed)?;
    let hidden = mask.hidden.iter().map(|left| &left.path[..]);
    write_mask(tree, hidden, git_file.as_deref(), layer.as_fd()).map_err(|e| e.body())?;
    Ok(vec![pinned(&path, &layer).map_err(failed)?])
}
