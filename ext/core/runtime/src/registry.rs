//! The run registry: queries about runs from processes other than the caller that started a run.
//! Every query first settles dead runs (writes their final records), so the status `running` is
//! reported only for a run whose supervisor holds its locks.

mod list;

pub use list::{
    DirectoryRun, ListFilter, RunPage, StatusFilter, list, list_entries, list_of_user,
    list_selected, runs_of_directory,
};

use crate::document::{DocumentError, directory_exists, parse, read_document};
use crate::event_log::{self, PageLimits};
use crate::markers::{MarkerState, marker_state};
use crate::reap::{Settled, settle_dead};
use crate::recovery::result;
use crate::run_dir::{RESULT_FILE, io};
use crate::{RecordedWork, RunDirError, RunRecord, StateDir, now_rfc3339, reap_dead};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wp_codebox_contracts::{
    CodedError, Cost, ErrorBody, EventType, RecordedCancellation, RunEvents, RunId,
    RunObservations, RunProgress, RunRegistryEntry, RunStatus, RunView, ScratchState, SiteId,
    schema_id,
};

/// Maximum time that a query waits for another process to finish settling a run.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Number of events at the beginning of a journal that are searched for the first `Observed`, which
/// shows that the guest was ready.
const FIRST_EVENTS: usize = 100;
const FIRST_BYTES: u64 = 256 * 1024;

/// Reason why a run cannot be found or read.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(detail = Self::detail)]
pub enum RegistryError {
    /// The caller gave no run id.
    #[error("the request names no run; give the id of a run or a prefix of it")]
    #[code(InputInvalid)]
    Missing,
    /// No run has this id, or an id that starts with it.
    #[error("no run matches {reference:?}; list the runs to see their ids")]
    #[code(RunNotFound)]
    NotFound {
        /// The id or prefix that the caller gave.
        reference: String,
    },
    /// Several runs have an id that starts with the given text.
    #[error(
        "the id prefix {reference:?} matches {count} runs; give more characters of the id you mean: {examples}"
    )]
    #[code(RunAmbiguous)]
    Ambiguous {
        /// The id or prefix that the caller gave.
        reference: String,
        /// Number of runs whose id starts with the given text.
        count: usize,
        /// Ids of up to five runs whose id starts with the given text.
        examples: String,
    },
    /// The state directory cannot be used.
    #[error(transparent)]
    #[code(transparent)]
    RunDir(#[from] RunDirError),
    /// A document of the run exists and cannot be read.
    #[error("the run {run_id} cannot be read and stays as it is: {source}")]
    #[code(source)]
    Unreadable {
        /// Id of the run.
        run_id: RunId,
        /// Which document cannot be read, and why.
        source: DocumentError,
    },
}

impl RegistryError {
    fn detail(&self, body: ErrorBody) -> ErrorBody {
        match self {
            Self::Unreadable { run_id, .. } => body.with("run_id", run_id.as_str()),
            _ => body,
        }
    }
}

/// A run found in the state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundRun {
    /// Site of the run.
    pub site: SiteId,
    /// Id of the run.
    pub run_id: RunId,
    /// Path of the run directory.
    pub path: PathBuf,
}

impl FoundRun {
    /// Returns the redacted error in the run's record, if there is one.
    pub fn recorded_error(&self) -> Result<Option<ErrorBody>, RegistryError> {
        Ok(self.record()?.and_then(|record| record.error))
    }

    /// Returns directories, agent and checks of the run from its record; `None` if the run has none.
    pub fn work(&self) -> Result<Option<RecordedWork>, RegistryError> {
        Ok(self.record()?.map(|record| record.work))
    }

    fn record(&self) -> Result<Option<RunRecord>, RegistryError> {
        RunRecord::read(&self.path).map_err(|source| self.unreadable(source))
    }

    fn unreadable(&self, source: DocumentError) -> RegistryError {
        RegistryError::Unreadable {
            run_id: self.run_id.clone(),
            source,
        }
    }
}

/// Returns a run as an entry in the format of the run registry.
pub fn entry(state: &StateDir, run: &FoundRun) -> Result<RunRegistryEntry, RegistryError> {
    let (record, status) = known_or_gone(state, run)?;
    entry_of(state, run, record, status)
}

/// Returns who cancelled a run, when and why, if that was recorded.
pub fn cancellation(
    state: &StateDir,
    run: &FoundRun,
) -> Result<RecordedCancellation, RegistryError> {
    known_or_gone(state, run).map(|(record, _)| asked(&record))
}

fn asked(record: &RunRecord) -> RecordedCancellation {
    match &record.cancellation {
        None => RecordedCancellation::None,
        Some(note) => RecordedCancellation::Requested(note.clone()),
    }
}

fn entry_of(
    state: &StateDir,
    found: &FoundRun,
    record: RunRecord,
    status: RunStatus,
) -> Result<RunRegistryEntry, RegistryError> {
    let unreadable = |source| found.unreadable(source);
    let seen = RunObservations {
        progress: match status {
            RunStatus::Running => progress(found, &record).map_err(unreadable)?,
            // An ended run makes no progress, so this value has no meaning; callers read the run's
            // outcome instead.
            RunStatus::Ended => RunProgress::Collecting,
        },
        scratch: scratch(state, found).map_err(unreadable)?,
        cancellation: asked(&record),
        at: now_rfc3339(),
    };
    let view = record.into_view(&found.path, status).map_err(unreadable)?;
    Ok(RunRegistryEntry::of(&view, &seen))
}

/// Returns whether the scratch directory of a run exists, and whether the run is settled. A process
/// that settles a run removes the scratch directory first and the marker (a file in `active/`)
/// last. The marker is therefore read before the directory: if the directory were read first and
/// both were removed before the marker is read, a removed directory would be reported as retained.
fn scratch(state: &StateDir, found: &FoundRun) -> Result<ScratchState, DocumentError> {
    let marked = marker_state(&marker_of(state, found));
    let exists = directory_exists(&found.path.join("scratch"));
    let exists = exists.map_err(|source| DocumentError::Unreadable {
        name: "scratch",
        source,
    })?;
    Ok(match (exists, marked) {
        (false, _) => ScratchState::Gone,
        (true, MarkerState::Alive | MarkerState::Dead(_)) => ScratchState::Unsettled,
        (true, MarkerState::Settled) => ScratchState::Present,
    })
}

/// Returns the progress of a live run from its journal. Progress never goes back, so the last
/// events usually suffice. The first events are read too, because they contain the first
/// `Observed`, which shows that the guest was ready, and long output may follow it.
fn progress(found: &FoundRun, record: &RunRecord) -> Result<RunProgress, DocumentError> {
    let types = |events: Vec<wp_codebox_contracts::LifecycleEvent>| -> Vec<EventType> {
        events.iter().map(|event| event.kind).collect()
    };
    let first = PageLimits {
        count: FIRST_EVENTS,
        bytes: FIRST_BYTES,
    };
    let first = event_log::read_events(&found.path, 0, first).map_err(event_log::unreadable)?;
    let last = event_log::last_events(&found.path).map_err(event_log::unreadable)?;
    let seen = types(first.events);
    let start = match record.work.is_placed {
        true => RunProgress::Queued,
        false => RunProgress::default(),
    };
    Ok(RunProgress::of(start, seen.into_iter().chain(types(last))))
}

/// Returns the run of these sites whose id is `reference`, or the only run whose id starts with
/// `reference`. The prefix `run_`, which all ids have, may be omitted.
pub fn find(
    state: &StateDir,
    sites: &[SiteId],
    reference: &str,
) -> Result<FoundRun, RegistryError> {
    let wanted = reference.trim();
    if wanted.is_empty() {
        return Err(RegistryError::Missing);
    }
    let mut matching = Vec::new();
    if let Ok(run_id) = RunId::new(wanted) {
        for site in sites {
            let path = site_path(state, site).join("runs").join(run_id.as_str());
            if directory_exists(&path).map_err(io("open the run"))? {
                reap_dead(state, site)?;
                return Ok(FoundRun {
                    site: site.clone(),
                    run_id,
                    path,
                });
            }
        }
    }
    for site in sites {
        matching.extend(runs(state, site)?.into_iter().filter(|run| {
            let id = run.run_id.as_str();
            id.starts_with(wanted) || id.trim_start_matches("run_").starts_with(wanted)
        }));
    }
    matching.sort_by(|a, b| a.run_id.cmp(&b.run_id));
    match matching.as_slice() {
        [] => Err(RegistryError::NotFound {
            reference: wanted.to_owned(),
        }),
        [run] => Ok(run.clone()),
        several => Err(RegistryError::Ambiguous {
            reference: wanted.to_owned(),
            count: several.len(),
            examples: several
                .iter()
                .take(5)
                .map(|run| run.run_id.as_str())
                .collect::<Vec<_>>()
                .join(", "),
        }),
    }
}

/// Returns the part of a run's record that callers may see, with the run's result if the run has
/// ended.
pub fn view(state: &StateDir, run: &FoundRun) -> Result<RunView, RegistryError> {
    let (record, status) = known_or_gone(state, run)?;
    let unreadable = |source| run.unreadable(source);
    let mut view = record.into_view(&run.path, status).map_err(unreadable)?;
    if status == RunStatus::Ended {
        view.result = result(&run.path).map_err(unreadable)?;
    }
    Ok(view)
}

/// Returns the CPU time and other costs in a run's result; `None` if the result does not exist or
/// has more than `most` bytes.
pub fn cost(run: &FoundRun, most: u64) -> Result<Option<Cost>, RegistryError> {
    #[derive(serde::Deserialize)]
    struct Costing {
        cost: Cost,
    }
    let costing = match read_document(&run.path, RESULT_FILE, most) {
        Ok(None) | Err(DocumentError::TooLarge { .. }) => return Ok(None),
        Ok(Some(bytes)) => parse(RESULT_FILE, &bytes),
        Err(error) => Err(error),
    };
    let costing: Costing = costing.map_err(|source| run.unreadable(source))?;
    Ok(Some(costing.cost))
}

/// Returns whether a run is running or has ended.
pub fn status(state: &StateDir, run: &FoundRun) -> Result<RunStatus, RegistryError> {
    known_or_gone(state, run).map(|(_, status)| status)
}

/// Returns events of a run's journal that follow a given sequence number, and the run's status.
pub fn events(
    state: &StateDir,
    run: &FoundRun,
    after: u64,
    limits: PageLimits,
) -> Result<RunEvents, RegistryError> {
    // The status is read first: if it says that the run has ended, the journal that is read
    // afterwards is complete.
    let status = status(state, run)?;
    let page = event_log::read_events(&run.path, after, limits)
        .map_err(|source| run.unreadable(event_log::unreadable(source)))?;
    Ok(RunEvents {
        schema: schema_id::RUN_EVENTS.to_owned(),
        run_id: run.run_id.clone(),
        events: page.events,
        cursor: page.cursor,
        more: page.more,
        status,
    })
}

/// Returns every run of a site that has a directory, after settling dead runs. Does not create
/// the directories of a site without runs.
fn runs(state: &StateDir, site: &SiteId) -> Result<Vec<FoundRun>, RegistryError> {
    named_in(state, site, "runs", "list the runs")
}

/// Settles the dead runs of a site, then returns the runs that still have a file in its `active/`.
fn marked(state: &StateDir, site: &SiteId) -> Result<Vec<FoundRun>, RegistryError> {
    let found = named_in(state, site, "active", "list the active runs")?;
    let mut marked = Vec::new();
    for run in found {
        if directory_exists(&run.path).map_err(io("open the run"))? {
            marked.push(run);
        }
    }
    Ok(marked)
}

/// Returns the runs whose ids are names in one of the site's directories.
fn named_in(
    state: &StateDir,
    site: &SiteId,
    directory: &str,
    what: &'static str,
) -> Result<Vec<FoundRun>, RegistryError> {
    let path = site_path(state, site);
    let root = path.join("runs");
    if !directory_exists(&root).map_err(io(what))? {
        return Ok(Vec::new());
    }
    reap_dead(state, site)?;
    let mut found = Vec::new();
    for entry in fs::read_dir(path.join(directory)).map_err(io(what))? {
        let name = entry.map_err(io(what))?.file_name();
        if let Some(run_id) = name.to_str().and_then(|name| RunId::new(name).ok()) {
            found.push(FoundRun {
                site: site.clone(),
                path: root.join(run_id.as_str()),
                run_id,
            });
        }
    }
    Ok(found)
}

fn site_path(state: &StateDir, site: &SiteId) -> PathBuf {
    state.path().join("sites").join(site.as_str())
}

fn marker_of(state: &StateDir, run: &FoundRun) -> PathBuf {
    let active = site_path(state, &run.site).join("active");
    active.join(run.run_id.as_str())
}

fn known_or_gone(
    state: &StateDir,
    run: &FoundRun,
) -> Result<(RunRecord, RunStatus), RegistryError> {
    known(state, run)?.ok_or_else(|| RegistryError::NotFound {
        reference: run.run_id.to_string(),
    })
}

/// Settles a run if it is dead, and returns its record and status. Returns `None` if the run was
/// removed or has no record yet.
fn known(
    state: &StateDir,
    run: &FoundRun,
) -> Result<Option<(RunRecord, RunStatus)>, RegistryError> {
    settled(state, run).map_err(|source| run.unreadable(source))
}

fn settled(
    state: &StateDir,
    run: &FoundRun,
) -> Result<Option<(RunRecord, RunStatus)>, DocumentError> {
    let marker = marker_of(state, run);
    let settle = |mark: &OwnedFd| -> Result<Settled, DocumentError> {
        let settled = settle_dead(state, &run.site, &run.path, &run.run_id, Some(mark))?;
        if settled == Settled::Yes {
            let _ = fs::remove_file(&marker);
        }
        Ok(settled)
    };
    let deadline = std::time::Instant::now() + SETTLE_TIMEOUT;
    loop {
        // The marker is checked before the record is read: if the run ends in between, the record
        // already is the final one.
        let marked = marker_state(&marker);
        let Some(record) = RunRecord::read(&run.path)? else {
            return Ok(None);
        };
        if record.is_terminal() {
            // If the marker is left, the supervisor died after it wrote the final record. Settling
            // the run again removes the remaining files. If another process holds the lock on
            // `lease`, this process tries again, at most until `deadline`.
            if let MarkerState::Dead(mark) = &marked
                && settle(mark)? == Settled::NotNow
                && std::time::Instant::now() < deadline
            {
                std::thread::sleep(LOOK_AGAIN);
                continue;
            }
            return Ok(Some((record, RunStatus::Ended)));
        }
        let settled = match marked {
            MarkerState::Alive => return Ok(Some((record, RunStatus::Running))),
            MarkerState::Dead(mark) => settle(&mark)?,
            // No marker exists. An old version of this program, which created no markers, may have
            // started the run.
            MarkerState::Settled => settle_dead(state, &run.site, &run.path, &run.run_id, None)?,
        };
        if settled == Settled::NotNow {
            if std::time::Instant::now() > deadline {
                return Ok(Some((record, unsettled(&run.path))));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

/// Returns the status of a run that could not be settled in time.
fn unsettled(path: &Path) -> RunStatus {
    match crate::markers::take_lease(path, rustix::fs::OFlags::empty()) {
        // This process could lock the run's file `lease`, so the supervisor is dead. Only its final
        // record could not be written.
        Ok(_) => RunStatus::Ended,
        Err(_) => RunStatus::Running,
    }
}

#[cfg(test)]
mod tests;
