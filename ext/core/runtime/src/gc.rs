//! Garbage collection of data left by runs: directories of settled runs (runs with a final record)
//! by age and size, scratch directories of dead runs, unfinished bundles and snapshots, and seeds
//! (data to create a sandbox again) of removed sandboxes. Finished bundles and snapshots are
//! removed only if the [`GcRules`] say so.
//!
//! A run directory is removed only if its run is certainly dead: its marker (a locked file in
//! `active/`) is missing or can be locked, the file `lease` in the run directory can be locked and
//! stays locked during the removal, and its record is final. One rename removes a run directory
//! from the list of runs, so an interrupted collection leaves a directory with a hidden name, which
//! the next collection removes. Collections may run at the same time as runs. Collections of the
//! same site wait for each other: if two removed the same tree, each would report errors for
//! entries that the other has removed, and one could mistake a run directory that the other has
//! just removed for a run without a record.

mod removal;
mod report;
mod seeds;
mod snapshots;

pub use report::{
    ArtifactRule, GcFailure, GcItem, GcKind, GcMode, GcReason, GcReport, GcRetainReason,
    GcRetained, GcRules, SizeBudget, SnapshotRule,
};

use crate::disk::disk_bytes;
use crate::document::DocumentError;
use crate::markers::{MarkerState, marker_state, take_lease};
use crate::reap::{Settled, settle_dead};
use crate::run_dir::{REMOVING, io};
use crate::{RunDirError, RunRecord, StateDir, reap_dead, rfc3339};
use removal::{failed, item, list_failed, open, remove, seconds_ago, touched};
use rustix::fs::{FlockOperation, OFlags};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wp_codebox_artifacts::{Dir, Store};
use wp_codebox_contracts::{RunId, SiteId};

/// Age above which an unfinished bundle is removed. The longest allowed run is shorter, so the
/// process that wrote the bundle must be dead.
const ORPHAN_AGE: Duration = Duration::from_secs(25 * 3600);

/// Returns the sites that have a directory in the state directory.
pub fn sites(state: &StateDir) -> Result<Vec<SiteId>, RunDirError> {
    let path = state.ensure(&["sites"])?;
    let mut sites = Vec::new();
    for entry in std::fs::read_dir(path).map_err(io("list the sites"))? {
        let name = entry.map_err(io("list the sites"))?.file_name();
        sites.extend(name.to_str().and_then(|name| SiteId::new(name).ok()));
    }
    sites.sort();
    Ok(sites)
}

/// A settled run (its final record is written), which may be removed.
struct Settling {
    run_id: RunId,
    age: Duration,
    bytes: u64,
}

/// Removes the data that runs of one site left, as far as `rules` allow. In a dry run, only lists
/// them in the report.
pub fn collect(
    state: &StateDir,
    site: &SiteId,
    rules: &GcRules,
    report: &mut GcReport,
) -> Result<(), RunDirError> {
    let mut unsettled = Vec::new();
    if rules.mode == GcMode::Remove {
        let reaped = reap_dead(state, site)?;
        report.settled += reaped.settled;
        report.alive += reaped.alive;
        unsettled = reaped.unreadable;
    }
    let root = state.ensure(&["sites", site.as_str(), "runs"])?;
    let active = state.ensure(&["sites", site.as_str(), "active"])?;
    let runs = open(&root)?;
    // Closing the descriptor releases the lock.
    rustix::fs::flock(&runs, FlockOperation::LockExclusive).map_err(list_failed)?;
    let mut settled = Vec::new();
    for name in runs.names().map_err(list_failed)? {
        let Ok(name) = String::from_utf8(name) else {
            continue;
        };
        if name.starts_with(REMOVING) {
            let bytes = disk_bytes(&runs, name.as_bytes());
            let item = item(GcKind::Run, name.trim_start_matches(REMOVING), site, bytes);
            remove(&runs, &name, item(GcReason::Interrupted), rules, report);
            continue;
        }
        let Ok(run_id) = RunId::new(name) else {
            continue;
        };
        let path = root.join(run_id.as_str());
        // A marker means that the run is alive, that another process may be writing its final record,
        // or that `reap_dead` could not settle it. It is examined before the record is read: if the
        // run ends in between, the record already is the final one.
        let marker = marker_state(&active.join(run_id.as_str()));
        let mut stays = |error: DocumentError| {
            report.failed.push(GcFailure {
                kind: GcKind::Run,
                id: run_id.to_string(),
                message: format!("the run stays as it is: {error}"),
            });
        };
        let record = match RunRecord::read(&path) {
            Ok(record) => record,
            Err(error) => {
                stays(error);
                continue;
            }
        };
        if !matches!(marker, MarkerState::Settled) {
            if let Some(at) = unsettled.iter().position(|(id, _)| *id == run_id) {
                stays(unsettled.swap_remove(at).1);
            }
            continue;
        }
        if !record.is_some_and(|record| record.is_terminal()) {
            // The run has no marker, so an old version of this program, which created no markers,
            // started it. Only the lock on its file `lease` shows whether the run is alive.
            match rules.mode {
                GcMode::DryRun => continue,
                GcMode::Remove => match settle_dead(state, site, &path, &run_id, None) {
                    Ok(Settled::Yes) => report.settled += 1,
                    Ok(Settled::ByOther | Settled::NotNow) => {
                        report.alive += 1;
                        continue;
                    }
                    Err(error) => {
                        stays(error);
                        continue;
                    }
                },
            }
        }
        settled.push(Settling {
            age: age(&runs, &run_id),
            bytes: disk_bytes(&runs, run_id.as_str().as_bytes()),
            run_id,
        });
    }
    settled.sort_by(|a, b| a.age.cmp(&b.age).then_with(|| a.run_id.cmp(&b.run_id)));
    let mut used = 0_u64;
    for run in settled {
        let over = match rules.budget {
            SizeBudget::Unlimited => false,
            SizeBudget::Bytes(most) => used.saturating_add(run.bytes) > most,
        };
        let reason = if run.age > rules.max_age {
            GcReason::Age
        } else if over {
            GcReason::Size
        } else {
            report.kept += 1;
            used = used.saturating_add(run.bytes);
            report.kept_bytes = report.kept_bytes.saturating_add(run.bytes);
            continue;
        };
        let item = item(GcKind::Run, run.run_id.as_str(), site, run.bytes)(reason);
        remove_run(&runs, &root, item, rules, report);
    }
    artifacts(state, site, rules, report);
    snapshots::collect(state, site, rules, report);
    seeds::collect(state, site, rules, report);
    Ok(())
}

/// Returns the time since the run's record was last written.
fn age(runs: &Dir, run_id: &RunId) -> Duration {
    runs.dir(run_id.as_str().as_bytes())
        .map(|run| touched(&run, "run.json"))
        .unwrap_or_default()
}

/// Hides the directory of a settled run from the list of runs while holding the lock on its file
/// `lease`, then removes the directory.
fn remove_run(runs: &Dir, root: &Path, item: GcItem, rules: &GcRules, report: &mut GcReport) {
    let path: PathBuf = root.join(&item.id);
    if rules.mode == GcMode::DryRun {
        report.removed.push(item);
        return;
    }
    let Ok(_lease) = take_lease(&path, OFlags::CREATE) else {
        report.alive += 1;
        return;
    };
    let hidden = format!("{REMOVING}{}", item.id);
    match rustix::fs::renameat(runs, item.id.as_str(), runs, hidden.as_str()) {
        Ok(()) => remove(runs, &hidden, item, rules, report),
        Err(error) => failed(&item, error, report),
    }
}

/// Removes unfinished bundles whose writer must be dead, and finished bundles if the rules say
/// so.
fn artifacts(state: &StateDir, site: &SiteId, rules: &GcRules, report: &mut GcReport) {
    let store = match Dir::open(state.path()) {
        Ok(root) => Store::open(&root, site).map_err(|e| e.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let listed = store.and_then(|store| match store.list() {
        Ok(rows) => Ok((store, rows)),
        Err(error) => Err(error.to_string()),
    });
    let (store, rows) = match listed {
        Ok(listed) => listed,
        Err(message) => {
            report.failed.push(GcFailure {
                kind: GcKind::Artifact,
                id: site.to_string(),
                message,
            });
            return;
        }
    };
    if rules.mode == GcMode::Remove {
        let before = seconds_ago(ORPHAN_AGE);
        match store.sweep(i64::try_from(before).unwrap_or(0)) {
            Ok(count) => report.removed.extend(
                (0..count)
                    .map(|_| item(GcKind::Staging, "unfinished", site, 0)(GcReason::Orphaned)),
            ),
            Err(error) => report.failed.push(GcFailure {
                kind: GcKind::Staging,
                id: "unfinished".to_owned(),
                message: error.to_string(),
            }),
        }
    }
    let ArtifactRule::OlderThan(age) = rules.artifacts else {
        report.stays(GcKind::Artifact, rows.len(), GcRetainReason::OnlyOnRequest);
        return;
    };
    // Both dates are RFC 3339 in UTC in the same format, so comparing the texts compares the times.
    // A bundle without a date is not removed, because its manifest cannot be read. Ages are whole seconds: age 0 includes bundles of the
    // current second.
    let before = rfc3339(seconds_ago(age), 999);
    for row in rows {
        if row.created_at.is_empty() {
            report.failed.push(GcFailure {
                kind: GcKind::Artifact,
                id: row.run_id.to_string(),
                message: "the bundle stays as it is: its manifest.json cannot be read; `wp-codebox artifacts verify` says why".to_owned(),
            });
        }
        if row.created_at.is_empty() || row.created_at > before {
            continue;
        }
        let name = row.run_id.as_str();
        let bytes = disk_bytes(store.directory(), name.as_bytes());
        let item = item(GcKind::Artifact, name, site, bytes)(GcReason::Age);
        let done = match rules.mode {
            GcMode::DryRun => Ok(()),
            GcMode::Remove => store.discard(name).map(drop),
        };
        match done {
            Ok(()) => report.removed.push(item),
            Err(error) => report.failed.push(GcFailure {
                kind: GcKind::Artifact,
                id: name.to_owned(),
                message: error.to_string(),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
