//! Imports bundles that another host exported.

use super::members::MemberSet;
use crate::attestation::{MANIFEST_PATH, TrustedKeys};
use crate::bundle::{BundleError, Durability, Staging};
use crate::store::Store;
use crate::verify::{Verification, VerifyOptions, verify_bundle};
use rustix::io::Errno;
use serde::Serialize;
use serde_json::json;
use wp_codebox_contracts::{CodedError, ErrorBody, RunId, Sha256Hex};

/// What an import does if a different bundle of the same run is stored already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Replace {
    /// Refuse the import; the stored bundle remains.
    #[default]
    Refuse,
    /// Replace the stored bundle.
    Replace,
}

/// What a caller requires of an imported bundle, and the keys it trusts.
#[derive(Debug, Clone, Default)]
pub struct ImportRules {
    /// Bundle id that the bundle must have, if given.
    pub expected_artifact_id: Option<String>,
    /// Content digest, in hex digits, that the bundle must have, if given.
    pub expected_content_digest: Option<String>,
    /// What the import does if a different bundle of the same run is stored already.
    pub replace: Replace,
    /// Keys by which a signature counts as trusted in the reported verification. An import does not
    /// make the bundle's key trusted.
    pub trusted: TrustedKeys,
}

/// What an import changed in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ImportStatus {
    /// The bundle was added; no bundle of its run was stored before.
    Created,
    /// The bundle was stored already with the same manifest bytes.
    Existing,
    /// The bundle replaced a different bundle of the same run.
    Updated,
}

/// Result of a successful import: which bundle the store contains now, and what was changed for it.
#[derive(Debug, Clone)]
pub struct Imported {
    /// What the import changed in the store.
    pub status: ImportStatus,
    /// Name of the bundle's directory: the run id in the manifest, or a name derived from the
    /// manifest's hash.
    pub run_id: RunId,
    /// Id of the bundle.
    pub artifact_id: String,
    /// SHA-256 of the manifest, which an approval names.
    pub manifest_sha256: Sha256Hex,
    /// Result of verifying the stored bundle.
    pub verification: Verification,
}

/// Reason why a bundle was not stored. The import removes partial files.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(detail = Self::detail)]
pub enum ImportError {
    /// The bundle violates rules of its format, e.g. a hash does not match.
    #[error(
        "the bundle is not valid (the first violation: {first}), so it was not stored; get it again from its source"
    )]
    #[code(ArtifactImportSourceInvalid)]
    Invalid {
        /// Path and description of the first violation.
        first: String,
        /// Result of verifying the bundle, with all violations.
        verification: Box<Verification>,
    },
    /// The bundle does not have the id that the caller requires.
    #[error(
        "the bundle has the id {found}, but the caller expects {expected}; import the bundle with that id"
    )]
    #[code(ArtifactImportIdMismatch)]
    OtherId {
        /// Bundle id that the caller requires.
        expected: String,
        /// Bundle id in the manifest.
        found: String,
    },
    /// The bundle does not have the content digest that the caller requires.
    #[error(
        "the bundle has the content digest {found}, but the caller expects {expected}; import the bundle with that digest"
    )]
    #[code(ArtifactImportDigestMismatch)]
    OtherDigest {
        /// Content digest that the caller requires.
        expected: String,
        /// Content digest in the manifest.
        found: String,
    },
    /// A different bundle of the same run is stored.
    #[error(
        "a different bundle of the run {run_id} is stored; discard that bundle, or import with the option to replace it"
    )]
    #[code(ArtifactImportConflict)]
    Occupied {
        /// Run id of the stored bundle.
        run_id: RunId,
    },
    /// A file of the bundle could not be written.
    #[error("the imported bundle could not be stored: {source}")]
    #[code(ArtifactImportCopyFailed)]
    Store {
        /// Which file could not be written, and why.
        #[source]
        source: BundleError,
    },
}

impl ImportError {
    fn detail(&self, body: ErrorBody) -> ErrorBody {
        match self {
            Self::Invalid { verification, .. } => {
                body.with("violations", json!(verification.violations))
            }
            _ => body,
        }
    }
}

/// Stores a bundle: writes it to a hidden sibling directory, verifies it there, then renames it.
pub fn import(
    store: &Store,
    members: &MemberSet,
    rules: &ImportRules,
) -> Result<Imported, ImportError> {
    let manifest_sha256 = manifest_sha256(members)?;
    let unnamed = RunId::from_digest(&manifest_sha256);
    let staging = staged(store, members, &unnamed)?;
    let verification = verified(&staging, &rules.trusted)?;
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

pub(super) fn manifest_sha256(members: &MemberSet) -> Result<Sha256Hex, ImportError> {
    let unread = |source: std::io::Error| BundleError::Io {
        member: MANIFEST_PATH.to_owned(),
        source: Errno::from_io_error(&source).unwrap_or(Errno::IO),
    };
    let digest = members.manifest_sha256();
    digest.map_err(|source| failed(unread(source)))
}

/// Writes the members to a hidden directory of the store.
pub(super) fn staged<'s>(
    store: &'s Store,
    members: &MemberSet,
    run_id: &RunId,
) -> Result<Staging<'s>, ImportError> {
    let mut staging = Staging::new(store.directory(), run_id).map_err(failed)?;
    for (path, content) in members.iter() {
        staging.write(path, content).map_err(failed)?;
    }
    Ok(staging)
}

/// Verifies a written bundle; any violation is an error.
pub(super) fn verified(
    staging: &Staging<'_>,
    trusted: &TrustedKeys,
) -> Result<Verification, ImportError> {
    let trusted = trusted.clone();
    let verification = verify_bundle(staging.root(), &VerifyOptions { trusted });
    match verification.violations.first() {
        None => Ok(verification),
        Some(first) => Err(ImportError::Invalid {
            first: first.to_string(),
            verification: Box::new(verification),
        }),
    }
}

pub(super) fn place(
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
                // Another import stored a bundle of this run meanwhile. The caller must check which
                // bundle is stored now.
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

pub(super) fn failed(source: BundleError) -> ImportError {
    ImportError::Store { source }
}

fn expect(expected: &Option<String>, found: &str) -> Result<(), (String, String)> {
    match expected {
        Some(expected) if expected != found => Err((expected.clone(), found.to_owned())),
        _ => Ok(()),
    }
}
