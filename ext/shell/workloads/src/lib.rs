//! Work in sandboxes beyond a single run: runs groups of tasks, and evaluates what commands printed in
//! their runs.
//!
//! - [`groups`]: batches and fan-outs of agent tasks.
//! - [`bench`]: results of benchmarks, and matrices of a recipe's values.
//! - [`phpunit`]: results of tests.
//! - [`WorkloadReport`]: the result of a WordPress workload.
//! - [`materialize`]: a package that sets up the site of a snapshot elsewhere.
//! - [`Evidence`]: documents in a bundle or a file, from which [`bench`] and [`browser_metrics`] read.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods)]

pub mod bench;
mod browser_metrics;
mod bundle_directory;
mod evidence;
pub mod groups;
mod missing;
mod partial_bundles;
pub mod phpunit;
mod placed;
mod replay_package;
mod workload_report;

pub use browser_metrics::browser_metrics;
pub use bundle_directory::open_bundle;
pub use evidence::{Bundle, Evidence};
pub use missing::{missing_hint, program_hint};
pub use partial_bundles::{PartialSearch, discover_partial};
pub use placed::check_placed;
pub use replay_package::{COMMAND as REPLAY_COMMAND, ReplayPackage, materialize};
pub use workload_report::WorkloadReport;
