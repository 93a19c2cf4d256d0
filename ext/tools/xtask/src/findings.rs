//! Result of a task: one line per finding, or the reason why the task could not run.

use std::path::{Path, PathBuf};

/// Why a task failed.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The task ran and has findings.
    #[error("the task has {} finding(s)", .0.len())]
    Findings(Vec<String>),
    /// A file could not be read or written.
    #[error("the file or directory {} could not be read or written: {source}", path.display())]
    File {
        /// Path of the file that could not be read or written.
        path: PathBuf,
        /// Error of reading or writing.
        #[source]
        source: std::io::Error,
    },
    /// A program that the task needs could not be started.
    #[error("the program {program} cannot be started: {source}; run `make provision` first")]
    Start {
        /// Name of the program that could not be started.
        program: String,
        /// Error of starting it.
        #[source]
        source: std::io::Error,
    },
    /// A file is not the JSON that it should be.
    #[error("the file {} is not JSON, or does not have the members that it should have: {source}", path.display())]
    Json {
        /// Path of the file.
        path: PathBuf,
        /// Error of the JSON parser.
        #[source]
        source: serde_json::Error,
    },
    /// A program printed something other than JSON.
    #[error("the program {program} printed text that is not valid JSON: {source}")]
    Answer {
        /// Name of the program that printed it.
        program: String,
        /// Error of the JSON parser.
        #[source]
        source: serde_json::Error,
    },
}

impl TaskError {
    /// Converts an I/O error on `path` to a task error.
    pub fn file(path: &Path) -> impl FnOnce(std::io::Error) -> TaskError {
        let path = path.to_path_buf();
        move |source| TaskError::File { path, source }
    }
}

/// Returns the findings of a check, also when they kept it from running to its end.
pub fn collected(result: Result<Vec<String>, TaskError>) -> Result<Vec<String>, TaskError> {
    match result {
        Err(TaskError::Findings(findings)) => Ok(findings),
        other => other,
    }
}

/// Returns `Ok` if there are no findings, otherwise [`TaskError::Findings`].
pub fn settle(findings: Vec<String>) -> Result<(), TaskError> {
    if findings.is_empty() {
        Ok(())
    } else {
        Err(TaskError::Findings(findings))
    }
}
