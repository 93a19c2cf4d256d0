//! Overlay layer above the source of a mount. The layer hides entries from a guest and provides the
//! guest's own `.git`.
//!
//! Only views of the source itself need whiteouts: a copy is made without the hidden entries. Layer
//! and source are both lower layers of the guest's overlay, so a guest cannot remove the layer.

use crate::request::pinned::{open_dir, pinned};
use std::os::fd::{AsFd, BorrowedFd};
use wp_codebox_artifacts::{Omitted, write_mask};
use wp_codebox_backend_native::git_file;
use wp_codebox_contracts::{ErrorBody, ErrorCode, GitView, GuestPath, HostSource};
use wp_codebox_runtime::RunDir;

/// Content of the overlay layer above one mounted directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mask<'a> {
    /// Entries of the directory to hide from the guest.
    pub hidden: &'a [Omitted],
    /// Kind of git repository that the guest gets for the directory.
    pub git: GitView,
}

/// Writes the overlay layer above `tree` into the run's scratch directory. Returns the layer's
/// directory, or an empty list if the layer would be empty.
pub(crate) fn write(
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
    // On a file system without whiteouts, writing a `mask` layer fails and its directory stays. The
    // mount is then copied, and the layer above the copy needs another name.
    let kind = match mask.hidden {
        [] => "git-file",
        _ => "mask",
    };
    let path = run_dir.scratch(&format!("{kind}-{index}"))?;
    let failed = |e: std::io::Error| {
        let message = format!(
            "mount {target}: the overlay layer with its hidden files and its .git file cannot be written: {e}"
        );
        ErrorBody::new(ErrorCode::SandboxStartFailed, message)
    };
    let layer = open_dir(&path).map_err(failed)?;
    let hidden = mask.hidden.iter().map(|left| &left.path[..]);
    write_mask(tree, hidden, git_file.as_deref(), layer.as_fd())?;
    Ok(vec![pinned(&path, &layer).map_err(failed)?])
}
