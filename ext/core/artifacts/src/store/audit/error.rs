//! Error type of the audit log and its mapping to error codes.

use crate::attestation::KeyError;
use crate::canonical::CanonicalError;
use rustix::io::Errno;
use wp_codebox_contracts::CodedError;

/// Maximum length of one record in the log, in bytes.
pub(super) const MAX_LINE: usize = 1024 * 1024;

/// Reason why an operation on the audit log failed.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(AuditFailed)]
pub enum AuditError {
    /// The log could not be opened, locked, read or written.
    #[error(
        "the audit log could not be {step}: {source}; check owner and free space of the state directory"
    )]
    Io {
        /// Failed operation: `opened`, `locked`, `read` or `written`.
        step: &'static str,
        /// Error number of the system call that failed.
        #[source]
        source: Errno,
    },
    /// The last line of the log is not a valid record.
    #[error(
        "the last line of audit.jsonl is damaged; keep audit.jsonl and the site's file in anchors/ for inspection, and move both away, so that a new log begins"
    )]
    Damaged,
    /// The record exceeds the maximum length of a record in the log.
    #[error("the audit record may have at most {MAX_LINE} bytes; shorten its fields")]
    TooLarge,
    /// The record exceeds the limits of canonical JSON, so it has no hash.
    #[error("the audit record exceeds a limit of canonical JSON: {0}; shorten it")]
    Canonical(#[from] CanonicalError),
    /// The host key that signs the anchor cannot be used.
    #[error(transparent)]
    #[code(source)]
    Key(#[from] KeyError),
}

pub(super) const fn io(step: &'static str, source: Errno) -> AuditError {
    AuditError::Io { step, source }
}
