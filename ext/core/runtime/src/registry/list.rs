//! Lists of runs, newest first.

use super::{FoundRun, RegistryError, entry_of, known, marked, runs};
use crate::run_record::RecordHead;
use crate::{RunRecord, StateDir};
use std::path::Path;
use wp_codebox_contracts::{
    CodedError, ErrorBody, RunId, RunRegistryEntry, RunStatus, RunView, SiteId,
};

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

/// A page of runs, newest first.
#[derive(Debug)]
pub struct RunPage<T> {
    /// Number of readable runs on all pages.
    pub total: u64,
    /// The readable runs of this page.
    pub rows: Vec<T>,
    /// Why runs are missing from the list: one error per run that cannot be read, with its `run_id`.
    /// It has the runs whose status or time are unknown, whatever the page, and those of this page.
    pub unreadable: Vec<ErrorBody>,
}

impl<T> RunPage<T> {
    /// Converts each row. A row that cannot be read becomes an entry of `unreadable`.
    fn map<R>(self, convert: impl Fn(T) -> Result<R, RegistryError>) -> RunPage<R> {
        let mut page = RunPage {
            total: self.total,
            rows: Vec::new(),
            unreadable: self.unreadable,
        };
        for row in self.rows {
            match convert(row) {
                Ok(row) => page.rows.push(row),
                Err(error) => page.unreadable.push(error.body()),
            }
        }
        page
    }
}

/// Returns a page of the runs of these sites, newest first, without their results.
pub fn list(
    state: &StateDir,
    sites: &[SiteId],
    filter: ListFilter,
) -> Result<RunPage<(FoundRun, RunView)>, RegistryError> {
    list_selected(state, sites, filter, |_| true)
}

/// Returns the same page as [`list`] of only those runs that `selected` accepts. Other runs are
/// neither read nor counted.
pub fn list_selected(
    state: &StateDir,
    sites: &[SiteId],
    filter: ListFilter,
    selected: impl Fn(&RunId) -> bool,
) -> Result<RunPage<(FoundRun, RunView)>, RegistryError> {
    Ok(views(page(state, sites, filter, selected)?))
}

/// Returns the same page as [`list_selected`] of only those runs that the WordPress user with this id
/// requested. Reads the record of each selected run once, whatever the page. An unreadable run may be
/// one of this user, so `unreadable` has those of all users.
pub fn list_of_user(
    state: &StateDir,
    sites: &[SiteId],
    filter: ListFilter,
    user: u64,
    selected: impl Fn(&RunId) -> bool,
) -> Result<RunPage<(FoundRun, RunView)>, RegistryError> {
    let (all, mut unreadable) = newest_first(state, sites, filter.status, selected)?;
    let (mut total, mut rows) = (0_usize, Vec::new());
    for found in all {
        let row = match row(state, found) {
            Ok(row) => row,
            Err(error) => {
                unreadable.push(error.body());
                continue;
            }
        };
        let Some(row) = row.filter(|(_, record, _)| is_requester(record, user)) else {
            continue;
        };
        if total >= filter.offset && rows.len() < filter.limit {
            rows.push(row);
        }
        total += 1;
    }
    Ok(views(RunPage {
        total: total as u64,
        rows,
        unreadable,
    }))
}

/// Returns whether the record names the WordPress user with this id as requester of the run.
fn is_requester(record: &RunRecord, user: u64) -> bool {
    record
        .facts
        .provenance
        .get("requester")
        .is_some_and(|requester| requester["kind"] == "user" && requester["id"] == user)
}

fn views(page: RunPage<DirectoryRun>) -> RunPage<(FoundRun, RunView)> {
    page.map(|(found, record, status)| {
        let view = record.into_view(&found.path, status);
        let view = view.map_err(|source| found.unreadable(source))?;
        Ok((found, view))
    })
}

/// Returns the same page as [`list`], with each run as an entry in the format of the run registry.
pub fn list_entries(
    state: &StateDir,
    sites: &[SiteId],
    filter: ListFilter,
) -> Result<RunPage<RunRegistryEntry>, RegistryError> {
    let page = page(state, sites, filter, |_| true)?;
    Ok(page.map(|(found, record, status)| entry_of(state, &found, record, status)))
}

/// A run that mounted a directory: its place, record and status.
pub type DirectoryRun = (FoundRun, RunRecord, RunStatus);

/// Returns a page of the selected runs with the requested status, newest first.
fn page(
    state: &StateDir,
    sites: &[SiteId],
    filter: ListFilter,
    selected: impl Fn(&RunId) -> bool,
) -> Result<RunPage<DirectoryRun>, RegistryError> {
    let (all, mut unreadable) = newest_first(state, sites, filter.status, selected)?;
    let total = all.len() as u64;
    let mut rows = Vec::new();
    for found in all.into_iter().skip(filter.offset).take(filter.limit) {
        match row(state, found) {
            Ok(row) => rows.extend(row),
            Err(error) => unreadable.push(error.body()),
        }
    }
    Ok(RunPage {
        total,
        rows,
        unreadable,
    })
}

fn row(state: &StateDir, found: FoundRun) -> Result<Option<DirectoryRun>, RegistryError> {
    let known = known(state, &found)?;
    Ok(known.map(|(record, status)| (found, record, status)))
}

/// Returns up to `most` runs that mounted this host directory or a directory that contains it,
/// newest first, with their records. An unreadable run may be one of them, so `unreadable` has
/// those of all directories.
pub fn runs_of_directory(
    state: &StateDir,
    sites: &[SiteId],
    directory: &Path,
    most: usize,
) -> Result<RunPage<DirectoryRun>, RegistryError> {
    let mounted = |record: &RunRecord| {
        let mut mounts = record.work.directories.values();
        mounts.any(|mount| directory.starts_with(mount))
    };
    let (all, mut unreadable) = newest_first(state, sites, StatusFilter::Any, |_| true)?;
    let mut rows = Vec::new();
    for found in all {
        if rows.len() == most {
            break;
        }
        match row(state, found) {
            Ok(row) => rows.extend(row.filter(|(_, record, _)| mounted(record))),
            Err(error) => unreadable.push(error.body()),
        }
    }
    Ok(RunPage {
        total: rows.len() as u64,
        rows,
        unreadable,
    })
}

/// Returns the selected runs with the requested status, newest first, and an error for each run whose
/// status or time cannot be read. If the beginning of a run's record says that the run has ended,
/// neither the rest of the record nor any lock is examined.
fn newest_first(
    state: &StateDir,
    sites: &[SiteId],
    filter: StatusFilter,
    selected: impl Fn(&RunId) -> bool,
) -> Result<(Vec<FoundRun>, Vec<ErrorBody>), RegistryError> {
    let mut rows = Vec::new();
    let mut unreadable = Vec::new();
    for site in sites {
        let found = match filter {
            // Every running run has a marker, so runs without one need not be read.
            StatusFilter::Only(RunStatus::Running) => marked(state, site)?,
            StatusFilter::Only(RunStatus::Ended) | StatusFilter::Any => runs(state, site)?,
        };
        for found in found.into_iter().filter(|found| selected(&found.run_id)) {
            let (created_at, status) = match summary(state, &found) {
                Ok(None) => continue,
                Ok(Some(summary)) => summary,
                Err(error) => {
                    unreadable.push(error.body());
                    continue;
                }
            };
            let wanted = match filter {
                StatusFilter::Any => true,
                StatusFilter::Only(only) => only == status,
            };
            if wanted {
                rows.push((created_at, found));
            }
        }
    }
    rows.sort_by(|(a_time, a), (b_time, b)| {
        let newer = b_time.cmp(a_time);
        newer.then_with(|| a.run_id.cmp(&b.run_id))
    });
    Ok((
        rows.into_iter().map(|(_, found)| found).collect(),
        unreadable,
    ))
}

/// Returns time and status of a run; `None` if it was removed or has no record yet.
fn summary(
    state: &StateDir,
    found: &FoundRun,
) -> Result<Option<(String, RunStatus)>, RegistryError> {
    let head = RecordHead::read(&found.path).map_err(|source| found.unreadable(source))?;
    Ok(match head {
        Some(head) if head.status == RunStatus::Running => {
            known(state, found)?.map(|(record, status)| (record.created_at, status))
        }
        head => head.map(|head| (head.created_at, head.status)),
    })
}
