//! Lists of runs, newest first.

use super::{FoundRun, RegistryError, entry_of, known, marked, runs};
use crate::run_record::RecordHead;
use crate::{RunRecord, StateDir};
use std::path::Path;
use wp_codebox_contracts::{RunId, RunRegistryEntry, RunStatus, RunView, SiteId};

/// Which runs a list contains, by their status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StatusFilter {
    /// All runs, whatever their status.
    #[default]
    Any,
    /// Only runs with this status.
    Only(RunStatus),
}

/// Which runs a list contains, and which page of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListFilter {
    /// Which runs the list contains, by their status.
    pub status: StatusFilter,
    /// Maximum number of runs on the page.
    pub limit: usize,
    /// Number of runs to skip before the page, starting with the newest.
    pub offset: usize,
}

/// Returns a page of the runs of these sites, newest first, without their results. The second value
/// is the number of runs on all pages.
pub fn list(
    state: &StateDir,
    sites: &[SiteId],
    filter: ListFilter,
) -> Result<(u64, Vec<(FoundRun, RunView)>), RegistryError> {
    list_selected(state, sites, filter, |_| true)
}

/// Returns the same page as [`list`] of only those runs that `selected` accepts. Other runs are
/// neither read nor counted.
pub fn list_selected(
    state: &StateDir,
    sites: &[SiteId],
    filter: ListFilter,
    selected: impl Fn(&RunId) -> bool,
) -> Result<(u64, Vec<(FoundRun, RunView)>), RegistryError> {
    let (total, rows) = page(state, sites, filter, selected)?;
    let rows = rows.into_iter().map(|(found, record, status)| {
        let view = record.into_view(&found.path, status);
        (found, view)
    });
    Ok((total, rows.collect()))
}

/// Returns the same page as [`list`], with each run as an entry in the format of the run registry.
pub fn list_entries(
    state: &StateDir,
    sites: &[SiteId],
    filter: ListFilter,
) -> Result<(u64, Vec<RunRegistryEntry>), RegistryError> {
    let (total, rows) = page(state, sites, filter, |_| true)?;
    let rows = rows.into_iter();
    let entries = rows.map(|(found, record, status)| entry_of(state, &found, record, status));
    Ok((total, entries.collect()))
}

type Row = (FoundRun, RunRecord, RunStatus);

/// Returns a page of the selected runs with the requested status, newest first.
fn page(
    state: &StateDir,
    sites: &[SiteId],
    filter: ListFilter,
    selected: impl Fn(&RunId) -> bool,
) -> Result<(u64, Vec<Row>), RegistryError> {
    let rows = newest_first(state, sites, filter.status, selected)?;
    let total = rows.len() as u64;
    let page = rows.into_iter().skip(filter.offset).take(filter.limit);
    Ok((total, page.filter_map(|found| row(state, found)).collect()))
}

fn row(state: &StateDir, found: FoundRun) -> Option<Row> {
    let (record, status) = known(state, &found)?;
    Some((found, record, status))
}

/// Returns up to `most` runs that mounted this host directory or a directory that contains it,
/// newest first, with their records.
pub fn runs_of_directory(
    state: &StateDir,
    sites: &[SiteId],
    directory: &Path,
    most: usize,
) -> Result<Vec<(FoundRun, RunRecord, RunStatus)>, RegistryError> {
    let mounted = |record: &RunRecord| {
        let mut mounts = record.work.directories.values();
        mounts.any(|mount| directory.starts_with(mount))
    };
    let rows = newest_first(state, sites, StatusFilter::Any, |_| true)?;
    let rows = rows.into_iter().filter_map(|found| row(state, found));
    Ok(rows
        .filter(|(_, record, _)| mounted(record))
        .take(most)
        .collect())
}

/// Returns the selected runs with the requested status, newest first. If the beginning of a run's record
/// says that the run has ended, neither the rest of the record nor any lock is examined.
fn newest_first(
    state: &StateDir,
    sites: &[SiteId],
    filter: StatusFilter,
    selected: impl Fn(&RunId) -> bool,
) -> Result<Vec<FoundRun>, RegistryError> {
    let mut rows = Vec::new();
    for site in sites {
        let found = match filter {
            // Every running run has a marker, so runs without one need not be read.
            StatusFilter::Only(RunStatus::Running) => marked(state, site)?,
            StatusFilter::Only(RunStatus::Ended) | StatusFilter::Any => runs(state, site)?,
        };
        for found in found.into_iter().filter(|found| selected(&found.run_id)) {
            let Some(head) = RecordHead::read(&found.path) else {
                continue;
            };
            let status = match head.status {
                RunStatus::Ended => RunStatus::Ended,
                RunStatus::Running => match known(state, &found) {
                    Some((_, status)) => status,
                    None => continue,
                },
            };
            let wanted = match filter {
                StatusFilter::Any => true,
                StatusFilter::Only(only) => only == status,
            };
            if wanted {
                rows.push((head.created_at, found));
            }
        }
    }
    rows.sort_by(|(a_time, a), (b_time, b)| {
        let newer = b_time.cmp(a_time);
        newer.then_with(|| a.run_id.cmp(&b.run_id))
    });
    Ok(rows.into_iter().map(|(_, found)| found).collect())
}
