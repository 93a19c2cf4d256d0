//! Error type of the preflight and its mapping to error codes.

use crate::attestation::SignatureStatus;
use crate::changed_files::ChangedFilesError;
use crate::patch::FilterError;
use crate::verify::Verification;
use rustix::io::Errno;
use serde::Serialize;
use serde_json::json;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// A path at which the target differs from the baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// Path with the declared mount target.
    pub path: String,
    /// Difference from the baseline.
    pub reason: &'static str,
}

/// Reason why an apply is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PreflightError {
    /// The verification of the bundle failed.
    #[error(
        "the bundle does not verify ({count} violations, the first: {first}); discard it or run again"
    )]
    Invalid {
        /// Number of violations.
        count: usize,
        /// First violation.
        first: String,
        /// Complete result of the verification.
        verification: Box<Verification>,
    },
    /// The manifest differs from the reviewed one.
    #[error("the bundle changed after it was reviewed; review it again")]
    Changed,
    /// The signature does not satisfy the rule that the caller requested.
    #[error(
        "the bundle is not signed by this host or a key the site names; run it here, or add the key"
    )]
    Untrusted {
        /// Verdict on the signature.
        status: SignatureStatus,
    },
    /// The review states that the bundle may not be approved.
    #[error("this bundle cannot be approved: {reason}")]
    NotApprovable {
        /// Error code from the review.
        code: ErrorCode,
        /// Reason from the review.
        reason: String,
    },
    /// The list of approved files is empty.
    #[error("name at least one approved file")]
    NothingApproved,
    /// An approved path is not among the changed files.
    #[error(
        "{first:?} is not among the changed files; approve paths exactly as the bundle lists them"
    )]
    UnknownFiles {
        /// First unknown path.
        first: String,
        /// All unknown paths.
        paths: Vec<String>,
    },
    /// Only one of two dependent paths was approved.
    #[error("one of {path:?} and {other:?} replaces the other; approve both or neither")]
    Torn {
        /// Approved path.
        path: String,
        /// The dependent path that was not approved.
        other: String,
    },
    /// `changed-files.json` cannot be used.
    #[error(transparent)]
    ChangedFiles(#[from] ChangedFilesError),
    /// The patch cannot be reduced to the approved files.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// A member that verification treats as optional is missing.
    #[error("the bundle has no {member}")]
    Missing {
        /// Path of the missing member.
        member: String,
    },
    /// The target differs from the baseline of the run.
    #[error(
        "the target is not what the run started with: {count} of the approved files differ or are gone, the first is {first:?}; run again on the current files"
    )]
    Conflict {
        /// Number of conflicts.
        count: usize,
        /// Path of the first conflict.
        first: String,
        /// All conflicts.
        conflicts: Vec<Conflict>,
    },
    /// A target directory cannot be opened.
    #[error("the target of {mount} cannot be opened")]
    Target {
        /// Declared mount target.
        mount: String,
        /// Error of the failed operation.
        #[source]
        source: Errno,
    },
}

impl PreflightError {
    /// Returns the stable error code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Invalid { .. } => ErrorCode::ArtifactVerificationFailed,
            Self::Changed => ErrorCode::ArtifactChanged,
            Self::Untrusted { .. } => ErrorCode::ArtifactUntrusted,
            Self::NotApprovable { code, .. } => *code,
            Self::NothingApproved => ErrorCode::ApprovedFilesMissing,
            Self::UnknownFiles { .. } | Self::Torn { .. } => ErrorCode::ApprovedFilesInvalid,
            Self::ChangedFiles(error) => error.code(),
            Self::Filter(error) => error.code(),
            Self::Missing { .. } => ErrorCode::PatchUnfilterable,
            Self::Conflict { .. } => ErrorCode::ApplyConflict,
            Self::Target { .. } => ErrorCode::MountSourceInvalid,
        }
    }

    /// Returns the error as the body sent to callers, with the lists in `data`.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        let body = ErrorBody::new(self.code(), self.to_string());
        match self {
            Self::Invalid { verification, .. } => {
                body.with("violations", json!(verification.violations))
            }
            Self::UnknownFiles { paths, .. } => body.with("files", paths.clone()),
            Self::Conflict { conflicts, .. } => body.with("conflicts", json!(conflicts)),
            Self::Untrusted { status } => body.with("signature", json!(status)),
            Self::Changed
            | Self::NotApprovable { .. }
            | Self::NothingApproved
            | Self::Torn { .. }
            | Self::ChangedFiles(_)
            | Self::Filter(_)
            | Self::Missing { .. }
            | Self::Target { .. } => body,
        }
    }
}
