//! Error type of a composition.

use crate::bundle::BundleError;
use crate::capture::CaptureError;
use crate::store::StoreError;
use rustix::io::Errno;
use wp_codebox_contracts::{CodedError, RunId};

/// Reason why no bundle was written from uploaded contents.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
pub enum ComposeError {
    /// The upload has no file and deletes none.
    #[error("the upload has no file and deletes none; upload at least one changed file")]
    #[code(BrowserArtifactFilesMissing)]
    NoFiles,
    /// A path breaks a rule for paths.
    #[error("the path {path:?} is not allowed: {rule}")]
    #[code(BrowserArtifactPathInvalid)]
    Path {
        /// The path, shortened.
        path: String,
        /// The rule that the path breaks.
        rule: &'static str,
    },
    /// A path lies in no directory of the session.
    #[error("the path {path:?} lies in none of the session's directories, which are {roots}")]
    #[code(BrowserArtifactPathInvalid)]
    Outside {
        /// The path, shortened.
        path: String,
        /// Names of the directories of the session.
        roots: String,
    },
    /// Two paths are equal, at least on a file system that ignores case.
    #[error(
        "the paths {path:?} and {other:?} are the same on a file system that ignores case; use one spelling"
    )]
    #[code(BrowserArtifactPathDuplicate)]
    Duplicate {
        /// Path in the upload.
        path: String,
        /// Other path, in the upload or in the baseline.
        other: String,
    },
    /// A path would be a file and a directory, or leads through a link of the baseline.
    #[error(
        "{path:?} cannot be written, because {other:?} exists with another type (file, directory or link); delete that entry first"
    )]
    #[code(BrowserArtifactPathInvalid)]
    Occupied {
        /// Path in the upload.
        path: String,
        /// Path of the entry that is in the way.
        other: String,
    },
    /// A path to delete does not exist.
    #[error("{path:?} cannot be deleted, because the code of the session has no such file")]
    #[code(BrowserArtifactFileInvalid)]
    NothingToDelete {
        /// The path to delete.
        path: String,
    },
    /// The upload has too many files.
    #[error("the upload has more than {limit} files; upload the changed files only")]
    #[code(ArtifactTooLarge)]
    TooMany {
        /// Maximum number of files.
        limit: usize,
    },
    /// The upload is too large.
    #[error("the upload has more than {limit} bytes; upload the changed files only")]
    #[code(ArtifactTooLarge)]
    TooLarge {
        /// Maximum number of bytes of all files together.
        limit: usize,
    },
    /// Nothing differs from the baseline.
    #[error(
        "the uploaded contents equal the code with which the session began, so there is no change to keep"
    )]
    #[code(BrowserArtifactUnchanged)]
    Unchanged,
    /// The baseline cannot be used.
    #[error(
        "the code with which the session began cannot be used: the baseline of {root} {reason}; start a new session"
    )]
    #[code(BrowserArtifactBaselineInvalid)]
    Baseline {
        /// Name of the directory.
        root: String,
        /// What is wrong with its baseline.
        reason: String,
    },
    /// A temporary file could not be written.
    #[error(
        "the changes could not be computed, because a temporary file in the state directory could not be written: {source}; check its free space"
    )]
    #[code(BundleWriteFailed)]
    Work {
        /// Error number of the system call that failed.
        #[source]
        source: Errno,
    },
    /// The bundle of this change is stored, but is damaged.
    #[error(
        "a damaged bundle is stored under the id of this change, {run_id}; discard that bundle first"
    )]
    #[code(ArtifactImportConflict)]
    Damaged {
        /// Id of the stored bundle.
        run_id: RunId,
    },
    /// The changes exceed a limit of bundles.
    #[error(transparent)]
    #[code(source)]
    Capture(#[from] CaptureError),
    /// The bundle could not be written, or a changed file contains a secret.
    #[error(transparent)]
    #[code(source)]
    Bundle(#[from] BundleError),
    /// The store cannot be used.
    #[error(transparent)]
    #[code(source)]
    Store(#[from] StoreError),
}

impl From<Errno> for ComposeError {
    fn from(source: Errno) -> Self {
        Self::Work { source }
    }
}
