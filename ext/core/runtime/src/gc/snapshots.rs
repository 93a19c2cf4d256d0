//! Garbage collection of snapshots: removes unfinished snapshots, finishes interrupted removals,
//! and removes old snapshots if the rules say so.

use super::removal::{failed, item, remove, seconds_ago, touched};
use super::report::{
    GcFailure, GcItem, GcKind, GcMode, GcReason, GcReport, GcRetainReason, GcRules, SizeBudget,
    SnapshotRule,
};
use crate::disk::disk_bytes;
use crate::snapshots::{REMOVED, SNAPSHOTS, UNFINISHED, is_id, lock};
use crate::{SnapshotError, SnapshotScope, SnapshotStore, StateDir, rfc3339};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::path::Path;
use std::time::Duration;
use wp_codebox_artifacts::Dir;
use wp_codebox_contracts::SiteId;

/// Age up to which an empty unfinished snapshot is retained, because its creator may not have
/// locked it yet.
const FRESH: Duration = Duration::from_secs(60);

pub(super) fn collect(state: &StateDir, site: &SiteId, rules: &GcRules, report: &mut GcReport) {
    let root = state
        .path()
        .join("sites")
        .join(site.as_str())
        .join(SNAPSHOTS);
    let opened = Dir::open(&root).and_then(|directory| Ok((directory.names()?, directory)));
    let (names, directory) = match opened {
        Ok(opened) => opened,
        // No snapshot of the site was made yet.
        Err(Errno::NOENT) => return,
        Err(error) => {
            let item = item(GcKind::Snapshot, SNAPSHOTS, site, 0)(GcReason::Orphaned);
            return failed(&item, error, report);
        }
    };
    for name in names {
        let Ok(name) = String::from_utf8(name) else {
            continue;
        };
        let (id, reason) = match (name.strip_prefix(UNFINISHED), name.strip_prefix(REMOVED)) {
            (Some(id), _) => (id, GcReason::Orphaned),
            (None, Some(id)) => (id, GcReason::Interrupted),
            (None, None) => continue,
        };
        let path = root.join(&name);
        // `begins` is called before the lock is taken: if this process locked a directory that its
        // creator is about to lock, the creation would fail.
        if !is_id(id) || (reason == GcReason::Orphaned && begins(&path)) {
            continue;
        }
        let Ok(_lock) = lock(&path, FlockOperation::NonBlockingLockExclusive) else {
            continue;
        };
        let bytes = disk_bytes(&directory, name.as_bytes());
        let item = item(GcKind::Snapshot, id, site, bytes)(reason);
        remove(&directory, &name, item, rules, report);
    }
    let Ok(shelf) = SnapshotStore::of_site(state, site) else {
        return;
    };
    let SnapshotRule::Within { max_age, budget } = rules.snapshots else {
        let count = shelf.list(SnapshotScope::Any).len() + shelf.unusable().len();
        report.stays(GcKind::Snapshot, count, GcRetainReason::OnlyOnRequest);
        return;
    };
    // A damaged snapshot cannot be used. Its `snapshot.json` is not trusted, so its age is that of
    // its directory.
    for (id, error) in shelf.unusable() {
        // What cannot be read now, or by this version of the program, is not damaged.
        if !matches!(error, SnapshotError::Invalid { .. }) {
            report.failed.push(GcFailure {
                kind: GcKind::Snapshot,
                id,
                message: format!("the snapshot stays as it is: {error}"),
            });
            continue;
        }
        if touched(&directory, &id) > max_age {
            let bytes = disk_bytes(&directory, id.as_bytes());
            let item = item(GcKind::Snapshot, &id, site, bytes)(GcReason::Age);
            taken(&shelf, item, rules, report);
        }
    }
    let before = rfc3339(seconds_ago(max_age), 999);
    let mut used = 0_u64;
    // Newest first: the newest snapshots count towards the maximum size first, so the oldest exceed
    // it and are removed.
    for snapshot in shelf.list(SnapshotScope::Any).into_iter().rev() {
        let bytes = disk_bytes(&directory, snapshot.id.as_bytes());
        let over = match budget {
            SizeBudget::Unlimited => false,
            SizeBudget::Bytes(most) => used.saturating_add(bytes) > most,
        };
        let reason = if snapshot.created_at <= before {
            GcReason::Age
        } else if over {
            GcReason::Size
        } else {
            used = used.saturating_add(bytes);
            continue;
        };
        let item = item(GcKind::Snapshot, &snapshot.id, site, bytes)(reason);
        taken(&shelf, item, rules, report);
    }
}

fn taken(shelf: &SnapshotStore, item: GcItem, rules: &GcRules, report: &mut GcReport) {
    if rules.mode == GcMode::DryRun {
        report.removed.push(item);
        return;
    }
    match shelf.remove(&item.id) {
        Ok(()) => report.removed.push(item),
        Err(SnapshotError::InUse { .. }) => report.alive += 1,
        // Another process removed the snapshot first.
        Err(SnapshotError::NotFound { .. }) => {}
        Err(SnapshotError::Io { source, .. }) => {
            let errno = source
                .raw_os_error()
                .unwrap_or(rustix::io::Errno::IO.raw_os_error());
            failed(&item, rustix::io::Errno::from_raw_os_error(errno), report);
        }
        Err(_) => failed(&item, rustix::io::Errno::IO, report),
    }
}

/// Returns whether a snapshot directory is empty and so new that its creator may not have locked it
/// yet.
fn begins(path: &Path) -> bool {
    let empty = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    let age = std::fs::metadata(path)
        .and_then(|meta| meta.modified())
        .ok()
        .and_then(|time| time.elapsed().ok());
    // A modification time in the future means that the clock was set back. The directory then
    // counts as new.
    empty && age.is_none_or(|age| age < FRESH)
}
