//! Tests of the runner as a program: each case starts `wp-codebox-wasi` with a module of its own.
//!
//! Hostile modules are written as text here. Those that are compiled from Rust come from
//! `tests/wasi/tools`; the suite sets `WASI_MODULES` to the directory with them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Tests may panic.

mod compiled;
mod files;
mod fixture;
mod limits;
mod modules;
mod wrapped;
