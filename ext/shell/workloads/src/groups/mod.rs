//! Groups of agent tasks: a batch of independent tasks, or a fan-out of workers with dependencies.
//!
//! The crate `policy` defines the rules of groups. The calling process runs a group and stores no
//! state of it, so the group ends when the process ends.

mod batch;
mod drive;
mod envelope;
mod fanout;
mod layout;
mod spool;

pub use batch::run as run_batch;
pub use drive::{Answered, BuildRequest, Host, export, unwritable};
pub use envelope::{Echo, build as task_document};
pub use fanout::run as run_fanout;
pub use spool::{Spool, replace as replace_file};
