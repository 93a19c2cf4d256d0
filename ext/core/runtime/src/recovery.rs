//! Data left by a dead run: its result, its own bundle, or its recovery bundle.

use crate::document::{DocumentError, check_schema, parse, read_document};
use crate::run_dir::{RECOVERY_BUNDLE, RESULT_FILE};
use crate::{StateDir, event_log, held};
use rustix::fs::RenameFlags;
use rustix::io::Errno;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use wp_codebox_artifacts::{Dir, Store, StoreError, StoredBundle};
use wp_codebox_contracts::{Outcome, RunId, RunResult, RunSummary, SiteId, schema_id};

/// Maximum size of a run's `result.json` in bytes.
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
///
/// # Errors
/// When something that the run left exists and cannot be read or moved. It must not count as absent:
/// the caller deletes it after it has recorded the end of the run.
pub(crate) fn recover(
    state: &StateDir,
    site: &SiteId,
    path: &Path,
    run_id: &RunId,
) -> Result<Recovered, DocumentError> {
    if let Some(result) = result::<RunResult>(path)? {
        if result.run_id != *run_id {
            return Err(DocumentError::Damaged {
                name: RESULT_FILE,
                why: "it is the result of another run".to_owned(),
            });
        }
        return Ok(Recovered::Result(Box::new(result)));
    }
    let store = store(state, site)?;
    if let Some(found) = own_bundle(&store, run_id)? {
        return Ok(found);
    }
    if !adopt(&store, path, run_id)? && held::write_recovery_bundle(path, run_id)? {
        adopt(&store, path, run_id)?;
    }
    if let Some(found) = own_bundle(&store, run_id)? {
        return Ok(found);
    }
    match event_log::last_event(path).map_err(event_log::unreadable)? {
        0 => Ok(Recovered::Nothing),
        _ => Ok(Recovered::Journal),
    }
}

/// Opens the bundles of a site.
pub(crate) fn store(state: &StateDir, site: &SiteId) -> Result<Store, DocumentError> {
    let root = Dir::open(state.path()).map_err(|source| DocumentError::Recovery {
        source: source.into(),
    })?;
    Ok(Store::open(&root, site)?)
}

/// Returns the run's `result.json`; `None` if it does not exist.
pub(crate) fn result<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, DocumentError> {
    #[derive(Deserialize)]
    struct Stated {
        schema: String,
    }
    let Some(bytes) = read_document(path, RESULT_FILE, LARGEST_RESULT)? else {
        return Ok(None);
    };
    // The schema comes first: the other members of a newer document may be unknown.
    let Stated { schema } = parse(RESULT_FILE, &bytes)?;
    check_schema(RESULT_FILE, &schema, schema_id::RUN_RESULT)?;
    parse(RESULT_FILE, &bytes).map(Some)
}

/// Returns the bundle in the artifacts directory that carries this run's id. A signed bundle is the
/// bundle that the run wrote; an unsigned bundle is the run's recovery bundle.
pub(crate) fn own_bundle(
    store: &Store,
    run_id: &RunId,
) -> Result<Option<Recovered>, DocumentError> {
    let bundle = match store.resolve(run_id.as_str()) {
        Err(StoreError::NotFound { .. }) => return Ok(None),
        found => found?,
    };
    let damaged = |name, why: String| DocumentError::Damaged { name, why };
    let bundle_id = bundle.row.artifact_id.clone().ok_or_else(|| {
        damaged(
            "manifest.json of the bundle",
            "it states no bundle id".to_owned(),
        )
    })?;
    let outcome = serde_json::from_value(bundle.row.outcome.clone().into())
        .map_err(|error| damaged("files/review.json of the bundle", error.to_string()))?;
    if !is_signed(&bundle) {
        let of = if bundle.row.summary == held::SUMMARY {
            RecoveryContent::Commands
        } else {
            RecoveryContent::Change
        };
        return Ok(Some(Recovered::RecoveryBundle {
            bundle_id,
            outcome,
            of,
        }));
    }
    Ok(Some(Recovered::Bundle {
        bundle_id,
        outcome,
        summary: bundle.row.summary,
        summary_detail: bundle.row.summary_detail,
    }))
}

fn is_signed(bundle: &StoredBundle) -> bool {
    let manifest = bundle.document("manifest.json");
    let files = manifest["files"].as_array();
    files.is_some_and(|files| files.iter().any(|file| file["kind"] == "attestation"))
}

/// Moves the recovery bundle out of `salvage/` with one rename, so the bundle is always in exactly
/// one of the two directories. The bundle was not synced when it was written; it is synced before
/// the rename. Returns whether there was a recovery bundle.
pub(crate) fn adopt(store: &Store, path: &Path, run_id: &RunId) -> Result<bool, DocumentError> {
    let failed = |source: Errno| DocumentError::Recovery {
        source: source.into(),
    };
    let directory = match Dir::open(&path.join(RECOVERY_BUNDLE)) {
        Err(Errno::NOENT) => return Ok(false),
        opened => opened.map_err(failed)?,
    };
    let (name, artifacts) = (run_id.as_str(), store.directory());
    rustix::fs::syncfs(&directory).map_err(failed)?;
    match rustix::fs::renameat_with(&directory, name, artifacts, name, RenameFlags::NOREPLACE) {
        Err(Errno::NOENT) => return Ok(false),
        renamed => renamed.map_err(failed)?,
    }
    rustix::fs::fsync(artifacts).map_err(failed)?;
    Ok(true)
}
