//! Tasks from JSON: shapes by the table of the contracts crate, then the rules of this crate.

mod check;
mod issues;
mod read;

pub use check::{CheckedBy, check_request};
pub use read::read_task;
