//! Removes seeds (`sites/<site>/sandboxes/<run_id>.json`, the data to create a sandbox again) whose
//! runs no longer exist. Clients find a sandbox by its run, so they cannot reach a seed without a
//! run.

use super::removal::{failed, item};
use super::report::{GcItem, GcKind, GcMode, GcReason, GcReport, GcRules};
use crate::disk::disk_bytes;
use crate::{SEEDS, StateDir};
use rustix::fs::AtFlags;
use rustix::io::Errno;
use std::collections::HashSet;
use wp_codebox_artifacts::Dir;
use wp_codebox_contracts::{RunId, SiteId};

/// Maximum number of seeds that one garbage collection removes; the next one removes more.
const MOST: usize = 10_000;

/// Removes unused seeds. The caller holds the lock on the site's directory `runs`, so no other
/// collection of this site is active.
pub(super) fn collect(state: &StateDir, site: &SiteId, rules: &GcRules, report: &mut GcReport) {
    let at = state.path().join("sites").join(site.as_str());
    // If one of these directories cannot be opened, it is unknown which seeds are in use, so none
    // is removed.
    let opened = || -> Result<_, Errno> {
        let seeds = Dir::open(&at.join(SEEDS))?;
        let (runs, active) = (Dir::open(&at.join("runs"))?, Dir::open(&at.join("active"))?);
        Ok((seeds.names()?, seeds, runs, active))
    };
    let (names, directory, runs, active) = match opened() {
        Ok(opened) => opened,
        // No sandbox of the site was created yet.
        Err(Errno::NOENT) => return,
        Err(error) => {
            let item = item(GcKind::Seed, SEEDS, site, 0)(GcReason::Orphaned);
            return failed(&item, error, report);
        }
    };
    // Runs whose directories this collection has removed, or would remove in a dry run.
    let going: HashSet<String> = report
        .removed
        .iter()
        .filter(|item| item.kind == GcKind::Run && item.site.as_ref() == Some(site))
        .map(|item| item.id.clone())
        .collect();
    let mut looked = 0;
    for name in names {
        let Ok(name) = String::from_utf8(name) else {
            continue;
        };
        let Some((run_id, reason)) = of(&name) else {
            continue;
        };
        // A run creates its marker first and its seed later, so a seed without marker and run
        // directory belongs to a removed run.
        let id = run_id.as_str();
        let gone = is_gone(&runs, id) && is_gone(&active, id);
        if !gone && !going.contains(id) {
            continue;
        }
        looked += 1;
        if looked > MOST {
            return;
        }
        let bytes = disk_bytes(&directory, name.as_bytes());
        let item = item(GcKind::Seed, id, site, bytes)(reason);
        taken(&directory, &name, item, rules, report);
    }
}

/// Returns, from the name of a seed file, the run that it belongs to and the reason for which it
/// may be removed. `None` if the name is not that of a finished or unfinished seed.
fn of(name: &str) -> Option<(RunId, GcReason)> {
    let whole = name
        .strip_suffix(".json")
        .map(|id| (id, GcReason::Orphaned));
    let half = || {
        Some((
            name.strip_prefix('.')?.strip_suffix(".new")?,
            GcReason::Interrupted,
        ))
    };
    let (id, reason) = whole.or_else(half)?;
    Some((RunId::new(id.to_owned()).ok()?, reason))
}

/// Returns whether the entry does not exist. On an error, the entry counts as existing.
fn is_gone(directory: &Dir, name: &str) -> bool {
    matches!(directory.stat(name.as_bytes()), Ok(None))
}

fn taken(directory: &Dir, name: &str, item: GcItem, rules: &GcRules, report: &mut GcReport) {
    let removed = match rules.mode {
        GcMode::DryRun => Ok(()),
        GcMode::Remove => rustix::fs::unlinkat(directory, name, AtFlags::empty()),
    };
    match removed {
        Ok(()) => report.removed.push(item),
        Err(error) => failed(&item, error, report),
    }
}
