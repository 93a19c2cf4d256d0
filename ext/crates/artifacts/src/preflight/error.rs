//! Why an apply may not go on, and how that crosses a border.

use crate::attestation::SignatureStatus;
use crate::changed_files::ChangedFilesError;
use crate::patch::FilterError;
use crate::verify::Verification;
use rustix::io::Errno;
use serde::Serialize;
use serde_json::json;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// A path whose current state is not the baseline's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// Declared-target path.
    pub path: String,
    /// What is there instead.
    pub reason: &'static str,
}

/// Why an apply may not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PreflightError {
    /// The bundle does not verify.
    #[error(
        "the bundle does not verify ({count} violations, the first: {first}); discard it or run again"
    )]
    Invalid {
        /// How many.
        count: usize,
        /// The first one.
        first: String,
        /// All of it.
        verification: Box<Verification>,
    },
    /// It is not the bundle that was reviewed.
    #[error("the bundle changed after it was reviewed; review it again")]
    Changed,
    /// The signature is not enough.
    #[error(
        "the bundle is not signed by this host or a key the site names; run it here, or add the key"
    )]
    Untrusted {
        /// What it is worth.
        status: SignatureStatus,
    },
    /// The run says that its bundle may not be approved.
    #[error("this bundle cannot be approved: {reason}")]
    NotApprovable {
        /// The run's code.
        code: ErrorCode,
        /// The run's sentence.
        reason: String,
    },
    /// Nothing was approved.
    #[error("name at least one approved file")]
    NothingApproved,
    /// A path is not among the changed files.
    #[error(
        "{first:?} is not among the changed files; approve paths exactly as the bundle lists them"
    )]
    UnknownFiles {
        /// The first one.
        first: String,
        /// All of them.
        paths: Vec<String>,
    },
    /// Two paths that make sense only together.
    #[error("{path:?} takes the place of {other:?} or the reverse; approve both or neither")]
    Torn {
        /// Approved path.
        path: String,
        /// The one that is not.
        other: String,
    },
    /// changed-files.json is not usable.
    #[error(transparent)]
    ChangedFiles(#[from] ChangedFilesError),
    /// The patch cannot be cut down.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// A member that verification does not demand is missing.
    #[error("the bundle has no {member}")]
    Missing {
        /// Which.
        member: String,
    },
    /// The target differs from the run's baseline.
    #[error(
        "the target is not what the run started with: {count} of the approved files differ or are gone, the first is {first:?}; run again on the current files"
    )]
    Conflict {
        /// How many.
        count: usize,
        /// Path of the first one.
        first: String,
        /// All of them.
        conflicts: Vec<Conflict>,
    },
    /// A target directory cannot be opened.
    #[error("the target of {mount} cannot be opened")]
    Target {
        /// Declared mount target.
        mount: String,
        /// The cause.
        #[source]
        source: Errno,
    },
}

impl PreflightError {
    /// The stable code.
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

    /// As it crosses a border, with the lists in `data`.
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
