//! Data left by a dead run: its result, its own bundle, or its recovery bundle.

use crate::run_dir::{RECOVERY_BUNDLE, RESULT_FILE};
use crate::{StateDir, event_log, held};
use rustix::fs::RenameFlags;
use std::fs;
use std::io::Read;
use std::path::Path;
use wp_codebox_artifacts::{Dir, Store, StoredBundle};
use wp_codebox_contracts::{Outcome, RunId, RunResult, RunSummary, SiteId};

/// Maximum number of bytes that are read from a run's `result.json`.
const LARGEST_RESULT: u64 = 256 * 1024 * 1024;

/// The most complete data that a dead run left. If it left several kinds of data, the first of
/// these variants that applies is used.
#[derive(Debug)]
pub(crate) enum Recovered {
    /// The run had written its result.
    Result(Box<RunResult>),
    /// The run had written its bundle.
    Bundle {
        bundle_id: String,
        outcome: Outcome,
        summary: String,
        summary_detail: Option<RunSummary>,
    },
    /// The run left a recovery bundle with the guest's changes, or the files of a held sandbox from
    /// which a recovery bundle was written. The bundle is now in the artifacts directory.
    RecoveryBundle {
        bundle_id: String,
        outcome: Outcome,
        of: RecoveryContent,
    },
    /// The run left only its journal, which has at least one event.
    Journal,
    /// The run left no events, so nothing was executed.
    Nothing,
}

/// What a recovery bundle contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecoveryContent {
    /// The guest's changes and the executed commands.
    Change,
    /// Only the executed commands, without changes.
    Commands,
}

/// Finds out what a dead run left. If that is a recovery bundle, moves it to the artifacts
/// directory; if it is the files of a held sandbox, writes a recovery bundle from them first.
pub(crate) fn recover(state: &StateDir, site: &SiteId, path: &Path, run_id: &RunId) -> Recovered {
    if let Some(result) = result(path).filter(|result| result.run_id == *run_id) {
        return Recovered::Result(Box::new(result));
    }
    let bundle = store(state, site).and_then(|store| {
        own_bundle(&store, run_id).or_else(|| {
            adopt(&store, path, run_id).or_else(|| {
                held::write_recovery_bundle(path, run_id)?;
                adopt(&store, path, run_id)
            })?;
            own_bundle(&store, run_id)
        })
    });
    if let Some(found) = bundle {
        return found;
    }
    match event_log::last_event(path) {
        Ok(0) | Err(_) => Recovered::Nothing,
        Ok(_) => Recovered::Journal,
    }
}

fn store(state: &StateDir, site: &SiteId) -> Option<Store> {
    Store::open(&Dir::open(state.path()).ok()?, site).ok()
}

/// Returns the run's `result.json`; `None` if it cannot be read.
pub(crate) fn result(path: &Path) -> Option<RunResult> {
    serde_json::from_slice(&result_bytes(path)?).ok()
}

pub(crate) fn result_bytes(path: &Path) -> Option<Vec<u8>> {
    let file = fs::File::open(path.join(RESULT_FILE)).ok()?;
    let mut bytes = Vec::new();
    file.take(LARGEST_RESULT).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns the bundle in the artifacts directory that carries this run's id. A signed bundle is the
/// bundle that the run wrote; an unsigned bundle is the run's recovery bundle.
fn own_bundle(store: &Store, run_id: &RunId) -> Option<Recovered> {
    let bundle = store.resolve(run_id.as_str()).ok()?;
    let bundle_id = bundle.row.artifact_id.clone()?;
    let outcome = serde_json::from_value(bundle.row.outcome.clone().into());
    let outcome = outcome.unwrap_or(Outcome::Failed);
    if !is_signed(&bundle) {
        let of = if bundle.row.summary == held::SUMMARY {
            RecoveryContent::Commands
        } else {
            RecoveryContent::Change
        };
        return Some(Recovered::RecoveryBundle {
            bundle_id,
            outcome,
            of,
        });
    }
    Some(Recovered::Bundle {
        bundle_id,
        outcome,
        summary: bundle.row.summary,
        summary_detail: bundle.row.summary_detail,
    })
}

fn is_signed(bundle: &StoredBundle) -> bool {
    let manifest = bundle.document("manifest.json");
    let files = manifest["files"].as_array();
    files.is_some_and(|files| files.iter().any(|file| file["kind"] == "attestation"))
}

/// Moves the recovery bundle out of `salvage/` with one rename, so the bundle is always in exactly
/// one of the two directories. The bundle was not synced when it was written; it is synced before
/// the rename.
fn adopt(store: &Store, path: &Path, run_id: &RunId) -> Option<()> {
    let directory = Dir::open(&path.join(RECOVERY_BUNDLE)).ok()?;
    let (name, artifacts) = (run_id.as_str(), store.directory());
    rustix::fs::syncfs(&directory).ok()?;
    rustix::fs::renameat_with(&directory, name, artifacts, name, RenameFlags::NOREPLACE).ok()?;
    rustix::fs::fsync(artifacts).ok()
}
