//! Storing a bundle that was made elsewhere.

use super::members::MemberSet;
use crate::attestation::{MANIFEST_PATH, TrustedKeys};
use crate::bundle::{BundleError, Durability, Staging};
use crate::store::Store;
use crate::verify::{Verification, VerifyOptions, verify_bundle};
use rustix::io::Errno;
use serde::Serialize;
use serde_json::json;
use wp_codebox_contracts::{ErrorBody, ErrorCode, RunId, Sha256Hex};

/// What happens to another bundle of the same run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Replace {
    /// It stays and the import is refused.
    #[default]
    Refuse,
    /// The new one takes its place.
    Replace,
}

/// What the caller expects, and whose signatures count.
#[derive(Debug, Clone, Default)]
pub struct ImportRules {
    /// Bundle id it must have.
    pub expected_artifact_id: Option<String>,
    /// Content digest it must have: the hexadecimal value.
    pub expected_content_digest: Option<String>,
    /// What happens to another bundle of the same run.
    pub replace: Replace,
    /// For the answer only: an import makes nothing trusted.
    pub trusted: TrustedKeys,
}

/// What an import did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ImportStatus {
    /// It is new here.
    Created,
    /// It was here already, byte for byte by its manifest.
    Existing,
    /// It took the place of another one.
    Updated,
}

/// A stored bundle.
#[derive(Debug, Clone)]
pub struct Imported {
    /// What was done.
    pub status: ImportStatus,
    /// Its directory's name: the run it says it is of, or a name made from its manifest's hash.
    pub run_id: RunId,
    /// Bundle id.
    pub artifact_id: String,
    /// What an approval binds.
    pub manifest_sha256: Sha256Hex,
    /// As it lies here.
    pub verification: Verification,
}

/// Why a bundle was not stored. Nothing of it is left then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// It does not verify.
    #[error("the bundle does not verify: {first}")]
    Invalid {
        /// First violation.
        first: String,
        /// All of them.
        verification: Box<Verification>,
    },
    /// It has another id.
    #[error("the bundle is {found}, not {expected}")]
    OtherId {
        /// Asked for.
        expected: String,
        /// Found.
        found: String,
    },
    /// It has another content digest.
    #[error("the content digest of the bundle is {found}, not {expected}")]
    OtherDigest {
        /// Asked for.
        expected: String,
        /// Found.
        found: String,
    },
    /// Another bundle has its place.
    #[error("another bundle of {run_id} is stored here; discard it, or import with replace")]
    Occupied {
        /// Whose place it is.
        run_id: RunId,
    },
    /// It could not be written.
    #[error("the bundle could not be stored: {source}")]
    Store {
        /// Why.
        #[source]
        source: BundleError,
    },
}

impl ImportError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Invalid { .. } => ErrorCode::ArtifactImportSourceInvalid,
            Self::OtherId { .. } => ErrorCode::ArtifactImportIdMismatch,
            Self::OtherDigest { .. } => ErrorCode::ArtifactImportDigestMismatch,
            Self::Occupied { .. } => ErrorCode::ArtifactImportConflict,
            Self::Store { .. } => ErrorCode::ArtifactImportCopyFailed,
        }
    }
    /// As it crosses a border.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        let body = ErrorBody::new(self.code(), self.to_string());
        match self {
            Self::Invalid { verification, .. } => {
                body.with("violations", json!(verification.violations))
            }
            Self::OtherId { .. }
            | Self::OtherDigest { .. }
            | Self::Occupied { .. }
            | Self::Store { .. } => body,
        }
    }
}

/// Stores a bundle: written to a hidden sibling, verified there, then given its name.
pub fn import(
    store: &Store,
    members: &MemberSet,
    rules: &ImportRules,
) -> Result<Imported, ImportError> {
    let unread = |source: std::io::Error| BundleError::Io {
        member: MANIFEST_PATH.to_owned(),
        source: Errno::from_io_error(&source).unwrap_or(Errno::IO),
    };
    let manifest_sha256 = members
        .manifest_sha256()
        .map_err(|source| failed(unread(source)))?;
    let unnamed = RunId::from_digest(&manifest_sha256);
    let mut staging = Staging::new(store.directory(), &unnamed).map_err(failed)?;
    for (path, content) in members.iter() {
        staging.write(path, content).map_err(failed)?;
    }
    let options = VerifyOptions {
        trusted: rules.trusted.clone(),
    };
    let verification = verify_bundle(staging.root(), &options);
    if let Some(first) = verification.violations.first() {
        return Err(ImportError::Invalid {
            first: first.message.clone(),
            verification: Box::new(verification),
        });
    }
    let manifest = verification.manifest.clone().unwrap_or_default();
    let artifact_id = manifest["id"].as_str().unwrap_or_default().to_owned();
    let digest = manifest["contentDigest"]["value"]
        .as_str()
        .unwrap_or_default();
    expect(&rules.expected_artifact_id, &artifact_id)
        .map_err(|(expected, found)| ImportError::OtherId { expected, found })?;
    expect(&rules.expected_content_digest, digest)
        .map_err(|(expected, found)| ImportError::OtherDigest { expected, found })?;
    let run_id = manifest["runtime"]["id"]
        .as_str()
        .and_then(|id| RunId::new(id).ok())
        .unwrap_or(unnamed);
    let status = place(store, staging, &run_id, &manifest_sha256, rules.replace)?;
    Ok(Imported {
        status,
        run_id,
        artifact_id,
        manifest_sha256,
        verification,
    })
}

fn place(
    store: &Store,
    staging: Staging<'_>,
    run_id: &RunId,
    manifest_sha256: &Sha256Hex,
    replace: Replace,
) -> Result<ImportStatus, ImportError> {
    let name = run_id.as_str();
    let there = match store.directory().stat(name.as_bytes()) {
        Ok(None) => {
            return match staging.place(name, Durability::Synced) {
                Ok(()) => Ok(ImportStatus::Created),
                // Somebody was faster: let them look at what is there now.
                Err(BundleError::Exists) => Err(ImportError::Occupied {
                    run_id: run_id.clone(),
                }),
                Err(source) => Err(failed(source)),
            };
        }
        Ok(Some(_)) => store.directory().dir(name.as_bytes()).ok(),
        Err(source) => {
            return Err(failed(BundleError::Io {
                member: ".".to_owned(),
                source,
            }));
        }
    };
    let same = there.is_some_and(|bundle| {
        let seen = verify_bundle(&bundle, &VerifyOptions::default());
        seen.valid && seen.manifest_sha256.as_ref() == Some(manifest_sha256)
    });
    if same {
        return Ok(ImportStatus::Existing);
    }
    match replace {
        Replace::Refuse => Err(ImportError::Occupied {
            run_id: run_id.clone(),
        }),
        Replace::Replace => {
            staging.exchange(name).map_err(failed)?;
            Ok(ImportStatus::Updated)
        }
    }
}

fn failed(source: BundleError) -> ImportError {
    ImportError::Store { source }
}

fn expect(expected: &Option<String>, found: &str) -> Result<(), (String, String)> {
    match expected {
        Some(expected) if expected != found => Err((expected.clone(), found.to_owned())),
        _ => Ok(()),
    }
}
