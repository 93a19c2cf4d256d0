//! Integration tests with the real launcher, real guests and a real WordPress.
//!
//! Every denial has a positive control: the same attempt outside the guest, or a comparable one
//! inside. No test is skipped: a machine that cannot run guests fails. Network tests use loopback
//! addresses only.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed assumption is a failed test"
)]

mod budgets;
mod concurrent_programs;
mod disk_scratch;
mod egress;
mod execution;
mod fixture;
mod host_inodes;
mod isolation;
mod lifetime;
mod limits;
mod mechanisms;
mod mounts;
mod process_wrapper;
mod reduced;
mod wordpress;
