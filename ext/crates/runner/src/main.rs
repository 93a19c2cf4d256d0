//! `wp-codebox`: the host-neutral command line and the supervisor of runs.
//!
//! One process supervises one run: it gives up root, owns the deadline, the
//! journal, the capture and the bundle, and is the only one that talks to the
//! guest. The command line is a client of the same supervisor, as the PHP
//! extension is.
#![forbid(unsafe_code)]

mod cli;
mod frames;
mod keeper;
mod run;
mod supervise;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main(std::env::args_os())
}
