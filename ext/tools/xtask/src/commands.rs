//! Runs external tools: cargo, php, phpcs and the test scripts.

use crate::findings::TaskError;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// Result of an external tool.
pub struct Answer {
    /// Whether the tool exited with status 0.
    pub success: bool,
    /// What the tool wrote to standard output.
    pub stdout: Vec<u8>,
    /// Standard output and standard error as text, for a finding.
    pub said: String,
}

/// Runs a tool without showing its output, and returns the output.
pub fn quiet(root: &Path, program: &str, arguments: &[&str]) -> Result<Answer, TaskError> {
    let output = command(root, program, arguments)
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

/// Runs a tool without showing its output, and returns its standard output.
///
/// # Errors
/// A finding with the output of the tool when it fails.
pub fn required(root: &Path, program: &str, arguments: &[&str]) -> Result<Vec<u8>, TaskError> {
    let answer = quiet(root, program, arguments)?;
    match answer.success {
        true => Ok(answer.stdout),
        false => Err(TaskError::Findings(vec![format!(
            "{program} {} failed: {}",
            arguments.join(" "),
            answer.said.trim()
        )])),
    }
}

/// Runs a tool with the caller's terminal; returns whether it exited with status 0.
pub fn shown(root: &Path, program: &str, arguments: &[&str]) -> Result<bool, TaskError> {
    command(root, program, arguments)
        .status()
        .map(|status| status.success())
        .map_err(|source| TaskError::Start {
            program: program.to_owned(),
            source,
        })
}

/// Prepares a tool without the variables that `cargo run` sets for this program. Some build scripts
/// depend on them: with them a cargo started here would rebuild those crates, and the user's next
/// cargo, without them, would rebuild the same crates again.
fn command(root: &Path, program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(root)
        .stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_MANIFEST_") || name.starts_with("CARGO_PKG_") {
            command.env_remove(&*name);
        }
    }
    command
}

/// Returns what cargo says about the packages of the workspace.
pub fn metadata(root: &Path) -> Result<Value, TaskError> {
    let program = cargo();
    let words = ["metadata", "--no-deps", "--format-version", "1"];
    let answer = required(root, &program, &words)?;
    serde_json::from_slice(&answer).map_err(|source| TaskError::Answer { program, source })
}

/// Returns the cargo that runs this task.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// Returns whether `program` can be started.
pub fn exists(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .stdin(Stdio::null())
        .status()
        .is_ok()
}
