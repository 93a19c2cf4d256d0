//! State of a validation: its inputs and collected issues.

use crate::issue::{Issue, IssueCode};
use crate::model::Recipe;
use crate::sources::Sources;
use wp_codebox_contracts::RuntimePolicy;

/// Maximum number of issues reported for one recipe.
const MAX_ISSUES: usize = 1000;

/// The recipe being validated, what it is validated against, and the issues found so far.
pub(crate) struct Validator<'a> {
    pub recipe: &'a Recipe,
    pub sources: &'a dyn Sources,
    /// Policy that applies; `None` if the caller's policy is malformed.
    pub policy: Option<RuntimePolicy>,
    pub issues: Vec<Issue>,
}

impl Validator<'_> {
    pub(super) fn report(
        &mut self,
        code: IssueCode,
        path: impl Into<String>,
        message: impl Into<String>,
    ) {
        // Limits the size of the response to a hostile recipe; the first issues suffice to refuse
        // the recipe.
        if self.issues.len() < MAX_ISSUES {
            self.issues.push(Issue::new(code, path, message));
        }
    }
}
