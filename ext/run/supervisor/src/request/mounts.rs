//! Opens the mounts of a request with the permissions of its caller.

use super::sources::{OpenMount, Shown, open_source};
use super::{generated, git};
use std::os::fd::AsFd;
use std::path::Path;
use wp_codebox_contracts::{
    ErrorBody, GeneratedFrom, GitView, GuestPath, MountRequest, RunRequest,
};

pub(crate) fn open_mount(
    mount: &MountRequest,
    target: GuestPath,
    request: &RunRequest,
) -> Result<OpenMount, ErrorBody> {
    let subject = format!("the source of mount {target}");
    let row = generated::of(request, target.as_str());
    let opened = match row {
        Some(row) => generated::open(row, &mount.source, &subject, request),
        None => open_source(&mount.source, &subject, request),
    };
    let (source, path) = opened.map_err(|error| error.with("target", target.as_str()))?;
    // A directory generated from an archive or from text is not in a git work tree.
    let tree = row.is_none_or(|row| matches!(row.from, GeneratedFrom::Copy { .. }));
    let git = git::wanted(mount, if tree { &path } else { Path::new("/") })?;
    let history = match (git, row) {
        (GitView::None | GitView::Baseline, _) => None,
        (GitView::History, None) => Some(git::history(mount, source.as_fd())?),
        (GitView::History, Some(_)) => {
            return Err(git::unavailable(
                mount,
                "its directory is generated for the run and has no git history",
            ));
        }
    };
    Ok(OpenMount {
        git,
        history,
        request: mount.clone(),
        target,
        source,
        path,
        shown: Shown::ByPath,
        left_out: Vec::new(),
    })
}
