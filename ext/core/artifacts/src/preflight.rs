//! Checks before an apply: verifies a bundle and extracts the changes of the approved files.
//!
//! Invariants: nothing is written. The bundle is verified first, and only bytes that were verified
//! are used. The resulting patch contains exactly the approved files. If a file in the target
//! directory differs from its state before the run, the result is a conflict.
//!
//! To apply a patch by hand: remove the directories that the approved entries delete, apply the
//! patch, then create the directories that the entries add. A patch cannot represent directories,
//! and a file may take the place of a deleted directory.

mod base;
mod changes;
mod error;
mod main_file;
mod whole;

use crate::attestation::{SignatureReport, SignatureStatus, TrustedKeys};
use crate::changed_files::{raw_relative, read_changed_files};
use crate::digest::{CONTENT_INPUTS, sha256};
use crate::dirfd::Dir;
use crate::json::Json;
use crate::patch::{NamedBy, filter_by};
use crate::php_syntax::{PHP_SYNTAX_PATH, PhpSyntax, recorded};
use crate::risks::{PathRisk, path_risks};
use crate::verify::{Documents, Verification, Verified, VerifyOptions, verify_keeping};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use wp_codebox_contracts::{ChangedFile, ContentDigest, ErrorCode, GuestPath, Sha256Hex};

pub use error::{Conflict, PreflightError};
pub use whole::{WholeBundle, whole_bundle};

/// Which signatures a preflight accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SignatureRule {
    /// Only valid signatures with a trusted key (`signed-by-this-host`, `signed-by-known`):
    /// required for an apply.
    #[default]
    Trusted,
    /// Every bundle without an invalid signature, also an unsigned one: enough to display changes.
    Any,
}

/// Whether a preflight accepts a bundle whose contents a browser uploaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BrowserOriginRule {
    /// The bundle is refused where [`SignatureRule::Trusted`] applies.
    #[default]
    Refuse,
    /// A user who may apply changes confirmed that this host did not see the code run.
    Confirmed,
}

/// What a preflight checks, and for which files.
#[derive(Debug, Clone, Default)]
pub struct PreflightRequest {
    /// Approved paths, spelled exactly as in `changed-files.json`.
    pub approved_files: Vec<String>,
    /// SHA-256 of the manifest that the approver saw; the bundle must still have it. `None` skips
    /// this check.
    pub manifest_sha256: Option<Sha256Hex>,
    /// Host directories to which the changes would be applied, by guest path of the mount. Each is
    /// compared with the state before the run.
    pub targets: BTreeMap<String, PathBuf>,
    /// Keys by which a signature counts as trusted.
    pub trusted: TrustedKeys,
    /// Whether a bundle without a trusted signature is accepted.
    pub signatures: SignatureRule,
    /// Whether a trusted signature on contents from a browser is accepted.
    pub browser_origin: BrowserOriginRule,
}

/// The approved patch of one mount, with paths relative to the mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MountPatch {
    /// Guest path of the mount, as the request declared it.
    pub mount_target: GuestPath,
    /// Position of the mount in the run's list of mounts, from 0.
    pub mount_index: usize,
    /// Text of the patch, which `git apply` accepts.
    pub patch: String,
    /// SHA-256 of the patch.
    pub sha256: Sha256Hex,
}

/// The approved changes of a verified bundle, with all data that an apply needs.
#[derive(Debug, Clone, Serialize)]
pub struct Preflight {
    /// Id of the bundle.
    pub artifact_id: String,
    /// Approved paths, sorted, without duplicates.
    pub approved_files: Vec<String>,
    /// Entries of `changed-files.json` for the approved paths.
    pub changed_files: Vec<ChangedFile>,
    /// Approved files that programs of the host or the site run or obey by themselves, or whose name
    /// makes them more than code to review.
    pub risks: Vec<PathRisk>,
    /// Syntax check that the run made in a guest. `None` if it made none, or if neither this host
    /// nor one whose key it trusts made the run.
    #[serde(skip)]
    pub php_syntax: Option<PhpSyntax>,
    /// The part of `files/patch.diff` that changes the approved files.
    pub patch: String,
    /// SHA-256 of `patch`.
    pub patch_sha256: Sha256Hex,
    /// The approved changes as one patch per mount, with paths relative to the mount.
    pub mount_patches: Vec<MountPatch>,
    /// Content digest of the bundle.
    pub content_digest: ContentDigest,
    /// SHA-256 of the verified manifest.
    pub manifest_sha256: Sha256Hex,
    /// Status, signer and coverage of the bundle's signature.
    pub signature: SignatureReport,
    /// Guest paths of the mounts whose host directory was compared with the state before the run.
    pub base_checked: Vec<GuestPath>,
    /// Result of verifying the bundle.
    pub verification: Verification,
}

/// Verifies a bundle and reduces it to the approved files. Nothing is written.
pub fn preflight(bundle: &Dir, request: &PreflightRequest) -> Result<Preflight, PreflightError> {
    let options = VerifyOptions {
        trusted: request.trusted.clone(),
    };
    let verified = verify_keeping(bundle, &options);
    let manifest = accepted(&verified.verification, request)?;
    check_approvable(&verified.documents)?;

    let changed = read_changed_files(member(&verified.documents, CONTENT_INPUTS[0])?)?.files;
    let approved = approved_entries(&changed, &request.approved_files)?;
    let mut ready = reduced(verified, manifest, &approved)?;
    let compared = base::check(&approved, &changed, &request.targets)?;
    ready.base_checked = compared.mounts;
    ready.risks.extend(compared.risks);
    Ok(ready)
}

/// Reduces a verified bundle to the approved entries, which are sorted by path.
fn reduced(
    verified: Verified,
    (manifest, manifest_sha256): (Value, Sha256Hex),
    approved: &[&ChangedFile],
) -> Result<Preflight, PreflightError> {
    let (verification, documents) = (verified.verification, verified.documents);
    let patch = filter_by(
        member(&documents, CONTENT_INPUTS[1])?,
        approved,
        NamedBy::Patch,
    )?;
    let mount_patches = mount_patches(&documents, approved)?;
    let text = |key: &str| {
        manifest
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let content_digest = manifest
        .get("contentDigest")
        .and_then(|d| serde_json::from_value(d.clone()).ok())
        .ok_or_else(|| missing("contentDigest"))?;
    let changed_files: Vec<ChangedFile> = approved.iter().copied().cloned().collect();
    let made_by_a_trusted_host = matches!(
        verification.signature.status,
        SignatureStatus::SignedByThisHost | SignatureStatus::SignedByKnown
    );
    let php_syntax = documents
        .get(PHP_SYNTAX_PATH)
        .filter(|_| made_by_a_trusted_host)
        .and_then(|document| recorded(document));
    Ok(Preflight {
        artifact_id: text("id").to_owned(),
        approved_files: approved.iter().map(|e| e.path.clone()).collect(),
        risks: path_risks(&changed_files),
        php_syntax,
        changed_files,
        patch_sha256: sha256(&patch),
        patch: utf8(patch)?,
        mount_patches,
        content_digest,
        manifest_sha256,
        signature: verification.signature.clone(),
        base_checked: Vec::new(),
        verification,
    })
}

fn accepted(
    verification: &Verification,
    request: &PreflightRequest,
) -> Result<(Value, Sha256Hex), PreflightError> {
    let (Some(manifest), Some(hash), true) = (
        &verification.manifest,
        &verification.manifest_sha256,
        verification.valid,
    ) else {
        return Err(PreflightError::Invalid {
            count: verification.violations.len(),
            first: verification
                .violations
                .first()
                .map(ToString::to_string)
                .unwrap_or_default(),
            verification: Box::new(verification.clone()),
        });
    };
    if request
        .manifest_sha256
        .as_ref()
        .is_some_and(|want| want != hash)
    {
        return Err(PreflightError::Changed);
    }
    let status = verification.signature.status;
    let enough = match (status, request.signatures) {
        (SignatureStatus::SignedByThisHost | SignatureStatus::SignedByKnown, _) => true,
        (SignatureStatus::BrowserOrigin | SignatureStatus::BrowserOriginKnown, rule) => {
            if rule == SignatureRule::Trusted && request.browser_origin == BrowserOriginRule::Refuse
            {
                return Err(PreflightError::BrowserOrigin { status });
            }
            true
        }
        (SignatureStatus::SignedByUnknown | SignatureStatus::Unsigned, SignatureRule::Any) => true,
        (SignatureStatus::SignedByUnknown | SignatureStatus::Unsigned, SignatureRule::Trusted)
        | (SignatureStatus::Invalid, _) => false,
    };
    if enough {
        Ok((manifest.clone(), hash.clone()))
    } else {
        Err(PreflightError::Untrusted { status })
    }
}

/// Fails if the verified review states that the bundle may not be approved.
fn check_approvable(documents: &Documents) -> Result<(), PreflightError> {
    let review = documents
        .get("files/review.json")
        .and_then(|bytes| Json::parse(bytes).ok())
        .map(|review| review.to_value());
    let approval = review.as_ref().and_then(|r| r.get("approval"));
    let Some(approval) = approval else {
        return Ok(());
    };
    if approval.get("approvable") == Some(&Value::Bool(true)) {
        return Ok(());
    }
    let code = approval
        .get("code")
        .and_then(|code| serde_json::from_value::<ErrorCode>(code.clone()).ok());
    let reason = approval.get("reason").and_then(Value::as_str);
    Err(PreflightError::NotApprovable {
        code: code.unwrap_or(ErrorCode::ApprovedFilesInvalid),
        reason: reason.unwrap_or("the run gives no reason").to_owned(),
    })
}

fn approved_entries<'c>(
    changed: &'c [ChangedFile],
    paths: &[String],
) -> Result<Vec<&'c ChangedFile>, PreflightError> {
    let wanted: BTreeSet<&str> = paths.iter().map(String::as_str).collect();
    if wanted.is_empty() {
        return Err(PreflightError::NothingApproved);
    }
    let known: BTreeSet<&str> = changed.iter().map(|e| e.path.as_str()).collect();
    let unknown: Vec<String> = wanted.difference(&known).map(|p| (*p).to_owned()).collect();
    if let Some(first) = unknown.first() {
        return Err(PreflightError::UnknownFiles {
            first: first.clone(),
            paths: unknown,
        });
    }
    let mut approved: Vec<&ChangedFile> = changed
        .iter()
        .filter(|e| wanted.contains(e.path.as_str()))
        .collect();
    approved.sort_by(|a, b| a.path.cmp(&b.path));
    check_torn(changed, &wanted)?;
    Ok(approved)
}

/// Fails if only one of two dependent entries is approved. A file or link and an entry below its
/// path depend on each other, because they cannot exist at the same time: one replaces the other.
fn check_torn(changed: &[ChangedFile], wanted: &BTreeSet<&str>) -> Result<(), PreflightError> {
    let carried: BTreeMap<(usize, Vec<u8>), &ChangedFile> = changed
        .iter()
        .filter(|e| is_carried(&e.before_mode) || is_carried(&e.after_mode))
        .map(|e| ((e.mount_index, raw_relative(e)), e))
        .collect();
    for entry in changed {
        let path = raw_relative(entry);
        for (at, _) in path.iter().enumerate().filter(|(_, b)| **b == b'/') {
            let Some(above) = carried.get(&(entry.mount_index, path[..at].to_vec())) else {
                continue;
            };
            let (below_in, above_in) = (
                wanted.contains(entry.path.as_str()),
                wanted.contains(above.path.as_str()),
            );
            if below_in != above_in {
                let (path, other) = if below_in {
                    (entry, *above)
                } else {
                    (*above, entry)
                };
                return Err(PreflightError::Torn {
                    path: path.path.clone(),
                    other: other.path.clone(),
                });
            }
        }
    }
    Ok(())
}

fn is_carried(mode: &Option<String>) -> bool {
    mode.as_deref().is_some_and(|m| m != "040000")
}

fn mount_patches(
    documents: &Documents,
    approved: &[&ChangedFile],
) -> Result<Vec<MountPatch>, PreflightError> {
    let mut groups: BTreeMap<usize, Vec<&ChangedFile>> = BTreeMap::new();
    for entry in approved {
        groups.entry(entry.mount_index).or_default().push(entry);
    }
    let mut patches = Vec::with_capacity(groups.len());
    for (index, entries) in groups {
        let Some(first) = entries.first() else {
            continue;
        };
        let whole = member(documents, &first.patch_path)?;
        let patch = filter_by(whole, &entries, NamedBy::Relative)?;
        patches.push(MountPatch {
            mount_target: first.mount_target.clone(),
            mount_index: index,
            sha256: sha256(&patch),
            patch: utf8(patch)?,
        });
    }
    Ok(patches)
}

fn member<'d>(documents: &'d Documents, path: &str) -> Result<&'d [u8], PreflightError> {
    documents
        .get(path)
        .map(Vec::as_slice)
        .ok_or_else(|| missing(path))
}

fn missing(member: &str) -> PreflightError {
    PreflightError::Missing {
        member: member.to_owned(),
    }
}

fn utf8(patch: Vec<u8>) -> Result<String, PreflightError> {
    String::from_utf8(patch).map_err(|_| missing("patch in UTF-8"))
}
