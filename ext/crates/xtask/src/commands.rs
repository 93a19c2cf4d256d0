//! Runs the tools that already know a rule: cargo, php, phpcs, the test scripts.

use crate::findings::TaskError;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a tool said.
pub struct Answer {
    /// Whether it exited with 0.
    pub success: bool,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard output and error as text, for a finding.
    pub said: String,
}

/// Runs a tool and keeps what it says.
pub fn quiet(root: &Path, program: &str, arguments: &[&str]) -> Result<Answer, TaskError> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| TaskError::Start {
            program: program.to_owned(),
            source,
        })?;
    let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.push_str(&String::from_utf8_lossy(&output.stderr));
    Ok(Answer {
        success: output.status.success(),
        stdout: output.stdout,
        said,
    })
}

/// Runs a tool on the caller's terminal; answers whether it exited with 0.
pub fn shown(root: &Path, program: &str, arguments: &[&str]) -> Result<bool, TaskError> {
    Command::new(program)
        .args(arguments)
        .current_dir(root)
        .stdin(Stdio::null())
        .status()
        .map(|status| status.success())
        .map_err(|source| TaskError::Start {
            program: program.to_owned(),
            source,
        })
}

/// The cargo that runs this task.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// Whether `program` can be started at all.
pub fn exists(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .stdin(Stdio::null())
        .status()
        .is_ok()
}
