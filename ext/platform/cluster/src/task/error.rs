//! Error type of tasks and its mapping to error codes.

use crate::bus::BusError;
use crate::layers::LayerError;
use wp_codebox_contracts::{ErrorBody, ErrorCode, Sha256Hex};
use wp_codebox_policy::MountError;

/// Reason why a request cannot become a task, or a task a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// A field of the request needs the submitting host.
    #[error("{field} cannot be sent to another host: {why}")]
    Unsupported {
        /// Name of the field, such as `parent_tools` or `mounts[0].git`.
        field: String,
        /// What the caller can do.
        why: &'static str,
    },
    /// The caller may not show a directory or file to guests.
    #[error(transparent)]
    Refused(#[from] MountError),
    /// A directory or file cannot be opened.
    #[error("{subject} cannot be opened: {source}")]
    Open {
        /// The directory or file without its host path, such as `the source of mount /workspace`.
        subject: String,
        /// Error number of the system call that failed.
        #[source]
        source: rustix::io::Errno,
    },
    /// A source has a path that is not UTF-8, or is of the wrong type.
    #[error("{subject} {fault}")]
    Source {
        /// The directory or file without its host path.
        subject: String,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// The value of a secret stands in a part of the request that other hosts store as plain text.
    #[error(
        "the value of the secret {name} is written in the task itself; write the secret's name there instead"
    )]
    SecretInTask {
        /// Name of the secret; `redact` for a value without a name.
        name: String,
    },
    /// The node did not get the value of a secret.
    #[error(
        "the submitting process sent no value for the secret {name} of the task; set the secret there and submit the task again"
    )]
    NoValue {
        /// Name of the secret; `redact` for values without names.
        name: String,
    },
    /// The document is larger than the limit.
    #[error(
        "the task has {bytes} bytes, but at most {limit} are allowed; put large contents into mounted directories"
    )]
    TooLarge {
        /// Size of the document in bytes.
        bytes: u64,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// The document is not one that this version writes.
    #[error(
        "the task cannot be read: {detail}; install the same version on the node and on the submitting host"
    )]
    Unreadable {
        /// What is wrong.
        detail: String,
    },
    /// A layer of the task is not on this node.
    #[error("the layer (an archive of files) {digest} of the task is not on this node")]
    NoLayer {
        /// Digest of the layer.
        digest: Sha256Hex,
    },
    /// A layer cannot be packed or stored.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// The message server refused or failed.
    #[error(transparent)]
    Bus(#[from] BusError),
}

impl TaskError {
    /// Returns the error's public code, which stays the same across releases.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unsupported { .. } => ErrorCode::PlacementUnsupported,
            Self::Refused(error) => error.body().code,
            Self::Open { .. } | Self::Source { .. } => ErrorCode::MountSourceInvalid,
            Self::SecretInTask { .. } | Self::NoValue { .. } => ErrorCode::SecretInvalid,
            Self::TooLarge { .. } => ErrorCode::ClusterObjectTooLarge,
            Self::Unreadable { .. } => ErrorCode::ClusterUnreadable,
            Self::NoLayer { .. } => ErrorCode::ClusterMissing,
            Self::Layer(error) => error.code(),
            Self::Bus(error) => error.code(),
        }
    }

    /// Returns public code and message with hints.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        match self {
            Self::Unsupported { field, .. } => {
                ErrorBody::new(self.code(), self.to_string()).with("field", field.as_str())
            }
            Self::Refused(error) => error.body(),
            Self::Layer(error) => error.body(),
            Self::Bus(error) => error.body(),
            Self::Open { .. }
            | Self::Source { .. }
            | Self::SecretInTask { .. }
            | Self::NoValue { .. }
            | Self::TooLarge { .. }
            | Self::Unreadable { .. }
            | Self::NoLayer { .. } => ErrorBody::new(self.code(), self.to_string()),
        }
    }
}
