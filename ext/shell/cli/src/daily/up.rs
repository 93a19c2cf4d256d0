//! `wp-codebox up`: a WordPress with the project of this directory on an address of this host.

use super::args::UpArgs;
use crate::output::Output;
use crate::preview::PreviewArgs;
use crate::run;
use crate::run_args::RunArgs;
use std::process::ExitCode;
use wp_codebox_changes::PURPOSE;

/// Exit status of a cancelled run. Ctrl-C is the normal end of `up`, so `up` then exits with 0.
const CANCELLED: u8 = 130;

/// Starts the site and prints its address and login link.
pub(crate) fn up(output: &Output, args: UpArgs) -> ExitCode {
    let run = RunArgs {
        guest: args.guest,
        store: args.store,
        detach: args.detach,
        activation: args.activation,
        preview: PreviewArgs {
            preview_hold: Some(args.time),
            preview_login: Some(String::new()),
            preview_port: args.port,
            ..PreviewArgs::default()
        },
        of_project: true,
        purpose: Some(PURPOSE),
        ..match RunArgs::plain() {
            Ok(plain) => plain,
            Err(error) => return output.failure("up", &error),
        }
    };
    let mut output = *output;
    output.open_links = args.open;
    match run::status(&output, "up", run) {
        CANCELLED => ExitCode::SUCCESS,
        status => ExitCode::from(status),
    }
}
