//! Starts runs on this host: starts their supervisors, follows them to their results, and sends
//! requests to held sandboxes.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods)]

pub mod live;
pub mod signals;
pub mod supervisor;
mod supervisors;

pub use supervisors::Supervisors;
