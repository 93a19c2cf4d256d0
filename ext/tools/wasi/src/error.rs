//! Errors of the runner and their public codes.

use wp_codebox_contracts::{CodedError, ErrorBody, WasiToolError};

/// Reason why a tool was not run, or did not end by itself. The texts contain no host path: the
/// answer of a tool may be shown to a model.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(detail = Self::detail)]
pub enum RunnerError {
    /// The definition does not match its schema.
    #[error("{source}")]
    #[code(transparent)]
    Definition {
        /// What is wrong with it.
        #[source]
        source: WasiToolError,
    },
    /// The module is not the one that the definition names.
    #[error("the module has {found}, but its definition states {expected}")]
    #[code(
        WasiDigestMismatch,
        hint = "register the tool again (`wp-codebox tools add`), with the module that belongs to the definition"
    )]
    Digest {
        /// Digest or size that the definition names.
        expected: String,
        /// Digest or size of the module.
        found: String,
    },
    /// The file is no module that can be run as a command.
    #[error("the file is neither a WASI command module nor a WASI command component: {reason}")]
    #[code(WasiModuleInvalid)]
    Module {
        /// What is missing or malformed.
        reason: String,
    },
    /// The module imports something that it does not get.
    #[error("the module imports {import}, which tools may not use")]
    #[code(
        WasiImportRefused,
        hint = "build the tool without this import; docs/wasi-tools.md lists what tools may use"
    )]
    Import {
        /// Module and name of the import.
        import: String,
    },
    /// The compiled code cannot be used.
    #[error("the compiled code is refused: {reason}")]
    #[code(
        WasiCompiledRefused,
        hint = "compile the module again with `compile` of this version of wp-codebox-wasi"
    )]
    Compiled {
        /// Why it is not used.
        reason: &'static str,
    },
    /// A directory of the call cannot be given to the tool.
    #[error("the directory for {guest:?} is refused: {reason}")]
    #[code(WasiDirectoryRefused)]
    Directory {
        /// Path at which the tool would see it.
        guest: String,
        /// Why it is refused.
        reason: String,
    },
    /// The input of the call is too large.
    #[error("the tool's input has more than {limit} bytes")]
    #[code(InputInvalid)]
    Input {
        /// Largest size in bytes.
        limit: u64,
    },
    /// The tool has used its fuel.
    #[error("the tool has used up its limit of computation, {fuel} units of fuel")]
    #[code(WasiFuelExhausted)]
    Fuel {
        /// Fuel of its definition.
        fuel: u64,
    },
    /// The tool needs more memory than it may use.
    #[error(
        "the tool needs more than its {limit} bytes of memory, or too many tables or instances"
    )]
    #[code(WasiMemoryExceeded)]
    Memory {
        /// Limit of its definition in bytes.
        limit: u64,
    },
    /// The tool did not end in time.
    #[error("the tool did not end within {wall_ms} milliseconds")]
    #[code(WasiDeadline)]
    Deadline {
        /// Limit in milliseconds.
        wall_ms: u64,
    },
    /// The tool wrote too much.
    #[error("the tool wrote more than {limit} bytes to its standard output or its standard error")]
    #[code(WasiOutputTooLarge)]
    Output {
        /// Limit of its definition in bytes.
        limit: u64,
    },
    /// The tool trapped.
    #[error("a WebAssembly trap (fault) ended the tool: {reason}")]
    #[code(WasiTrap)]
    Trap {
        /// Name of the trap.
        reason: String,
    },
    /// The exit status of the tool is reserved or out of range.
    #[error("the tool ended with exit status {status}, but tools may use 0 to 123 only")]
    #[code(WasiExitInvalid)]
    Exit {
        /// Status that the module passed to `proc_exit`.
        status: i32,
    },
    /// The runner could not read or write a file, or the runtime refused its settings.
    #[error("{what} failed: {reason}")]
    #[code(WasiRunnerFailed)]
    Runner {
        /// What the runner did.
        what: &'static str,
        /// Message of the operating system or the runtime.
        reason: String,
    },
}

impl RunnerError {
    /// Returns a conversion of an error of the operating system or the runtime.
    pub fn while_doing<E: std::fmt::Display>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Runner {
            what,
            reason: error.to_string(),
        }
    }

    /// Returns the exit status of the runner: 124 at the deadline, 125 for every other error.
    #[must_use]
    pub const fn exit_status(&self) -> u8 {
        match self {
            Self::Deadline { .. } => 124,
            _ => 125,
        }
    }

    /// The body is the JSON object that the runner writes as its last line.
    fn detail(&self, body: ErrorBody) -> ErrorBody {
        match self {
            Self::Digest { expected, found } => body
                .with("expected", expected.as_str())
                .with("found", found.as_str()),
            Self::Import { import } => body.with("import", import.as_str()),
            Self::Directory { guest, .. } => body.with("guest", guest.as_str()),
            Self::Input { limit } | Self::Memory { limit } | Self::Output { limit } => {
                body.with("limit", *limit)
            }
            Self::Fuel { fuel } => body.with("limit", *fuel),
            Self::Deadline { wall_ms } => body.with("limit", *wall_ms),
            Self::Trap { reason } => body.with("trap", reason.as_str()),
            Self::Exit { status } => body.with("status", *status),
            Self::Definition { .. }
            | Self::Module { .. }
            | Self::Compiled { .. }
            | Self::Runner { .. } => body,
        }
    }
}
