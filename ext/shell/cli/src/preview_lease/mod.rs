//! `wp-codebox preview-lease`: shows or closes the preview of a held run, as
//! `wp-codebox/preview-lease/v1`.
//!
//! No file stores a lease: the supervisor of the run serves the preview, and the journal of the run
//! records how the preview ended.

mod args;

pub(crate) use args::LeaseCommand;

use crate::output::Output;
use crate::runs::found;
use args::LeaseArgs;
use serde_json::Value;
use std::process::ExitCode;
use wp_codebox_contracts::ErrorBody;
use wp_codebox_runs::read_file;
use wp_codebox_sandboxes::{lease_id, preview_lease};

/// Maximum size of a lease file, in bytes.
const MAX_FILE: usize = 1024 * 1024;
pub(crate) fn main(output: &Output, command: &LeaseCommand) -> ExitCode {
    let (name, done) = match command {
        LeaseCommand::Status(args) => ("preview-lease status", lease(args, "status")),
        LeaseCommand::Release(args) => ("preview-lease release", lease(args, "close")),
    };
    match done {
        Ok(document) => {
            output.answer(&document, &lines(&document));
            ExitCode::SUCCESS
        }
        Err(error) => output.failure(name, &error),
    }
}

/// Sends the action to the sandbox, or reads how the preview of an ended run ended.
fn lease(args: &LeaseArgs, action: &str) -> Result<Value, ErrorBody> {
    let id = match (&args.lease_id, &args.lease_file) {
        (Some(id), _) => id.clone(),
        (None, Some(file)) => lease_id(&read_file(file, MAX_FILE, "lease")?)?,
        // The argument parser requires one of them.
        (None, None) => String::new(),
    };
    let (state, run) = found(&args.place, &id)?;
    preview_lease(&state, &run, action)
}

fn lines(document: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut lines = vec![text(&document["status"]).unwrap_or_default()];
    lines.extend(text(&document["public_url"]));
    lines.extend(text(&document["lease"]["expires_at"]).map(|time| format!("until {time}")));
    lines
}
