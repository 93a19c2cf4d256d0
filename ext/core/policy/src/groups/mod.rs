//! Rules for several tasks in one call: batches (independent tasks) and fan-outs (tasks with
//! dependencies, called workers).
//!
//! This module decides which tasks may start, builds the result row of each task and aggregates
//! the rows. The callers of this module (the command line, and the plugin for runs of a site)
//! start processes, measure time and write files. The tasks run in a loop of the calling process;
//! there is no queue, and nothing is stored.

mod aggregate;
mod batch;
mod events;
mod fanout;
mod merge;
mod plan;
mod rows;

pub use aggregate::{TouchedFiles, touched_files};
pub use batch::Batch;
pub use fanout::{Fanout, invalid_task};
pub use plan::{FanoutPolicy, MAX_FANOUT_CONCURRENCY};
pub use rows::{GroupStatus, cancelled_row, failed_row, row_status};
