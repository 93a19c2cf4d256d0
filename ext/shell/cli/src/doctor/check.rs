//! A check of `doctor` and its result.

/// One check of the host and its result.
#[derive(Debug)]
pub(super) struct Check {
    pub id: &'static str,
    pub status: Status,
    pub message: String,
    pub fix: Option<String>,
}

/// Result of a check, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Status {
    Ok,
    /// Sandboxes run, but with less isolation or function than possible.
    Warning,
    /// Sandboxes cannot run.
    Error,
}

impl Status {
    pub(super) const fn name(self) -> &'static str {
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
