//! Error type of tasks and its mapping to error codes.

use crate::bus::BusError;
use crate::layers::LayerError;
use wp_codebox_contracts::{CodedError, ErrorBody, Sha256Hex};
use wp_codebox_policy::MountError;

/// Reason why a request cannot become a task, or a task a request.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(detail = Self::detail)]
pub enum TaskError {
    /// A field of the request needs the submitting host.
    #[error("{field} cannot be sent to another host: {why}")]
    #[code(PlacementUnsupported)]
    Unsupported {
        /// Name of the field, such as `parent_tools` or `mounts[0].git`.
        field: String,
        /// What the caller can do.
        why: &'static str,
    },
    /// The caller may not show a directory or file to guests.
    #[error(transparent)]
    #[code(transparent)]
    Refused(#[from] MountError),
    /// A directory or file cannot be opened.
    #[error("{subject} cannot be opened: {source}")]
    #[code(MountSourceInvalid)]
    Open {
        /// The directory or file without its host path, such as `the source of mount /workspace`.
        subject: String,
        /// Error number of the system call that failed.
        #[source]
        source: rustix::io::Errno,
    },
    /// A source has a path that is not UTF-8, or is of the wrong type.
    #[error("{subject} {fault}")]
    #[code(MountSourceInvalid)]
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
    #[code(SecretInvalid)]
    SecretInTask {
        /// Name of the secret; `redact` for a value without a name.
        name: String,
    },
    /// The node did not get the value of a secret.
    #[error(
        "the submitting process sent no value for the secret {name} of the task; set the secret there and submit the task again"
    )]
    #[code(SecretInvalid)]
    NoValue {
        /// Name of the secret; `redact` for values without names.
        name: String,
    },
    /// The document is larger than the limit.
    #[error(
        "the task has {bytes} bytes, but at most {limit} are allowed; put large contents into mounted directories"
    )]
    #[code(ClusterObjectTooLarge)]
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
    #[code(ClusterUnreadable)]
    Unreadable {
        /// What is wrong.
        detail: String,
    },
    /// A layer of the task is not on this node.
    #[error("the layer (an archive of files) {digest} of the task is not on this node")]
    #[code(ClusterMissing)]
    NoLayer {
        /// Digest of the layer.
        digest: Sha256Hex,
    },
    /// A layer cannot be packed or stored.
    #[error(transparent)]
    #[code(transparent)]
    Layer(#[from] LayerError),
    /// The message server refused or failed.
    #[error(transparent)]
    #[code(transparent)]
    Bus(#[from] BusError),
}

impl TaskError {
    fn detail(&self, body: ErrorBody) -> ErrorBody {
        match self {
            Self::Unsupported { field, .. } => body.with("field", field.as_str()),
            _ => body,
        }
    }
}
