//! `wp-codebox`: the program for one host.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use wp_codebox_cli::HandedOver;

fn main() -> ExitCode {
    wp_codebox_cli::main::<HandedOver>()
}
