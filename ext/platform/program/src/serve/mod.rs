//! `wp-codebox serve` and `wp-codebox token`: this machine's sandboxes, runs and artifacts as a
//! service (crate `service`), with the functions of the other commands.

mod args;
mod host;
mod native;
mod remote;
mod run;
mod run_order;
mod socket_group;
mod source_roots;
mod token;

pub(crate) use args::ServeArgs;
pub(crate) use native::Runner;
pub(crate) use token::{TokenCommand, main as token};

use std::process::ExitCode;
use wp_codebox_cli::output::Output;

/// Serves until a signal stops it, or prints the description of the API.
pub(crate) fn main(output: &Output, args: &ServeArgs) -> ExitCode {
    if args.openapi {
        output.data(wp_codebox_service::openapi().as_bytes());
        return ExitCode::SUCCESS;
    }
    match run::run(*output, args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output.failure("serve", &error),
    }
}
