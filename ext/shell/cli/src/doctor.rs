//! `wp-codebox doctor`: checks whether this host can run sandboxes and says how to fix problems.

use super::args::DoctorArgs;
use super::output::Output;
use std::process::ExitCode;
use wp_codebox_settings::{Settings, Status, diagnose};

/// Runs every check. Exit status 0 if a run with the required isolation level can start, else 1.
pub(crate) fn main(output: &Output, args: &DoctorArgs) -> ExitCode {
    let settings = match Settings::resolve(&args.paths) {
        Ok(settings) => settings,
        Err(error) => return output.failure("doctor", &error),
    };
    let diagnosis = diagnose(&settings, args.require.into());
    if output.is_json() {
        output.document(&diagnosis.document());
    } else {
        for check in &diagnosis.checks {
            output.line(&format!(
                "{:<7} {:<15} {}",
                check.status.name(),
                check.id,
                check.message
            ));
            if let Some(fix) = &check.fix {
                output.line(&format!("        fix: {fix}"));
            }
        }
    }
    match diagnosis.status() {
        Status::Ok | Status::Warning => ExitCode::SUCCESS,
        Status::Error => ExitCode::from(1),
    }
}
