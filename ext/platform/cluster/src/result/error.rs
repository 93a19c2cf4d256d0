//! Error types of results and their mapping to error codes.

use crate::bus::BusError;
use crate::task::TaskError;
use crate::trust::UntrustedNode;
use wp_codebox_artifacts::{AdoptError, ArchiveError, AttestationError, ImportError, MembersError};
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode};

/// Why the submitting host refuses a result.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(
    ClusterResultInvalid,
    hint = "the result was not stored; before you submit the task again, check version and key of the node that made it, and who can write to the message server"
)]
pub enum Refusal {
    /// The result is of another run, epoch or task.
    #[error(
        "the result belongs to another {what} than the run's record: {found} instead of {expected}"
    )]
    Foreign {
        /// What differs: `run`, `submitter`, `epoch`, `task`, `node` or `cluster` in the provenance.
        what: &'static str,
        /// Value in the record or task.
        expected: String,
        /// Value in the result, shortened.
        found: String,
    },
    /// The key of the signer is not listed for the node.
    #[error(transparent)]
    #[code(transparent)]
    Untrusted(#[from] UntrustedNode),
    /// The result or its bundle has no valid signature over all of it.
    #[error("the signature of the {what} is not valid: {detail}")]
    Signature {
        /// `result` or `bundle`.
        what: &'static str,
        /// What is wrong with it.
        detail: String,
    },
    /// The answer of the node states something else than its bundle.
    #[error("the node's answer does not agree with its bundle in \"{field}\"")]
    Disagrees {
        /// Member of the answer.
        field: &'static str,
    },
}

impl From<(&'static str, AttestationError)> for Refusal {
    fn from((what, error): (&'static str, AttestationError)) -> Self {
        Self::Signature {
            what,
            detail: error.to_string(),
        }
    }
}

/// Why a result could not be packed, or not taken over.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultError {
    /// The run has no result, because it has not ended or ended with an error.
    #[error(
        "the record of the run contains no result: the run has not ended, or it ended with an error"
    )]
    NoResult,
    /// The stored object is not the one that the record names.
    #[error("the stored result is not the one in the run's record: {detail}")]
    OtherObject {
        /// What differs.
        detail: String,
    },
    /// The object is not in the format of results.
    #[error("the result is damaged: {detail}")]
    Damaged {
        /// What is wrong.
        detail: String,
    },
    /// The submitting host refuses the result.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The bundle in the result cannot be read.
    #[error("the bundle of the result cannot be read: {source}")]
    Members {
        /// Why.
        #[from]
        source: MembersError,
    },
    /// The bundle is refused or cannot be stored.
    #[error(transparent)]
    Bundle(#[from] AdoptError<Refusal>),
    /// The bundle of the run cannot be packed.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A temporary file cannot be used.
    #[error(
        "the temporary file of a result cannot be {step}: {source}; check space of the directory for temporary files"
    )]
    Temporary {
        /// Failed operation: `created`, `written` or `read`.
        step: &'static str,
        /// I/O error of the operation.
        #[source]
        source: std::io::Error,
    },
    /// The task of the run cannot be read.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The message server refused or failed.
    #[error(transparent)]
    Bus(#[from] BusError),
}

impl CodedError for ResultError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::NoResult => ErrorCode::ClusterMissing,
            Self::OtherObject { .. } | Self::Damaged { .. } => ErrorCode::ClusterResultInvalid,
            Self::Refused(refusal) => refusal.code(),
            Self::Members { source } => match source {
                MembersError::Temporary { .. } => source.code(),
                _ => ErrorCode::ClusterResultInvalid,
            },
            Self::Bundle(error) => match error {
                // These are faults of this host, or another bundle of the run is stored here.
                AdoptError::Import(
                    error @ (ImportError::Store { .. } | ImportError::Occupied { .. }),
                ) => error.code(),
                AdoptError::Refused(refusal) => refusal.code(),
                _ => ErrorCode::ClusterResultInvalid,
            },
            Self::Archive(error) => error.code(),
            Self::Temporary { .. } => ErrorCode::ArtifactImportCopyFailed,
            Self::Task(error) => error.code(),
            Self::Bus(error) => error.code(),
        }
    }

    fn body(&self) -> ErrorBody {
        match self {
            Self::Task(error) => error.body(),
            Self::Bus(error) => error.body(),
            Self::Archive(error) => error.body(),
            Self::Refused(refusal) | Self::Bundle(AdoptError::Refused(refusal)) => refusal.body(),
            Self::NoResult
            | Self::OtherObject { .. }
            | Self::Damaged { .. }
            | Self::Members { .. }
            | Self::Bundle(_)
            | Self::Temporary { .. } => ErrorBody::new(self.code(), self.to_string()),
        }
    }
}
