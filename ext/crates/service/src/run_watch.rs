//! Follows the runs that clients started until their end, and closes their credit reservations.
//!
//! The record of a run is written before the run starts. After a crash in between, the next server
//! finds out whether the run exists, and if it does not, makes sure that it never starts.

use crate::access::settle_start;
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

/// Looks for ended runs again and again, until the task is aborted.
pub(crate) async fn watch(core: Arc<Core>) {
    loop {
        tokio::time::sleep(core.config.poll).await;
        let watched = core.blocking(Pool::Calls, |core| -> ApiResult<()> {
            for record in core.store.living_runs()? {
                // A run that is starting belongs to the request that starts it.
                if record.state == RunState::Running
                    && let Err(problem) = watch_one(core, record)
                {
                    report(core, &problem);
                }
            }
            Ok(())
        });
        if let Ok(Err(problem)) | Err(problem) = watched.await {
            report(&core, &problem);
        }
    }
}

fn report(core: &Core, problem: &Problem) {
    core.metrics.lifecycle_failures.add();
    eprintln!("wp-codebox serve: runs: {}", problem.body());
}

fn watch_one(core: &Core, record: RunRecord) -> ApiResult<()> {
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
