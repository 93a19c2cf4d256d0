//! Selects a process wrapper whose program is installed.

use super::audit::kind_name;
use super::{Bubblewrap, Gvisor, NoSandbox, ProcessSandbox, Unwrapped};
use rustix::fs::Access;
use std::path::Path;
use std::sync::Arc;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, OuterSandbox, OuterSandboxKind, OuterSandboxNeed,
};

/// Directories searched for a wrapper without a configured path; `PATH` is not used.
const DIRECTORIES: [&str; 3] = ["/usr/bin", "/usr/local/bin", "/bin"];

/// A wrapper that can be started.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The wrapper.
    pub sandbox: Arc<dyn ProcessSandbox>,
    /// Notices for the caller, one sentence each.
    pub notices: Vec<String>,
}

/// Reason why no wrapper can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrapperError {
    /// A required wrapper is not installed.
    #[error(
        "the outer sandbox {kind} is required, but its program {program} is missing or not executable for the user that runs sandboxes"
    )]
    Missing {
        /// Kind of wrapper.
        kind: &'static str,
        /// Program that was searched.
        program: String,
    },
    /// The program is not an absolute path.
    #[error("the outer sandbox's program {program:?} is not an absolute path")]
    Relative {
        /// Path as given.
        program: String,
    },
    /// A program is given without a kind of wrapper.
    #[error("a program for the outer sandbox is given without its kind")]
    Pointless,
}

impl WrapperError {
    /// Returns the stable error code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Missing { .. } => ErrorCode::SandboxWrapperMissing,
            Self::Relative { .. } | Self::Pointless => ErrorCode::InputInvalid,
        }
    }
    /// Converts the error for transfer to another process.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        let body = ErrorBody::new(self.code(), self.to_string());
        match self {
            Self::Missing { kind, .. } => body
                .hint(format!(
                    "install it (Debian: {}), or name its program",
                    package(kind)
                ))
                .hint("to run without it, make it optional or set it to none"),
            Self::Relative { .. } => body.hint("use an absolute path, such as /usr/bin/bwrap"),
            Self::Pointless => body.hint("set the kind as well, or leave the program out"),
        }
    }
}

fn package(kind: &str) -> &'static str {
    if kind == kind_name(OuterSandboxKind::Gvisor) {
        "runsc"
    } else {
        "bubblewrap"
    }
}

/// Selects the wrapper that a run requests. `directory` is an existing directory for the wrapper's
/// own state. A missing wrapper is an error if it is required and a notice if it is preferred.
pub fn choose(wanted: &OuterSandbox, directory: &Path) -> Result<Choice, WrapperError> {
    let name = match wanted.kind {
        OuterSandboxKind::None if wanted.program.is_some() => return Err(WrapperError::Pointless),
        OuterSandboxKind::None => return Ok(unnoticed(NoSandbox)),
        OuterSandboxKind::Bubblewrap => "bwrap",
        OuterSandboxKind::Gvisor => "runsc",
    };
    let kind = kind_name(wanted.kind);
    let found = match &wanted.program {
        Some(program) if !program.starts_with('/') => {
            return Err(WrapperError::Relative {
                program: program.clone(),
            });
        }
        Some(program) => is_program(program).then(|| program.clone()),
        None => DIRECTORIES
            .iter()
            .map(|directory| format!("{directory}/{name}"))
            .find(|program| is_program(program)),
    };
    match (found, wanted.need) {
        (Some(program), _) => Ok(match wanted.kind {
            OuterSandboxKind::None => unnoticed(NoSandbox),
            OuterSandboxKind::Bubblewrap => unnoticed(Bubblewrap { program }),
            OuterSandboxKind::Gvisor => unnoticed(Gvisor {
                program,
                directory: directory.to_string_lossy().into_owned(),
            }),
        }),
        (None, OuterSandboxNeed::Required) => Err(WrapperError::Missing {
            kind,
            program: wanted.program.clone().unwrap_or_else(|| name.to_owned()),
        }),
        (None, OuterSandboxNeed::Preferred) => {
            let reason = format!("the outer sandbox {kind} is not installed here");
            let notice = format!("{reason}; the run went on without it, as asked");
            Ok(Choice {
                sandbox: Arc::new(Unwrapped { reason }),
                notices: vec![notice],
            })
        }
    }
}

fn unnoticed(sandbox: impl ProcessSandbox + 'static) -> Choice {
    Choice {
        sandbox: Arc::new(sandbox),
        notices: Vec::new(),
    }
}

fn is_program(path: &str) -> bool {
    Path::new(path).is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok()
}
