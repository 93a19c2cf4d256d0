//! Rules on which paths of a workspace may be changed, checked against a whole tree or against a
//! list of changes.
//!
//! A root such as `docs/` means the directory `docs` and everything below it. A directory is
//! checked only through its content: a directory that contains a writable root violates no rule.

mod git;
mod rules;
mod tree;

pub use rules::{Code, GitBacking, Rules, Violation, WORKSPACE_POLICY_RESULT, document};
pub use tree::check;
