//! Removes one entry of an open directory and records it in the report.

use super::report::{GcFailure, GcItem, GcKind, GcMode, GcReason, GcReport, GcRules};
use crate::RunDirError;
use crate::run_dir::io;
use rustix::fd::AsFd;
use rustix::io::Errno;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wp_codebox_artifacts::{Dir, remove_tree_in};
use wp_codebox_contracts::SiteId;

pub(super) fn item(
    kind: GcKind,
    id: &str,
    site: &SiteId,
    bytes: u64,
) -> impl Fn(GcReason) -> GcItem {
    let (id, site) = (id.to_owned(), site.clone());
    move |reason| GcItem {
        kind,
        id: id.clone(),
        site: Some(site.clone()),
        bytes,
        reason,
    }
}

pub(super) fn list_failed(source: Errno) -> RunDirError {
    io("list the runs")(source.into())
}

pub(super) fn open(path: &Path) -> Result<Dir, RunDirError> {
    Dir::open(path).map_err(list_failed)
}

/// Returns the time since the last modification of the entry `name`; zero if that time is unknown
/// or in the future.
pub(super) fn touched(directory: &Dir, name: &str) -> Duration {
    let stat = directory.stat(name.as_bytes()).ok().flatten();
    let modified = stat
        .and_then(|stat| u64::try_from(stat.st_mtime).ok())
        .map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds));
    modified
        .and_then(|time| SystemTime::now().duration_since(time).ok())
        .unwrap_or_default()
}

pub(super) fn remove(
    parent: &Dir,
    name: &str,
    item: GcItem,
    rules: &GcRules,
    report: &mut GcReport,
) {
    let removed = match rules.mode {
        GcMode::DryRun => Ok(()),
        GcMode::Remove => remove_tree_in(parent.as_fd(), name.as_bytes()).map(drop),
    };
    match removed {
        Ok(()) => report.removed.push(item),
        Err(error) => report.failed.push(GcFailure {
            kind: item.kind,
            id: item.id.clone(),
            message: error.to_string(),
        }),
    }
}

pub(super) fn failed(item: &GcItem, error: Errno, report: &mut GcReport) {
    report.failed.push(GcFailure {
        kind: item.kind,
        id: item.id.clone(),
        message: format!(
            "the item cannot be removed completely: {error}; check for immutable files or mount points"
        ),
    });
}

pub(super) fn seconds_ago(age: Duration) -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .saturating_sub(age)
        .as_secs()
}
