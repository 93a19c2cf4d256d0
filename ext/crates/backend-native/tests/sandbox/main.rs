//! The real launcher, real guests, a real WordPress.
//!
//! Every denial stands beside a control that succeeds: the same attempt outside the
//! guest, or a comparable one inside. Nothing is skipped: a machine that cannot run
//! guests fails here. Network tests use loopback addresses only.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed assumption is a failed test"
)]

mod beside;
mod budgets;
mod egress;
mod execution;
mod host_inodes;
mod isolation;
mod lifetime;
mod limits;
mod mechanisms;
mod mounts;
mod outer;
mod reduced;
mod wordpress;
mod world;
