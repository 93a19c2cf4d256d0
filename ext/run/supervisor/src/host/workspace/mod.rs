//! Rules that say which paths of a workspace may be changed. They are checked against a whole
//! directory tree or against a list of changes.
//!
//! A writable root such as `docs/` means the directory `docs` and everything below it. A directory
//! is checked only through its content: a directory that contains a writable root violates no rule.

mod git;
mod rules;
mod tree;

pub use rules::{Code, GitBacking, Rules, Violation, WORKSPACE_POLICY_RESULT, document};
pub use tree::check;
