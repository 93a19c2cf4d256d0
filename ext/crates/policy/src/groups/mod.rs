//! Several tasks at once: batches and fan-outs, as rules and nothing else.
//!
//! Who may start when, what a row says, what rows come to together. Whoever drives the runs
//! (the command line; the plugin for the runs of a site) keeps clocks, processes and files. A
//! group is a loop in its caller's process, not a queue: nothing here is stored.

mod aggregate;
mod merge;
mod plan;
mod rows;

pub use aggregate::{TouchedFiles, WorkerEnd, judge_fanout, touched_files};
pub use merge::merge_task;
pub use plan::{FANOUT_MOST, FanoutPlan, FanoutPolicy, FanoutWorker, Settled};
pub use rows::{
    GroupStatus, Totals, cancelled_row, failed_row, group_exit_code, group_session, session_id,
    skipped_row,
};
