//! Where a workspace may be changed: rules on paths, and a look at a whole tree or at changes.
//!
//! A root such as `docs/` means the directory `docs` with all below it. A directory is judged by
//! what is in it: that it holds a writable root breaks no rule.

mod git;
mod rules;
mod tree;

pub use rules::{Code, GitBacking, Rules, Violation, WORKSPACE_POLICY_RESULT, document};
pub use tree::check;
