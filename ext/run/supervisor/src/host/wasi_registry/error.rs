//! Errors of the registry of WASI tools.

use std::io;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode, WasiToolError, WasiToolId};

/// Why a WASI tool cannot be registered, found, used or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WasiRegistryError {
    /// The program that runs the tools does not exist.
    #[error("WASI tools need the program wp-codebox-wasi, which is not at {path}")]
    RunnerMissing {
        /// Where the program is looked for.
        path: PathBuf,
    },
    /// The program that runs the tools refused a tool.
    #[error("{}", .body.message)]
    Runner {
        /// Code and message of the program.
        body: Box<ErrorBody>,
    },
    /// The program that runs the tools failed without a reason that can be read.
    #[error("wp-codebox-wasi {action} failed: {reason}")]
    RunnerFailed {
        /// Command of the program.
        action: &'static str,
        /// How it ended.
        reason: String,
    },
    /// The program that runs the tools did not end in time and was killed.
    #[error("wp-codebox-wasi {action} did not end within {seconds} seconds")]
    RunnerTimeout {
        /// Command of the program.
        action: &'static str,
        /// The limit in seconds.
        seconds: u64,
    },
    /// No tool has this id.
    #[error("no WASI tool {id} is registered")]
    Unknown {
        /// The id.
        id: WasiToolId,
    },
    /// The id, or its name in model APIs, already belongs to a tool.
    #[error("the WASI tool {id} cannot be registered: {reason}")]
    Taken {
        /// The id.
        id: WasiToolId,
        /// Which tool has the name.
        reason: String,
    },
    /// The registry is full.
    #[error("at most {most} WASI tools can be registered")]
    TooMany {
        /// The limit.
        most: usize,
    },
    /// The definition is not valid.
    #[error("{source}")]
    Definition {
        /// What is wrong with it.
        source: WasiToolError,
    },
    /// The module differs from the one in the definition.
    #[error(
        "the module of the WASI tool {id} is not the one that its definition names: size or SHA-256 differ"
    )]
    Digest {
        /// The tool.
        id: WasiToolId,
    },
    /// Another user could have changed a file, or it is not what the registry wrote.
    #[error("the registry of WASI tools cannot be trusted: {}: {reason}", .path.display())]
    Untrusted {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A file cannot be read.
    #[error("the registry of WASI tools cannot be read: {}: {source}", .path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// Reason from the kernel.
        source: rustix::io::Errno,
    },
    /// A file cannot be read or written.
    #[error("the registry of WASI tools cannot be used: {}: {source}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Reason from the kernel.
        source: io::Error,
    },
}

impl WasiRegistryError {
    pub(super) fn io(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        move |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}

impl CodedError for WasiRegistryError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::RunnerMissing { .. } => ErrorCode::WasiRunnerMissing,
            Self::Runner { body } => body.code,
            Self::RunnerFailed { .. } => ErrorCode::WasiRunnerFailed,
            Self::RunnerTimeout { .. } => ErrorCode::WasiDeadline,
            Self::Unknown { .. } => ErrorCode::WasiToolUnknown,
            Self::Taken { .. } => ErrorCode::WasiToolTaken,
            Self::TooMany { .. } => ErrorCode::LimitInvalid,
            Self::Definition { source } => source.code(),
            Self::Digest { .. } => ErrorCode::WasiDigestMismatch,
            Self::Untrusted { .. } => ErrorCode::WasiToolUntrusted,
            Self::Read { .. } | Self::Io { .. } => ErrorCode::WasiRegistryFailed,
        }
    }

    fn body(&self) -> ErrorBody {
        let body = ErrorBody::new(self.code(), self.to_string());
        match self {
            Self::RunnerMissing { .. } => body.hint(
                "build it with `make wasi` in a checkout, then copy target/release/wp-codebox-wasi beside wp-codebox-launch",
            ),
            Self::Runner { body } => (**body).clone(),
            Self::RunnerTimeout { seconds, .. } => body.with("limit", *seconds * 1000).hint(
                "try again when the host has less load, or register a smaller module",
            ),
            Self::Unknown { .. } => body.hint("wp-codebox tools list prints the registered tools"),
            Self::Taken { .. } => body.hint(
                "give the tool another id, or remove the registered one: wp-codebox tools remove ID",
            ),
            Self::TooMany { .. } => body.hint("remove a tool: wp-codebox tools remove ID"),
            Self::Definition { source } => source.body(),
            Self::Digest { .. } => {
                body.hint("register the module that the definition names, or correct module.sha256 and module.bytes")
            }
            Self::Untrusted { .. } => {
                body.hint("remove the tool (wp-codebox tools remove ID) and register it again; if the path is not of one tool, correct its owner and mode, or remove it")
            }
            Self::RunnerFailed { .. } | Self::Read { .. } | Self::Io { .. } => body,
        }
    }
}
