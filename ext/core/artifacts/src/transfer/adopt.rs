//! Takes over a bundle of another host: stores it with this host's signature beside the other one.
//!
//! Invariants: the caller's check sees the verified bundle before the host signs, and nothing is
//! stored under the run's name before the signed bundle was verified again. The signature covers
//! the same statement as the first one. Only the envelope and the two hashes in the manifest that
//! depend on it change, so both signatures stay valid and the bundle keeps its id.

use super::import::{
    ImportError, Imported, Replace, failed, manifest_sha256, place, staged, verified,
};
use super::members::MemberSet;
use crate::attestation::{
    ATTESTATION_PATH, AttestationError, HostKey, MANIFEST_PATH, SignatureStatus, countersigned,
};
use crate::bundle::{BundleError, Staging};
use crate::canonical::OverLimit;
use crate::digest::{MAX_DOCUMENT, manifest_self_hash, sha256};
use crate::dirfd::Dir;
use crate::json::Json;
use crate::store::Store;
use crate::verify::Verification;
use serde_json::{Value, json};
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode, RunId, Sha256Hex};

/// Reason why a bundle was not taken over. Partial files are removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdoptError<E: std::error::Error + 'static> {
    /// The bundle is not valid, or it cannot be stored.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The caller's check refused the bundle.
    #[error(transparent)]
    Refused(E),
    /// The bundle is of another run.
    #[error("the bundle belongs to run {found}, but the bundle of run {expected} is expected")]
    OtherRun {
        /// Run whose bundle the caller expects.
        expected: RunId,
        /// Run in the bundle's manifest.
        found: String,
    },
    /// The bundle has no signature to which another one can be added.
    #[error("the bundle cannot be signed by a second host: {source}")]
    Envelope {
        /// What is wrong with the envelope.
        #[source]
        source: AttestationError,
    },
    /// The bundle did not verify with the added signature.
    #[error("the bundle does not verify after this host signed it: {detail}")]
    NotSigned {
        /// What was found.
        detail: String,
    },
}

impl<E: std::error::Error + 'static> AdoptError<E> {
    /// Returns the machine-readable code of this error, which later versions keep; `refused` gives
    /// the code of the caller's error.
    #[must_use]
    pub fn code(&self, refused: impl FnOnce(&E) -> ErrorCode) -> ErrorCode {
        match self {
            Self::Import(error) => error.code(),
            Self::Refused(error) => refused(error),
            Self::OtherRun { .. } => ErrorCode::ArtifactImportIdMismatch,
            Self::Envelope { .. } | Self::NotSigned { .. } => ErrorCode::ArtifactVerificationFailed,
        }
    }

    /// Returns code and message of this error as the JSON body that callers receive.
    #[must_use]
    pub fn body(&self, refused: impl FnOnce(&E) -> ErrorBody) -> ErrorBody {
        match self {
            Self::Import(error) => error.body(),
            Self::Refused(error) => refused(error),
            Self::OtherRun { .. } | Self::Envelope { .. } | Self::NotSigned { .. } => {
                ErrorBody::new(self.code(|_| ErrorCode::Internal), self.to_string())
            }
        }
    }
}

/// Stores the bundle of `run` with the signature of `key` after the one that it has. `check` gets
/// the verified bundle before it is signed and decides whether this host vouches for it.
///
/// If this host took over the bundle before, the status is
/// [`ImportStatus::Existing`](super::ImportStatus). A different stored bundle of the run is an
/// error.
///
/// # Errors
/// [`AdoptError`]; nothing is stored then.
pub fn adopt<E: std::error::Error + 'static>(
    store: &Store,
    members: &MemberSet,
    run: &RunId,
    key: &HostKey,
    check: impl FnOnce(&Dir, &Verification) -> Result<(), E>,
) -> Result<Imported, AdoptError<E>> {
    let trusted = key.trusted(Vec::new());
    let mut staging = staged(
        store,
        members,
        &RunId::from_digest(&manifest_sha256(members)?),
    )?;
    let before = verified(&staging, &trusted)?;
    let manifest = before.manifest.clone().unwrap_or_default();
    let found = manifest["runtime"]["id"].as_str().unwrap_or_default();
    if found != run.as_str() {
        return Err(AdoptError::OtherRun {
            expected: run.clone(),
            found: found.chars().take(64).collect(),
        });
    }
    if before.signature.key_id.is_none() {
        return Err(AdoptError::Envelope {
            source: AttestationError::Envelope {
                field: "signatures",
            },
        });
    }
    check(staging.root(), &before).map_err(AdoptError::Refused)?;
    sign(&mut staging, manifest, key)?;
    let verification = verified(&staging, &trusted)?;
    let (status, digest) = (verification.signature.status, &verification.manifest_sha256);
    let (SignatureStatus::SignedByThisHost, Some(digest)) = (status, digest.clone()) else {
        return Err(AdoptError::NotSigned {
            detail: format!("its status is {}", serde_json::json!(status)),
        });
    };
    let status = place(store, staging, run, &digest, Replace::Refuse)?;
    Ok(Imported {
        status,
        run_id: run.clone(),
        artifact_id: before
            .manifest
            .as_ref()
            .and_then(|manifest| manifest["id"].as_str())
            .unwrap_or_default()
            .to_owned(),
        manifest_sha256: digest,
        verification,
    })
}

/// Adds the host's signature to the written bundle, and brings the two hashes in the manifest that
/// depend on the envelope up to date.
fn sign<E: std::error::Error + 'static>(
    staging: &mut Staging<'_>,
    mut manifest: Value,
    key: &HostKey,
) -> Result<(), AdoptError<E>> {
    let store = |source| AdoptError::Import(failed(source));
    let read = staging.root().file_bytes(ATTESTATION_PATH, MAX_DOCUMENT);
    let envelope = read.map_err(|source| {
        store(BundleError::Io {
            member: ATTESTATION_PATH.to_owned(),
            source,
        })
    })?;
    let envelope =
        countersigned(&envelope, key).map_err(|source| AdoptError::Envelope { source })?;
    let envelope = pretty(&envelope);
    set_hash(&mut manifest, ATTESTATION_PATH, &sha256(&envelope));
    let own = manifest_self_hash(&Json::from(&manifest), MANIFEST_PATH, OverLimit::Refuse);
    let own = own.map_err(|source| {
        store(BundleError::Canonical {
            member: MANIFEST_PATH.to_owned(),
            source,
        })
    })?;
    set_hash(&mut manifest, MANIFEST_PATH, &own);
    let manifest = pretty(&manifest);
    staging
        .replace(ATTESTATION_PATH, envelope.as_slice())
        .and_then(|()| staging.replace(MANIFEST_PATH, manifest.as_slice()))
        .map_err(store)
}

fn set_hash(manifest: &mut Value, path: &str, hash: &Sha256Hex) {
    let rows = manifest.get_mut("files").and_then(Value::as_array_mut);
    for row in rows.into_iter().flatten() {
        if row["path"] == path {
            row["sha256"]["value"] = json!(hash);
        }
    }
}

/// Serialises a document like the writer of bundles does.
fn pretty(document: &Value) -> Vec<u8> {
    // A value has only string keys, so serialisation cannot fail.
    let mut bytes = serde_json::to_vec_pretty(document).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}
