//! Tests of the contract of an extension, for every implementation.
//!
//! [`check`] provisions sandboxes of one profile and uses them by every method of the trait. It
//! returns every violation; an empty list means that the extension conforms. A sandbox of the
//! profile must have `/bin/sh`, `cat` and `sleep`, allow programs, and have a writable workspace.

mod checks;
mod subject;

pub use subject::Subject;

use crate::extension::SandboxId;

/// A rule that the extension violates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Name of the check.
    pub check: &'static str,
    /// What was expected and what happened.
    pub message: String,
}

/// Runs the whole suite. `new_id` returns an unused sandbox id on each call.
#[must_use]
pub fn check(subject: &Subject, new_id: &(dyn Fn() -> SandboxId + Sync)) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (name, check) in checks::ALL {
        if let Err(message) = check(subject, new_id) {
            violations.push(Violation {
                check: name,
                message,
            });
        }
    }
    violations
}
