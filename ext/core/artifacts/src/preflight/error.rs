//! Error type of the preflight and its mapping to error codes.

use crate::attestation::SignatureStatus;
use crate::changed_files::ChangedFilesError;
use crate::patch::FilterError;
use crate::verify::Verification;
use rustix::io::Errno;
use serde::Serialize;
use serde_json::json;
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode};

/// A path at which the target directory differs from the state before the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// Path of the entry, starting with the guest path of its mount.
    pub path: String,
    /// How the target differs, e.g. `missing`.
    pub reason: &'static str,
}

/// Reason why an apply is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PreflightError {
    /// The bundle violates rules of its format, e.g. a hash does not match.
    #[error(
        "the bundle is not valid ({count} violations, the first: {first}), so it cannot be applied; discard it or run the task again"
    )]
    Invalid {
        /// Number of violations.
        count: usize,
        /// Path and description of the first violation.
        first: String,
        /// Result of verifying the bundle, with all violations.
        verification: Box<Verification>,
    },
    /// The manifest is not the one that the approver saw.
    #[error("the bundle's manifest changed after the review; review the bundle again")]
    Changed,
    /// The bundle is unsigned or its key is not trusted, and the request requires a trusted key.
    #[error(
        "the bundle is not signed by this host or with a key in the site's settings; run the task on this host, or add the key to the settings"
    )]
    Untrusted {
        /// Status of the bundle's signature, e.g. unsigned.
        status: SignatureStatus,
    },
    /// A browser uploaded the contents, and the request does not confirm that.
    #[error(
        "the contents of the bundle were uploaded by a browser, and this host did not see their code run; read the change and confirm its origin as well"
    )]
    BrowserOrigin {
        /// Status of the bundle's signature.
        status: SignatureStatus,
    },
    /// The review states that the bundle may not be approved.
    #[error("this bundle cannot be approved: {reason}")]
    NotApprovable {
        /// Error code that the review gives as the reason.
        code: ErrorCode,
        /// Reason from the review, in one sentence.
        reason: String,
    },
    /// The list of approved files is empty.
    #[error("the request approves no file; name at least one")]
    NothingApproved,
    /// An approved path is not among the changed files.
    #[error(
        "{first:?} is not among the changed files; approve paths exactly as the bundle lists them"
    )]
    UnknownFiles {
        /// First path that is not a changed file.
        first: String,
        /// All paths that are not changed files.
        paths: Vec<String>,
    },
    /// Only one of two changes was approved, although one path takes the place of the other: a file
    /// or link, and an entry below the same path.
    #[error(
        "the changes of {path:?} and {other:?} depend on each other, as one path replaces the other; approve both or neither"
    )]
    Torn {
        /// The one of the two paths that was approved.
        path: String,
        /// The one of the two paths that was not approved.
        other: String,
    },
    /// `changed-files.json` cannot be used.
    #[error(transparent)]
    ChangedFiles(#[from] ChangedFilesError),
    /// The patch cannot be reduced to the approved files, e.g. because it contradicts
    /// `changed-files.json`.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// Something is missing that verification does not require but an apply does.
    #[error("the bundle has no {member}, without which it cannot be applied; run the task again")]
    Missing {
        /// What is missing: path of a file in the bundle, or member of the manifest.
        member: String,
    },
    /// The caller names no host directory for a mount of the bundle.
    #[error(
        "the request does not say to which directory of this host the changes of the mount {mount} go; name the directory"
    )]
    NoDirectory {
        /// Guest path of the mount.
        mount: String,
    },
    /// The target directory differs from the state before the run.
    #[error(
        "the target directory changed since the run: {count} approved files differ or are missing, the first is {first:?}; run again on the current files"
    )]
    Conflict {
        /// Number of paths that differ.
        count: usize,
        /// First path that differs.
        first: String,
        /// All paths that differ, with the reason for each.
        conflicts: Vec<Conflict>,
    },
    /// A host directory to which the changes would be applied cannot be opened.
    #[error(
        "the host directory of the mount {mount} cannot be opened; check that it exists and is readable"
    )]
    Target {
        /// Guest path of the mount whose host directory cannot be opened.
        mount: String,
        /// Error number of the system call that failed.
        #[source]
        source: Errno,
    },
}

impl CodedError for PreflightError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Invalid { .. } => ErrorCode::ArtifactVerificationFailed,
            Self::Changed => ErrorCode::ArtifactChanged,
            Self::Untrusted { .. } => ErrorCode::ArtifactUntrusted,
            Self::BrowserOrigin { .. } => ErrorCode::ApplyBrowserOriginUnconfirmed,
            Self::NotApprovable { code, .. } => *code,
            Self::NothingApproved => ErrorCode::ApprovedFilesMissing,
            Self::UnknownFiles { .. } | Self::Torn { .. } => ErrorCode::ApprovedFilesInvalid,
            Self::ChangedFiles(error) => error.code(),
            Self::Filter(error) => error.code(),
            Self::Missing { .. } => ErrorCode::PatchUnfilterable,
            Self::NoDirectory { .. } => ErrorCode::ApplyTargetMismatch,
            Self::Conflict { .. } => ErrorCode::ApplyConflict,
            Self::Target { .. } => ErrorCode::MountSourceInvalid,
        }
    }

    /// `data` lists all violations, unknown paths or conflicts, of which the message names the first.
    fn body(&self) -> ErrorBody {
        let body = ErrorBody::new(self.code(), self.to_string());
        match self {
            Self::Invalid { verification, .. } => {
                body.with("violations", json!(verification.violations))
            }
            Self::UnknownFiles { paths, .. } => body.with("files", paths.clone()),
            Self::Conflict { conflicts, .. } => body.with("conflicts", json!(conflicts)),
            Self::Untrusted { status } => body.with("signature", json!(status)),
            Self::BrowserOrigin { status } => body.with("signature", json!(status)).hint(
                "confirm with confirm_browser_origin, or --confirm-browser-origin at the shell",
            ),
            Self::Changed
            | Self::NotApprovable { .. }
            | Self::NothingApproved
            | Self::Torn { .. }
            | Self::ChangedFiles(_)
            | Self::Filter(_)
            | Self::Missing { .. }
            | Self::NoDirectory { .. }
            | Self::Target { .. } => body,
        }
    }
}
