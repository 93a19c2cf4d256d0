//! The bundle of a run in the state directory.

use wp_codebox_artifacts::{Dir, Store, StoredBundle};
use wp_codebox_contracts::{ErrorBody, ErrorCode, Manifest, RunBundle, Sha256Hex};
use wp_codebox_runtime::{FoundRun, StateDir};

/// Returns the bundle of a run; `None` if the run has none.
pub fn run_bundle(
    state: &StateDir,
    run: &FoundRun,
    salvaged: bool,
) -> Result<Option<RunBundle>, ErrorBody> {
    let artifacts = state
        .path()
        .join("sites")
        .join(run.site.as_str())
        .join("artifacts");
    let directory = artifacts.join(run.run_id.as_str());
    if !directory.is_dir() {
        return Ok(None);
    }
    let unreadable = |why: &str| ErrorBody::new(ErrorCode::StateDirInvalid, why);
    let root = Dir::open(state.path()).map_err(|e| unreadable(&e.to_string()))?;
    let store = Store::open(&root, &run.site)?;
    let stored = store.resolve(run.run_id.as_str())?;
    let (manifest, manifest_sha256) = manifest(&stored)?;
    Ok(Some(RunBundle {
        id: manifest.id,
        directory: directory.to_string_lossy().into_owned(),
        manifest_sha256,
        salvaged,
        files: manifest.files,
    }))
}

fn manifest(stored: &StoredBundle) -> Result<(Manifest, Sha256Hex), ErrorBody> {
    let broken = || {
        ErrorBody::new(
            ErrorCode::ArtifactVerificationFailed,
            "the manifest of this run's bundle cannot be read; run `wp-codebox artifacts verify` to see why",
        )
    };
    let bytes = stored.bytes("manifest.json").ok_or_else(broken)?;
    let manifest = serde_json::from_slice(&bytes).map_err(|_| broken())?;
    Ok((manifest, wp_codebox_artifacts::sha256(&bytes)))
}
