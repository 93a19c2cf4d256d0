//! Reads tasks from JSON: first the shapes in the contracts crate's table, then the rules of
//! this crate.

mod check;
mod issues;
mod read;

pub use check::{CheckedBy, check_request};
pub use read::read_task;
