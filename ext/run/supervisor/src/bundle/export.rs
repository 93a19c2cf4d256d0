//! Copies a finished bundle to a directory of the caller.

use rustix::fs::{Mode, OFlags};
use std::os::fd::AsFd;
use std::path::Path;
use wp_codebox_artifacts::{CaptureLimits, ExcludeRules, Links, copy_tree};

/// Copies a bundle directory into an empty directory without following symbolic links.
pub fn copy_bundle(from: &Path, to: &Path) -> std::io::Result<()> {
    let open = |path: &Path| {
        rustix::fs::open(
            path,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )
    };
    let (from, to) = (open(from)?, open(to)?);
    copy_tree(
        from.as_fd(),
        to.as_fd(),
        &ExcludeRules::default(),
        Links::Inside,
        &CaptureLimits::TREE,
    )
    .map(|_| ())
    .map_err(|e| std::io::Error::other(e.to_string()))
}
