//! Several tasks at once: batches and fan-outs, as rules and nothing else.
//!
//! Who may start when, what a row says, what rows come to together. Whoever drives the runs
//! (the command line; the plugin for the runs of a site) keeps clocks, processes and files. A
//! group is a loop in its caller's process, not a queue: nothing here is stored.

mod aggregate;
mod batch;
mod fanout;
mod merge;
mod plan;
mod rows;

pub use aggregate::{TouchedFiles, touched_files};
pub use batch::Batch;
pub use fanout::{Fanout, invalid_task};
pub use plan::{FANOUT_MOST, FanoutPolicy};
pub use rows::{GroupStatus, cancelled_row, failed_row, group_session, row_status, session_id};
