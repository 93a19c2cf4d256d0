//! A check of `doctor` and its result.

/// One check of the host and its result.
#[derive(Debug)]
pub struct Check {
    /// Name of the check.
    pub id: &'static str,
    /// Result.
    pub status: Status,
    /// What was found.
    pub message: String,
    /// What to do, if something can be improved.
    pub fix: Option<String>,
}

/// Result of a check, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// As it should be.
    Ok,
    /// Sandboxes run, but with less isolation or function than possible.
    Warning,
    /// Sandboxes cannot run.
    Error,
}

impl Status {
    /// Returns the word of documents and of lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl Check {
    pub(super) fn new(id: &'static str, status: Status, message: impl Into<String>) -> Self {
        Self {
            id,
            status,
            message: message.into(),
            fix: None,
        }
    }
}
