//! One check of the doctor.

/// One thing that was looked at.
#[derive(Debug)]
pub(super) struct Check {
    pub id: &'static str,
    pub status: Status,
    pub message: String,
    pub fix: Option<String>,
}

/// How a check ended, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Status {
    Ok,
    /// Sandboxes run, with less than there could be.
    Warning,
    /// No sandbox runs.
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
