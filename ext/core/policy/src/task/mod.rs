//! Reads tasks from JSON and checks them: brings the input into one form, then checks the shape of
//! each field, from the table in the contracts crate, then the rules of this crate.

mod check;
mod follow_up;
mod issues;
mod normalise;
mod read;

pub use check::{CheckedBy, check_request};
pub use follow_up::FOLLOW_UP_CONTEXT;
pub use normalise::normalise_task;
pub use read::read_task;
