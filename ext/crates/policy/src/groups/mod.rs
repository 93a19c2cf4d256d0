//! Rules for several tasks in one call: batches and fan-outs.
//!
//! This module decides which tasks may start, builds result rows and aggregates them. Its
//! drivers (the command line, and the plugin for runs of a site) own clocks, processes and
//! files. A group is a loop in the calling process, not a queue; nothing is stored.

mod aggregate;
mod batch;
mod fanout;
mod merge;
mod plan;
mod rows;

pub use aggregate::{TouchedFiles, touched_files};
pub use batch::Batch;
pub use fanout::{Fanout, invalid_task};
pub use plan::{FanoutPolicy, MAX_FANOUT_CONCURRENCY};
pub use rows::{GroupStatus, cancelled_row, failed_row, group_session, row_status, session_id};
