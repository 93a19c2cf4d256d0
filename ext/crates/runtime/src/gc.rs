//! Collecting what runs left: settled run directories by age and size, dead scratch,
//! unfinished bundles and snapshots, seeds of sandboxes that are gone. Bundles and snapshots only
//! when the host says so.
//!
//! Nothing is removed before its run is proven dead: its marker is gone or can be locked,
//! its lease can be locked and is held during the removal, and its record is terminal. A
//! run directory leaves the list by one rename, so an interrupted collection leaves a
//! hidden name that the next one removes. Collections may run beside runs; of those of one
//! site one waits for the other, because two that remove the same tree would both find it
//! changing under them, and a run that one has just removed looks to the other like one that
//! never had a record.

mod seeds;
mod snapshots;

use crate::disk::{disk_bytes, look, names, open_directory};
use crate::markers::take_lease;
use crate::reap::{Settled, settle_dead};
use crate::{RunDirError, RunRecord, StateDir, reap_dead, rfc3339};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wp_codebox_artifacts::{Dir, Store, remove_tree_in};
use wp_codebox_contracts::{RunId, SiteId};

/// Run directories on their way out.
const REMOVING: &str = ".removing-";
/// A writer whose run cannot be told: older than any run can be.
const ORPHAN_AGE: Duration = Duration::from_secs(25 * 3600);

/// How much of the settled runs may stay, oldest removed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeBudget {
    /// However much there is.
    Unlimited,
    /// At most so many bytes on disk.
    Bytes(u64),
}

/// What happens to bundles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArtifactRule {
    /// They stay: only the host decides about bundles.
    Keep,
    /// The host decided: older ones go.
    OlderThan(Duration),
}

/// What happens to snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotRule {
    /// They stay: only what was never finished goes.
    Keep,
    /// The host decided: older ones go, and those for which there is no room, oldest first. One
    /// that a sandbox uses stays.
    Within {
        /// Oldest that stays.
        max_age: Duration,
        /// Room for those that stay, of each site.
        budget: SizeBudget,
    },
}

/// Whether anything is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GcMode {
    /// It is.
    Remove,
    /// It is only listed. Not even dead runs are settled.
    DryRun,
}

/// What a collection may remove.
#[derive(Debug, Clone, Copy)]
pub struct GcRules {
    /// Settled runs whose record is older go.
    pub max_age: Duration,
    /// Budget for what stays of them.
    pub budget: SizeBudget,
    /// Bundles.
    pub artifacts: ArtifactRule,
    /// Snapshots.
    pub snapshots: SnapshotRule,
    /// Remove or list.
    pub mode: GcMode,
}

/// Kinds of things a collection removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GcKind {
    /// A settled run's directory.
    Run,
    /// An unfinished bundle.
    Staging,
    /// A bundle.
    Artifact,
    /// A snapshot of a sandbox.
    Snapshot,
    /// What a sandbox was made from.
    Seed,
    /// A WordPress template.
    Template,
    /// A control group.
    Cgroup,
}

/// Why it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GcReason {
    /// Older than allowed.
    Age,
    /// The budget is used up by newer ones.
    Size,
    /// What made it is dead.
    Orphaned,
    /// An earlier removal was interrupted.
    Interrupted,
}

/// One thing removed, or to be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GcItem {
    /// What.
    pub kind: GcKind,
    /// Run id, template key or name.
    pub id: String,
    /// Whose; absent for what belongs to no site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteId>,
    /// Disk space, bytes.
    pub bytes: u64,
    /// Why.
    pub reason: GcReason,
}

/// One thing that could not be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GcFailure {
    /// What.
    pub kind: GcKind,
    /// As in [`GcItem`].
    pub id: String,
    /// One sentence.
    pub message: String,
}

/// Why a collection keeps things that its bounds for runs, age and size, do not apply to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GcStay {
    /// A run may still use it.
    RecentlyUsed,
    /// It is removed only when the option of its kind is given.
    OnlyOnRequest,
}

/// Things of one kind that a collection keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GcStayed {
    /// What.
    pub kind: GcKind,
    /// How many.
    pub count: usize,
    /// Why.
    pub reason: GcStay,
}

/// What a collection did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GcReport {
    /// Dead runs that got their terminal record.
    pub settled: usize,
    /// Runs alive.
    pub alive: usize,
    /// Settled runs that stay, and their disk space.
    pub kept: usize,
    /// Bytes of them.
    pub kept_bytes: u64,
    /// Removed, or to be removed.
    pub removed: Vec<GcItem>,
    /// Could not be removed.
    pub failed: Vec<GcFailure>,
    /// What it keeps for another reason than the age or size of settled runs; one row a kind.
    pub stayed: Vec<GcStayed>,
}

impl GcReport {
    /// Counts things that are kept.
    pub fn stays(&mut self, kind: GcKind, count: usize, reason: GcStay) {
        match self.stayed.iter_mut().find(|row| row.kind == kind) {
            Some(row) => row.count += count,
            None if count > 0 => self.stayed.push(GcStayed {
                kind,
                count,
                reason,
            }),
            None => {}
        }
    }
}

/// Every site there is.
pub fn sites(state: &StateDir) -> Result<Vec<SiteId>, RunDirError> {
    let path = state.ensure(&["sites"])?;
    let mut sites: Vec<SiteId> = std::fs::read_dir(path)
        .map_err(|source| RunDirError::Io {
            what: "list the sites",
            source,
        })?
        .flatten()
        .filter_map(|entry| SiteId::new(entry.file_name().to_str()?).ok())
        .collect();
    sites.sort();
    Ok(sites)
}

/// A settled run.
struct Settling {
    run_id: RunId,
    age: Duration,
    bytes: u64,
}

/// Collects one site.
pub fn collect(
    state: &StateDir,
    site: &SiteId,
    rules: &GcRules,
    report: &mut GcReport,
) -> Result<(), RunDirError> {
    if rules.mode == GcMode::Remove {
        let reaped = reap_dead(state, site)?;
        report.settled += reaped.settled;
        report.alive += reaped.alive;
    }
    let root = state.ensure(&["sites", site.as_str(), "runs"])?;
    let active = state.ensure(&["sites", site.as_str(), "active"])?;
    let runs = open(&root)?;
    // Released with the descriptor.
    rustix::fs::flock(&runs, FlockOperation::LockExclusive).map_err(list_failed)?;
    let mut settled = Vec::new();
    for name in names(runs.as_fd()).map_err(list_failed)? {
        let Ok(name) = String::from_utf8(name) else {
            continue;
        };
        if name.starts_with(REMOVING) {
            let bytes = disk_bytes(runs.as_fd(), name.as_bytes());
            let item = item(GcKind::Run, name.trim_start_matches(REMOVING), site, bytes);
            remove(
                runs.as_fd(),
                &name,
                item(GcReason::Interrupted),
                rules,
                report,
            );
            continue;
        }
        let Ok(run_id) = RunId::new(name) else {
            continue;
        };
        // Whoever has a marker is alive, or left for a call that may settle it.
        if active.join(run_id.as_str()).exists() {
            continue;
        }
        let path = root.join(run_id.as_str());
        if !RunRecord::read(&path).is_some_and(|record| record.is_terminal()) {
            // From before markers were made first: nothing but its lease speaks for it.
            match rules.mode {
                GcMode::DryRun => continue,
                GcMode::Remove => match settle_dead(state, site, &path, &run_id, None) {
                    Settled::Yes => report.settled += 1,
                    Settled::ByOther | Settled::NotNow => {
                        report.alive += 1;
                        continue;
                    }
                },
            }
        }
        settled.push(Settling {
            age: age(runs.as_fd(), &run_id),
            bytes: disk_bytes(runs.as_fd(), run_id.as_str().as_bytes()),
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
        remove_run(runs.as_fd(), &root, item, rules, report);
    }
    artifacts(state, site, rules, report);
    snapshots::collect(state, site, rules, report);
    seeds::collect(state, site, rules, report);
    Ok(())
}

fn item(kind: GcKind, id: &str, site: &SiteId, bytes: u64) -> impl Fn(GcReason) -> GcItem {
    let (id, site) = (id.to_owned(), site.clone());
    move |reason| GcItem {
        kind,
        id: id.clone(),
        site: Some(site.clone()),
        bytes,
        reason,
    }
}

fn list_failed(source: Errno) -> RunDirError {
    RunDirError::Io {
        what: "list the runs",
        source: source.into(),
    }
}

fn open(path: &Path) -> Result<OwnedFd, RunDirError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(list_failed)
}

/// Time since the record was written.
fn age(runs: BorrowedFd<'_>, run_id: &RunId) -> Duration {
    open_directory(runs, run_id.as_str().as_bytes())
        .map(|run| touched(run.as_fd(), "run.json"))
        .unwrap_or_default()
}

/// Time since something was written; none when that cannot be told, or lies in the future.
fn touched(directory: BorrowedFd<'_>, name: &str) -> Duration {
    let stat = look(directory, name.as_bytes()).ok().flatten();
    let modified = stat
        .and_then(|stat| u64::try_from(stat.st_mtime).ok())
        .map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds));
    modified
        .and_then(|time| SystemTime::now().duration_since(time).ok())
        .unwrap_or_default()
}

/// Takes a settled run off the list, under its lease, then removes it.
fn remove_run(
    runs: BorrowedFd<'_>,
    root: &Path,
    item: GcItem,
    rules: &GcRules,
    report: &mut GcReport,
) {
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

fn remove(
    parent: BorrowedFd<'_>,
    name: &str,
    item: GcItem,
    rules: &GcRules,
    report: &mut GcReport,
) {
    let removed = match rules.mode {
        GcMode::DryRun => Ok(()),
        GcMode::Remove => remove_tree_in(parent, name.as_bytes()).map(drop),
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

fn failed(item: &GcItem, error: Errno, report: &mut GcReport) {
    report.failed.push(GcFailure {
        kind: item.kind,
        id: item.id.clone(),
        message: format!("it cannot be removed whole: {error}; look for immutable files or mounts"),
    });
}

/// Unfinished bundles nobody can be writing, and bundles when the host said so.
fn artifacts(state: &StateDir, site: &SiteId, rules: &GcRules, report: &mut GcReport) {
    let store = Dir::open(state.path())
        .ok()
        .and_then(|root| Store::open(&root, site).ok());
    let Some(store) = store else {
        return;
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
        let bundles = names(store.directory().as_fd()).unwrap_or_default();
        let of_runs = |name: Vec<u8>| String::from_utf8(name).is_ok_and(|n| RunId::new(n).is_ok());
        let count = bundles
            .into_iter()
            .filter(|name| of_runs(name.clone()))
            .count();
        report.stays(GcKind::Artifact, count, GcStay::OnlyOnRequest);
        return;
    };
    // Both are UTC of one form, so they compare as text. What has no date is not judged. Ages
    // are whole seconds: at age 0 a bundle of this very second goes too.
    let before = rfc3339(seconds_ago(age), 999);
    for row in store.list().unwrap_or_default() {
        if row.created_at.is_empty() || row.created_at > before {
            continue;
        }
        let name = row.run_id.as_str();
        let bytes = disk_bytes(store.directory().as_fd(), name.as_bytes());
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

fn seconds_ago(age: Duration) -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .saturating_sub(age)
        .as_secs()
}

#[cfg(test)]
mod tests;
