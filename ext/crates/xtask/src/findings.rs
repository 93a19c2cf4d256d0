//! What a task reports: one line per finding, or the reason it could not run at all.

use std::path::{Path, PathBuf};

/// Why a task did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The task ran and found these.
    #[error("{} finding(s)", .0.len())]
    Findings(Vec<String>),
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A program that the task needs could not be started.
    #[error("cannot start {program}: {source}; run `make provision` first")]
    Start {
        /// Which one.
        program: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A program answered something that is not JSON.
    #[error("{program} did not answer JSON: {source}")]
    Answer {
        /// Which one.
        program: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

impl TaskError {
    /// Turns an I/O error on `path` into a task error.
    pub fn file(path: &Path) -> impl FnOnce(std::io::Error) -> TaskError {
        let path = path.to_path_buf();
        move |source| TaskError::File { path, source }
    }
}

/// `Ok` when nothing was found.
pub fn settle(findings: Vec<String>) -> Result<(), TaskError> {
    if findings.is_empty() {
        Ok(())
    } else {
        Err(TaskError::Findings(findings))
    }
}
