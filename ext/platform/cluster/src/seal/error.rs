//! Error type of sealed secrets and its mapping to error codes.

use crate::bus::BusError;
use crate::trust::UntrustedNode;
use wp_codebox_artifacts::AttestationError;
use wp_codebox_contracts::CodedError;

/// Why secrets were not asked for, sealed or opened.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
pub enum SealError {
    /// The process that has the secrets did not answer.
    #[error(
        "the process that submitted the run does not answer, so its secrets are not available: {detail}"
    )]
    #[code(
        SecretSourceGone,
        hint = "submit the task again, and let the process that submits it run until the run has ended"
    )]
    SourceGone {
        /// What the message server reports.
        detail: String,
    },
    /// The request has no valid signature.
    #[error("the request for secrets has no valid signature, so none was sent: {source}")]
    #[code(ClusterNodeUntrusted)]
    Signature {
        /// What is wrong.
        #[from]
        source: AttestationError,
    },
    /// The node's key is not listed.
    #[error(transparent)]
    #[code(source)]
    Untrusted(#[from] UntrustedNode),
    /// The record does not say that the asking process has this claim.
    #[error("the request for secrets does not match the run's record, so none was sent: {detail}")]
    #[code(ClusterDenied)]
    NotClaimed {
        /// What differs.
        detail: &'static str,
    },
    /// A message is not in the expected format.
    #[error(
        "the {what} for secrets cannot be read; install the same version on the node and on the submitting host"
    )]
    #[code(ClusterUnreadable)]
    Malformed {
        /// `request` or `reply`.
        what: &'static str,
    },
    /// The reply was not made for this request.
    #[error("the reply with the secrets cannot be decrypted: it was made for another request")]
    #[code(ClusterUnreadable)]
    Opening,
    /// The random generator or the cipher failed.
    #[error(
        "the secrets cannot be encrypted, because the random generator or the cipher of this host failed"
    )]
    #[code(Internal)]
    Cipher,
    /// The values are too large for one message.
    #[error(
        "the message with the secrets has {bytes} bytes, but at most {limit} are allowed; give the run fewer or shorter secrets"
    )]
    #[code(ClusterObjectTooLarge)]
    TooLarge {
        /// Size of the message in bytes.
        bytes: u64,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// The message server refused or failed.
    #[error(transparent)]
    #[code(transparent)]
    Bus(#[from] BusError),
}
