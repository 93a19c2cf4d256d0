//! Settling of runs whose supervisor is dead: writes the final record from the available facts
//! and removes data that only a live run needs.
//!
//! The final record is written after the bundle was moved to its final place and before anything is
//! removed. After an interruption, the next call repeats the work, because the marker still exists.
//! If several processes settle the same run, only the one that has locked the run's file `lease`
//! does the work; the others leave the run unchanged.

use crate::document::DocumentError;
use crate::markers::{
    MarkerState, drop_unfinished, is_marker, is_removed, marker_state, take_lease,
};
use crate::recovery::{Recovered, RecoveryContent, recover};
use crate::run_dir::{RunDirError, io, remove_leftovers, remove_scratch};
use crate::run_record::{Ending, NewRun, RunRecord};
use crate::supervisor_death::explained;
use crate::{StateDir, event_log};
use rustix::fs::{Mode, OFlags};
use serde_json::Value;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use wp_codebox_artifacts::{Dir, Store};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, EventType, Outcome, RunId, RunSummary, SiteId, SummaryCode,
};

/// What one call of [`reap_dead`] found.
#[derive(Debug, Default)]
pub struct Reaped {
    /// Number of runs settled because their supervisor was dead.
    pub settled: usize,
    /// Number of runs that are alive or that another process is settling.
    pub alive: usize,
    /// Runs whose supervisor is dead and that stay as they are, because a document of them cannot
    /// be read.
    pub unreadable: Vec<(RunId, DocumentError)>,
}

/// Settles every run of a site whose supervisor is dead. A run that cannot be read stays unsettled,
/// with its marker, so a later call tries again.
pub fn reap_dead(state: &StateDir, site: &SiteId) -> Result<Reaped, RunDirError> {
    let active = state.ensure(&["sites", site.as_str(), "active"])?;
    let runs = state.ensure(&["sites", site.as_str(), "runs"])?;
    let mut reaped = Reaped::default();
    let failed = io("list the active runs");
    for entry in fs::read_dir(&active).map_err(&failed)? {
        let entry = entry.map_err(&failed)?;
        let marker = entry.path();
        let Some(run_id) = entry.file_name().to_str().and_then(|n| RunId::new(n).ok()) else {
            if !is_marker(&entry.file_name()) {
                drop_unfinished(&marker);
            }
            continue;
        };
        let path = runs.join(run_id.as_str());
        match marker_state(&marker) {
            MarkerState::Settled => {}
            MarkerState::Alive => reaped.alive += 1,
            MarkerState::Dead(mark) => {
                match settle_dead(state, site, &path, &run_id, Some(&mark)) {
                    Ok(Settled::Yes) => {
                        let _ = fs::remove_file(marker);
                        reaped.settled += 1;
                    }
                    Ok(Settled::ByOther) => {}
                    Ok(Settled::NotNow) => reaped.alive += 1,
                    Err(error) => reaped.unreadable.push((run_id, error)),
                }
            }
        }
    }
    Ok(reaped)
}

/// Result of an attempt to settle a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// This call settled the run. It wrote the final record, unless the supervisor had written the
    /// record before it died.
    Yes,
    /// Another process had already written the final record.
    ByOther,
    /// The run could not be settled now: another process holds the lock on its file `lease`, or the
    /// record cannot be written.
    NotNow,
}

/// Writes the final record of a dead run, and removes data that only a live run needs. `mark` is
/// the locked marker file, if the run has one.
///
/// # Errors
/// When a document of the run exists and cannot be read, or is missing although the run has files
/// that are created after it. The run then stays as it is, because what it left may be the only copy
/// of a change.
pub(crate) fn settle_dead(
    state: &StateDir,
    site: &SiteId,
    path: &Path,
    run_id: &RunId,
    mark: Option<&OwnedFd>,
) -> Result<Settled, DocumentError> {
    // If the supervisor died before it created the run directory, the run still gets a record, so
    // the directory is created here. A run without marker has a directory, or was
    // garbage-collected.
    let made = mark.is_some() && rustix::fs::mkdir(path, Mode::from_raw_mode(0o700)).is_ok();
    let Ok(_lease) = take_lease(path, OFlags::CREATE) else {
        return Ok(Settled::NotNow);
    };
    if mark.is_some_and(is_removed) {
        // Since the marker was read, another process has settled the run and perhaps also removed
        // its directory.
        if made {
            let _ = fs::remove_file(path.join("lease"));
            let _ = fs::remove_dir(path);
        }
        return Ok(Settled::ByOther);
    }
    let mut record =
        RunRecord::read(path)?.unwrap_or_else(|| RunRecord::begun(&NewRun::new(run_id.clone())));
    if !record.is_terminal() {
        let found = recover(state, site, path, run_id)?;
        record.salvaged = matches!(found, Recovered::RecoveryBundle { .. });
        let request = end_request(&record, path)?;
        let ending = ending(found);
        let ending = match is_supervisor_death(&ending) {
            true => explained(apply_end_request(ending, request), &record, path),
            false => ending,
        };
        record.end(ending);
        if record.write(path).is_err() {
            return Ok(Settled::NotNow);
        }
        // Removes a bundle that the run did not finish. A finished bundle is no longer in the
        // staging directory: it was moved to its final place before the record was written.
        let _ = remove_staging(state, site, run_id);
        remove_scratch(path);
    } else if record.outcome != Some(Outcome::Failed) {
        // The run has a final record but its scratch directory remains, so the supervisor died
        // during its cleanup. The scratch directory of a failed run may be retained on purpose.
        remove_scratch(path);
    }
    remove_leftovers(path);
    Ok(Settled::Yes)
}

/// Why the run was being ended when its supervisor died: a cancellation, the deadline, or neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndRequest {
    Nothing,
    Cancel,
    Deadline,
}

/// Determines from record and journal why the run was being ended.
fn end_request(record: &RunRecord, path: &Path) -> Result<EndRequest, DocumentError> {
    let events = event_log::last_events(path).map_err(event_log::unreadable)?;
    let last = events.iter().rev().find_map(|event| match event.kind {
        EventType::CommandFinished => event.data.get("end").and_then(Value::as_str),
        _ => None,
    });
    Ok(match last {
        _ if record.cancellation.is_some() => EndRequest::Cancel,
        Some("cancelled") => EndRequest::Cancel,
        Some("timed-out") => EndRequest::Deadline,
        Some(_) | None => EndRequest::Nothing,
    })
}

/// Returns whether the ending reports the death of the supervisor instead of a result of the run.
fn is_supervisor_death(ending: &Ending) -> bool {
    let error = ending.error.as_ref();
    error.is_some_and(|error| error.code == ErrorCode::RunnerUnavailable)
}

/// Changes a failure caused by the death of the supervisor: if the supervisor died while it handled
/// a cancellation or timeout, the run counts as cancelled or timed out. An ending whose outcome is
/// not `Failed` is returned unchanged.
fn apply_end_request(ending: Ending, request: EndRequest) -> Ending {
    if ending.outcome != Outcome::Failed {
        return ending;
    }
    let (outcome, code, sentence, what) = match request {
        EndRequest::Nothing => return ending,
        EndRequest::Cancel => (
            Outcome::Cancelled,
            ErrorCode::RunCancelled,
            SummaryCode::Cancelled,
            "the run was cancelled, and",
        ),
        EndRequest::Deadline => (
            Outcome::TimedOut,
            ErrorCode::RunTimeout,
            SummaryCode::TimedOut,
            "the deadline of the run passed, and",
        ),
    };
    let mut detail = RunSummary::new(sentence);
    detail.args.error = Some(code);
    let summary = format!("{what} {}", ending.summary);
    detail.args.reason = Some(ending.summary);
    Ending {
        outcome,
        error: Some(ErrorBody::new(code, summary.clone())),
        summary,
        summary_detail: Some(detail),
        bundle_id: ending.bundle_id,
    }
}

/// Returns the outcome, summary and error to record for a dead run, depending on `found`, the data
/// that the run left.
fn ending(found: Recovered) -> Ending {
    let failed = |code: SummaryCode, bundle_id: Option<String>| Ending {
        outcome: Outcome::Failed,
        summary: code.text().to_owned(),
        summary_detail: Some(RunSummary::new(code)),
        error: Some(ErrorBody::new(ErrorCode::RunnerUnavailable, code.text())),
        bundle_id,
    };
    match found {
        Recovered::Result(result) => {
            let result = *result;
            Ending {
                outcome: result.outcome,
                summary: result.summary,
                summary_detail: result.summary_detail,
                error: result.error,
                bundle_id: result.artifacts.map(|a| a.bundle_id),
            }
        }
        Recovered::Bundle {
            bundle_id,
            outcome,
            summary,
            summary_detail,
        } => Ending {
            outcome,
            summary: format!("{summary} (the supervisor died after it had written the bundle)"),
            summary_detail: summary_detail.map(|mut detail| {
                detail.args.supervisor_died = true;
                detail
            }),
            error: None,
            bundle_id: Some(bundle_id),
        },
        Recovered::RecoveryBundle {
            bundle_id,
            outcome,
            of,
        } => Ending {
            outcome,
            ..failed(
                match (of, outcome) {
                    (RecoveryContent::Commands, _) => SummaryCode::InterruptedHeld,
                    (RecoveryContent::Change, Outcome::Blocked) => SummaryCode::InterruptedSecret,
                    (RecoveryContent::Change, _) => SummaryCode::InterruptedChange,
                },
                Some(bundle_id),
            )
        },
        Recovered::Journal => failed(SummaryCode::InterruptedJournal, None),
        Recovered::Nothing => failed(SummaryCode::InterruptedEmpty, None),
    }
}

fn remove_staging(state: &StateDir, site: &SiteId, run_id: &RunId) -> Option<usize> {
    let root = Dir::open(state.path()).ok()?;
    Store::open(&root, site).ok()?.remove_staging(run_id).ok()
}

#[cfg(test)]
mod tests;
