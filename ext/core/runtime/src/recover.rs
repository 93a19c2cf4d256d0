//! Makes a bundle of a run whose end failed: publishes the recovery bundle that its supervisor had
//! written before the checks.
//!
//! Nothing else can be published. The scratch directory has the change too, but only the supervisor
//! knew the secrets of the run, which must not get into a bundle.

use crate::document::DocumentError;
use crate::markers::take_lease;
use crate::recovery::{Recovered, adopt, own_bundle, store};
use crate::registry::{FoundRun, RegistryError, status};
use crate::{RunRecord, StateDir, now_rfc3339};
use rustix::fs::OFlags;
use wp_codebox_contracts::{CodedError, RunId, RunStatus};

/// Reason why no bundle can be made of a run.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
pub enum RecoverError {
    /// The run cannot be found or read.
    #[error(transparent)]
    #[code(transparent)]
    Registry(#[from] RegistryError),
    /// The run is alive, or another process settles or removes it.
    #[error(
        "the run {run_id} has not ended, or another process works on it; wait until `wp-codebox runs get {run_id}` shows its end"
    )]
    #[code(Busy)]
    Alive {
        /// Id of the run.
        run_id: RunId,
    },
    /// The run left no recovery bundle.
    #[error(
        "the run {run_id} left no recovery bundle: it ended before its change was captured, or the disk was full; run again"
    )]
    #[code(ArtifactNotFound)]
    Nothing {
        /// Id of the run.
        run_id: RunId,
    },
    /// The record cannot be written.
    #[error(
        "the record of the run {run_id} cannot be written: {source}; check free space and permissions of the state directory, then run this again"
    )]
    #[code(StateDirInvalid)]
    Record {
        /// Id of the run.
        run_id: RunId,
        /// I/O error of the failed write.
        source: std::io::Error,
    },
}

/// Moves the recovery bundle of an ended run without bundle to the artifacts directory, and adds its
/// id to the run's record. Outcome and error of the run stay. Has no effect on a run with a bundle.
/// After an interruption, the next call finishes the work.
pub fn recover_run(state: &StateDir, run: &FoundRun) -> Result<(), RecoverError> {
    let alive = || RecoverError::Alive {
        run_id: run.run_id.clone(),
    };
    // Settles the run if its supervisor died, which also publishes its recovery bundle.
    if status(state, run)? == RunStatus::Running {
        return Err(alive());
    }
    let _lease = take_lease(&run.path, OFlags::CREATE).map_err(|_| alive())?;
    let unreadable = |source: DocumentError| RegistryError::Unreadable {
        run_id: run.run_id.clone(),
        source,
    };
    let record = RunRecord::read(&run.path).map_err(unreadable)?;
    let mut record = record.filter(RunRecord::is_terminal).ok_or_else(alive)?;
    if record.bundle_id.is_some() {
        return Ok(());
    }
    let (bundle_id, salvaged) = match published(state, run).map_err(unreadable)? {
        Some(Recovered::RecoveryBundle { bundle_id, .. }) => (bundle_id, true),
        // The run had written its bundle before its end failed.
        Some(Recovered::Bundle { bundle_id, .. }) => (bundle_id, false),
        _ => {
            return Err(RecoverError::Nothing {
                run_id: run.run_id.clone(),
            });
        }
    };
    record.bundle_id = Some(bundle_id);
    record.salvaged = salvaged;
    record.updated_at = now_rfc3339();
    record
        .write(&run.path)
        .map_err(|source| RecoverError::Record {
            run_id: run.run_id.clone(),
            source,
        })
}

fn published(state: &StateDir, run: &FoundRun) -> Result<Option<Recovered>, DocumentError> {
    let store = store(state, &run.site)?;
    match own_bundle(&store, &run.run_id)? {
        Some(found) => Ok(Some(found)),
        None if adopt(&store, &run.path, &run.run_id)? => own_bundle(&store, &run.run_id),
        None => Ok(None),
    }
}
