//! Follows the runs that clients started until their end, and closes their credit reservations.
//!
//! The record of a run is written before the run starts. After a crash in between, the next server
//! finds out whether the run exists, and if it does not, makes sure that it never starts.

use crate::core::Core;
use crate::host::RunProgress;
use crate::pools::Pool;
use crate::problem::{ApiResult, Problem};
use crate::store::{RunRecord, RunState};
use std::sync::Arc;

/// Settles the runs whose start an earlier server did not confirm. No request is served yet.
pub(crate) async fn resume(core: &Arc<Core>) -> ApiResult<()> {
    core.blocking(Pool::Waits, |core| -> ApiResult<()> {
        for record in core.store.living_runs()? {
            if record.state == RunState::Starting {
                settle_start(core, record)?;
            }
        }
        Ok(())
    })
    .await?
}

/// Finds out whether a run was started whose start was not confirmed, and stores it. A run that was
/// not started cannot start later. Blocks.
pub(crate) fn settle_start(core: &Core, mut record: RunRecord) -> ApiResult<()> {
    match core.host.forestall_run(&record.id) {
        Ok(()) => {
            core.credits.release(&record, "the run did not start")?;
            record.state = RunState::Ended;
        }
        Err(_) => (record.state, record.started) = (RunState::Running, true),
    }
    Ok(core.store.update_run(&record)?)
}

/// Looks for ended runs again and again, until the task is aborted.
pub(crate) async fn watch(core: Arc<Core>) {
    loop {
        tokio::time::sleep(core.config.poll).await;
        let watched = core.blocking(Pool::Calls, check_all);
        if let Ok(Err(problem)) | Err(problem) = watched.await {
            report(&core, &problem);
        }
    }
}

/// Checks every run that has not ended once, and stores those that have ended. Blocks.
pub(crate) fn check_all(core: &Core) -> ApiResult<()> {
    for record in core.store.living_runs()? {
        let checked = match record.state {
            RunState::Starting => check_start(core, &record),
            RunState::Running => check_running(core, record),
            RunState::Ended => Ok(()),
        };
        if let Err(problem) = checked {
            report(core, &problem);
        }
    }
    Ok(())
}

/// Settles the start of a run if the request that started it has ended without doing so, for example
/// because the disk was full. The run would otherwise count as active until the next server.
fn check_start(core: &Core, record: &RunRecord) -> ApiResult<()> {
    if core.starting().contains(&record.id) {
        return Ok(());
    }
    // The request may have stored the result after this record was read.
    match core.store.run(record.id.as_str())? {
        Some(now) if now.state == RunState::Starting => settle_start(core, now),
        Some(_) | None => Ok(()),
    }
}

fn report(core: &Core, problem: &Problem) {
    core.metrics.lifecycle_failures.add();
    eprintln!("wp-codebox serve: runs: {}", problem.body());
}

fn check_running(core: &Core, record: RunRecord) -> ApiResult<()> {
    let usage = match core.host.run_progress(record.id.as_str())? {
        RunProgress::Running => return Ok(()),
        RunProgress::Ended(usage) => Some(usage),
        // Its directory was removed, so it is charged by wall clock.
        RunProgress::Unknown => None,
    };
    let ended = RunRecord {
        state: RunState::Ended,
        usage,
        ..record
    };
    // If this process dies after the first step, the second one is repeated; a closed reservation
    // stays as it is.
    core.credits.close(&ended)?;
    Ok(core.store.update_run(&ended)?)
}
