//! Selects the process wrapper (a sandbox around the launcher) of a run, and checks that its
//! program is installed.

use crate::audit::kind_name;
use crate::{Bubblewrap, Gvisor, NoSandbox, ProcessSandbox, Unwrapped};
use rustix::fs::Access;
use std::path::Path;
use std::sync::Arc;
use wp_codebox_contracts::{
    CodedError, ErrorBody, OuterSandbox, OuterSandboxKind, OuterSandboxNeed,
};

/// Directories in which an installed wrapper is searched when its path is not configured; `PATH` is
/// not used.
const DIRECTORIES: [&str; 3] = ["/usr/bin", "/usr/local/bin", "/bin"];

/// The process wrapper selected for a run.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The selected wrapper; [`NoSandbox`] or [`Unwrapped`] if the launcher runs without one.
    pub sandbox: Arc<dyn ProcessSandbox>,
    /// Notices for the caller about a wrapper that is not used, one sentence each.
    pub notices: Vec<String>,
}

/// Reason why the requested process wrapper cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
#[code(detail = Self::detail)]
pub enum WrapperError {
    /// The request requires a wrapper whose program is not installed.
    #[error(
        "the outer sandbox {kind} is required, but its program {program} is missing or not executable for the user that runs sandboxes"
    )]
    #[code(SandboxWrapperMissing)]
    Missing {
        /// Kind of wrapper, for the error message.
        kind: &'static str,
        /// Name or path of the program that was searched.
        program: String,
    },
    /// The configured path of the wrapper program is not absolute.
    #[error("the path of the outer sandbox's program must be absolute, but is {program:?}")]
    #[code(InputInvalid, hint = "use an absolute path, such as /usr/bin/bwrap")]
    Relative {
        /// Program as configured.
        program: String,
    },
    /// The settings name a program but no kind of wrapper.
    #[error("the settings name a program for the outer sandbox, but not the kind of outer sandbox")]
    #[code(
        InputInvalid,
        hint = "set --outer-sandbox or wp_codebox.outer_sandbox to bubblewrap or gvisor as well, or leave the program out"
    )]
    Pointless,
}

impl WrapperError {
    fn detail(&self, body: ErrorBody) -> ErrorBody {
        match self {
            Self::Missing { kind, .. } => body
                .hint(format!(
                    "install it (Debian package {}), or set the path of its program",
                    package(kind)
                ))
                .hint("to run without an outer sandbox, use --outer-sandbox none or --outer-sandbox-optional (`tools run`: --wrapper none; php.ini: wp_codebox.outer_sandbox=none)"),
            _ => body,
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

/// Selects the process wrapper that a run requests. `directory` is an existing directory in which
/// the wrapper program may keep its own files. A wrapper that is not installed is an error if the
/// run requires it, otherwise a notice.
pub fn choose(wanted: &OuterSandbox, directory: &Path) -> Result<Choice, WrapperError> {
    let kind = kind_name(wanted.kind);
    let (name, found) = match wanted.kind {
        OuterSandboxKind::None if wanted.program.is_some() => return Err(WrapperError::Pointless),
        OuterSandboxKind::None => return Ok(unnoticed(NoSandbox)),
        OuterSandboxKind::Bubblewrap => ("bwrap", search("bwrap", wanted.program.as_deref())?),
        OuterSandboxKind::Gvisor => ("runsc", search("runsc", wanted.program.as_deref())?),
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
            let reason =
                format!("the program of the outer sandbox {kind} is missing or not executable");
            let notice = format!(
                "{reason}; the run continues without it, because the request does not require it"
            );
            Ok(Choice {
                sandbox: Arc::new(Unwrapped { reason }),
                notices: vec![notice],
            })
        }
    }
}

/// Returns the absolute path of the program of a wrapper that is required; `None` for the kind
/// `none`, which has no program. `program` is the configured path.
pub fn find_program(
    kind: OuterSandboxKind,
    program: Option<&str>,
) -> Result<Option<String>, WrapperError> {
    let name = match kind {
        OuterSandboxKind::None if program.is_some() => return Err(WrapperError::Pointless),
        OuterSandboxKind::None => return Ok(None),
        OuterSandboxKind::Bubblewrap => "bwrap",
        OuterSandboxKind::Gvisor => "runsc",
    };
    match search(name, program)? {
        Some(found) => Ok(Some(found)),
        None => Err(WrapperError::Missing {
            kind: kind_name(kind),
            program: program.unwrap_or(name).to_owned(),
        }),
    }
}

/// Returns the path of a wrapper's program: the configured one, or the first one in
/// [`DIRECTORIES`]; `None` if it is missing or not executable.
fn search(name: &str, program: Option<&str>) -> Result<Option<String>, WrapperError> {
    match program {
        Some(program) if !program.starts_with('/') => Err(WrapperError::Relative {
            program: program.to_owned(),
        }),
        Some(program) => Ok(is_program(program).then(|| program.to_owned())),
        None => Ok(DIRECTORIES
            .iter()
            .map(|directory| format!("{directory}/{name}"))
            .find(|program| is_program(program))),
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
