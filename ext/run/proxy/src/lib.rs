//! The three servers between a guest (sandbox) and the outside: egress bridge, preview forwarder,
//! mail capture.
//!
//! - [`egress`]: the guest's only connection to the network, with policy checks;
//! - [`preview`]: forwards HTTP from a visitor's browser to the guest's site;
//! - [`mail`]: an SMTP server that stores mail and delivers none.
//!
//! This crate knows nothing of runs: callers pass policies, sockets and limits, and read logs and
//! counters.
#![forbid(unsafe_code)]

pub mod egress;
pub mod mail;
pub mod preview;
mod relay;
mod server_thread;
