//! Settling runs whose supervisor is gone: the record says what is known of them, and what
//! only a living run needs is removed.
//!
//! The terminal record comes before anything is removed and after the bundle has its place:
//! whatever interrupts this, it is done again as long as the marker is there. Of several
//! that would settle one run the holder of its lease does; the others see it as they found it.

use crate::markers::{Life, drop_unfinished, is_marker, is_removed, life, take_lease};
use crate::recovery::{Recovered, Salvaged, recover};
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

/// What reaping did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Runs settled because their supervisor was gone.
    pub settled: usize,
    /// Runs alive, or being settled by somebody else.
    pub alive: usize,
}

/// Settles every run of a site whose supervisor is gone.
pub fn reap_dead(state: &StateDir, site: &SiteId) -> Result<Reaped, RunDirError> {
    let active = state.ensure(&["sites", site.as_str(), "active"])?;
    let runs = state.ensure(&["sites", site.as_str(), "runs"])?;
    let mut reaped = Reaped::default();
    for entry in fs::read_dir(&active)
        .map_err(io("list the active runs"))?
        .flatten()
    {
        let marker = entry.path();
        let Some(run_id) = entry.file_name().to_str().and_then(|n| RunId::new(n).ok()) else {
            if !is_marker(&entry.file_name()) {
                drop_unfinished(&marker);
            }
            continue;
        };
        let path = runs.join(run_id.as_str());
        match life(&marker) {
            Life::Settled => {}
            Life::Alive => reaped.alive += 1,
            Life::Dead(mark) => match settle_dead(state, site, &path, &run_id, Some(&mark)) {
                Settled::Yes => {
                    let _ = fs::remove_file(marker);
                    reaped.settled += 1;
                }
                Settled::ByOther => {}
                Settled::NotNow => reaped.alive += 1,
            },
        }
    }
    Ok(reaped)
}

/// Whether a run is settled now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// By this call.
    Yes,
    /// Somebody else was faster.
    ByOther,
    /// Somebody holds its lease, or its record cannot be written.
    NotNow,
}

/// Completes the record of a dead run and removes what only a living one needs. `mark`: its
/// marker, when it has one.
pub(crate) fn settle_dead(
    state: &StateDir,
    site: &SiteId,
    path: &Path,
    run_id: &RunId,
    mark: Option<&OwnedFd>,
) -> Settled {
    // A supervisor that died before it had a directory gets its record all the same. A run
    // without a marker has a directory, or was collected.
    let made = mark.is_some() && rustix::fs::mkdir(path, Mode::from_raw_mode(0o700)).is_ok();
    let Ok(_lease) = take_lease(path, OFlags::CREATE) else {
        return Settled::NotNow;
    };
    if mark.is_some_and(is_removed) {
        // Settled, perhaps also collected, since the marker was seen.
        if made {
            let _ = fs::remove_file(path.join("lease"));
            let _ = fs::remove_dir(path);
        }
        return Settled::ByOther;
    }
    let mut record =
        RunRecord::read(path).unwrap_or_else(|| RunRecord::begun(&NewRun::new(run_id.clone())));
    if !record.is_terminal() {
        let found = recover(state, site, path, run_id);
        record.salvaged = matches!(found, Recovered::RecoveryBundle { .. });
        let told = told_to_end(&record, path);
        let ending = ending(found);
        let ending = match died(&ending) {
            true => explained(as_told(ending, told), &record, path),
            false => ending,
        };
        record.end(ending);
        if record.write(path).is_err() {
            return Settled::NotNow;
        }
        // What it was writing; a terminal record comes only after the bundle has its place.
        let _ = remove_staging(state, site, run_id);
        remove_scratch(path);
    } else if record.outcome != Some(Outcome::Failed) {
        // It died while it tidied up. After a failure, scratch may be kept on purpose.
        remove_scratch(path);
    }
    remove_leftovers(path);
    Settled::Yes
}

/// Whether a dead run was on its way to an end that it had been told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    Cancel,
    Deadline,
}

/// Its record or its journal says so.
fn told_to_end(record: &RunRecord, path: &Path) -> Told {
    let events = event_log::last_events(path).unwrap_or_default();
    let last = events.iter().rev().find_map(|event| match event.kind {
        EventType::CommandFinished => event.data.get("end").and_then(Value::as_str),
        _ => None,
    });
    match last {
        _ if record.cancellation.is_some() => Told::Cancel,
        Some("cancelled") => Told::Cancel,
        Some("timed-out") => Told::Deadline,
        Some(_) | None => Told::Nothing,
    }
}

/// Whether it says that the supervisor died, and not what the run came to before.
fn died(ending: &Ending) -> bool {
    let error = ending.error.as_ref();
    error.is_some_and(|error| error.code == ErrorCode::RunnerUnavailable)
}

/// A supervisor that died while it wound up what it was told to end: the run has failed to no
/// greater part than that. What it came to itself stays.
fn as_told(ending: Ending, told: Told) -> Ending {
    if ending.outcome != Outcome::Failed {
        return ending;
    }
    let (outcome, code, sentence, what) = match told {
        Told::Nothing => return ending,
        Told::Cancel => (
            Outcome::Cancelled,
            ErrorCode::RunCancelled,
            SummaryCode::Cancelled,
            "the run was cancelled, and",
        ),
        Told::Deadline => (
            Outcome::TimedOut,
            ErrorCode::RunTimeout,
            SummaryCode::TimedOut,
            "the time of the run was up, and",
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

/// What the record says.
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
                    (Salvaged::Deeds, _) => SummaryCode::InterruptedHeld,
                    (Salvaged::Change, Outcome::Blocked) => SummaryCode::InterruptedSecret,
                    (Salvaged::Change, _) => SummaryCode::InterruptedChange,
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
