//! `wp-codebox`: the host-neutral command line and the supervisor of runs.
//!
//! One process supervises one run: it gives up root, owns the deadline, the
//! journal, the capture and the bundle, and is the only one that talks to the
//! guest. The command line is a client of the same supervisor, as the PHP
//! extension is.
#![forbid(unsafe_code)]

mod cli;
mod control;
mod keeper;
mod outbox;
mod parent;
mod peer;
mod recipe;
mod run;
mod supervise;
mod workspace;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use std::process::ExitCode;

fn main() -> ExitCode {
    // Secrets pass through this process's memory and environment: nobody of the same user may
    // look into either, and no core file ever holds them.
    if set_dumpable_behavior(DumpableBehavior::NotDumpable).is_err() {
        return ExitCode::from(125);
    }
    cli::main(std::env::args_os())
}
