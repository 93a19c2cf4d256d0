//! What the check of one section reads, and where it says what is wrong.

use crate::issue::{Issue, IssueCode};
use crate::model::Recipe;
use crate::sources::Sources;
use wp_codebox_contracts::RuntimePolicy;

/// Most issues of one answer.
const MAX_ISSUES: usize = 1000;

/// What one section's check works with.
pub(crate) struct Judge<'a> {
    pub recipe: &'a Recipe,
    pub sources: &'a dyn Sources,
    /// None when the caller's own is malformed.
    pub policy: Option<RuntimePolicy>,
    pub issues: Vec<Issue>,
}

impl Judge<'_> {
    pub(super) fn say(
        &mut self,
        code: IssueCode,
        path: impl Into<String>,
        message: impl Into<String>,
    ) {
        // A hostile recipe must not make a larger answer; what comes first is enough to refuse it.
        if self.issues.len() < MAX_ISSUES {
            self.issues.push(Issue::new(code, path, message));
        }
    }
}
