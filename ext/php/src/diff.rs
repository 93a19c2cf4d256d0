//! Reads the patch of a stored bundle for review. The functions accept a bundle that cannot be
//! approved, but refuse one that fails verification. The patch that they read has the hash that the
//! verified manifest lists for it.

use crate::guard::Failure;
use crate::ini::Settings;
use crate::state::trusted_keys;
use wp_codebox_artifacts::{
    CONTENT_INPUTS, PreflightError, StoredBundle, Verification, VerifyOptions, filter_patch,
    read_changed_files, sha256, split_patch, verify_bundle,
};
use wp_codebox_contracts::{ChangedFile, CodedError, ErrorBody};

/// Returns the whole patch of a bundle, or only its blocks for the given paths.
pub(crate) fn patch(
    settings: &Settings,
    bundle: &StoredBundle,
    paths: &[String],
) -> Result<Vec<u8>, Failure> {
    let (changed, patch) = verified(settings, bundle)?;
    if paths.is_empty() {
        return Ok(patch);
    }
    let (wanted, unknown): (Vec<&String>, Vec<&String>) = paths
        .iter()
        .partition(|path| changed.iter().any(|file| file.path == **path));
    if let Some(first) = unknown.first() {
        let error = PreflightError::UnknownFiles {
            first: (*first).clone(),
            paths: unknown.iter().map(|path| (*path).clone()).collect(),
        };
        return Err(error.body().into());
    }
    let entries: Vec<ChangedFile> = changed
        .into_iter()
        .filter(|file| wanted.contains(&&file.path))
        .collect();
    filter_patch(&patch, &entries).map_err(|e| ErrorBody::new(e.code(), e.to_string()).into())
}

/// Returns every changed file with its patch blocks, in the order of `changed-files.json`. The old
/// and the new name of a renamed file get the same block.
pub(crate) fn by_file(
    settings: &Settings,
    bundle: &StoredBundle,
) -> Result<Vec<(ChangedFile, Vec<u8>)>, Failure> {
    let (changed, patch) = verified(settings, bundle)?;
    let parts =
        split_patch(&patch, &changed).map_err(|e| ErrorBody::new(e.code(), e.to_string()))?;
    Ok(changed.into_iter().zip(parts).collect())
}

/// Verifies a bundle and returns its list of changed files and its patch.
fn verified(
    settings: &Settings,
    bundle: &StoredBundle,
) -> Result<(Vec<ChangedFile>, Vec<u8>), Failure> {
    // A signature of any key suffices, so the known keys make no difference.
    let options = VerifyOptions {
        trusted: trusted_keys(settings, Vec::new())?,
    };
    let verification = verify_bundle(&bundle.directory, &options);
    if let Some(first) = verification.violations.first() {
        let error = PreflightError::Invalid {
            count: verification.violations.len(),
            first: first.message.clone(),
            verification: Box::new(verification),
        };
        return Err(error.body().into());
    }
    let [changed_files, patch] = CONTENT_INPUTS;
    let patch = member(bundle, &verification, patch)?;
    let changed = member(bundle, &verification, changed_files)?;
    let changed =
        read_changed_files(&changed).map_err(|e| ErrorBody::new(e.code(), e.to_string()))?;
    Ok((changed.files, patch))
}

/// Returns the bytes of one file of a bundle. Fails if the file has changed since the verification:
/// its hash must be the one in the verified manifest.
fn member(
    bundle: &StoredBundle,
    verification: &Verification,
    path: &str,
) -> Result<Vec<u8>, ErrorBody> {
    let stated = verification
        .manifest
        .as_ref()
        .and_then(|manifest| manifest["files"].as_array())
        .and_then(|files| files.iter().find(|file| file["path"] == path))
        .and_then(|file| file["sha256"]["value"].as_str());
    let bytes = bundle.bytes(path).ok_or_else(|| {
        PreflightError::Missing {
            member: path.to_owned(),
        }
        .body()
    })?;
    if stated == Some(sha256(&bytes).as_str()) {
        Ok(bytes)
    } else {
        Err(PreflightError::Changed.body())
    }
}
