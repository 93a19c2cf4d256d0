//! Reads tasks from JSON and checks them: first the shape of each field, from the table in the
//! contracts crate, then the rules of this crate.

mod check;
mod follow_up;
mod issues;
mod read;

pub use check::{CheckedBy, check_request};
pub use follow_up::FOLLOW_UP_CONTEXT;
pub use read::read_task;
