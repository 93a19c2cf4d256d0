//! `wp-codebox materialize-replay-package`: writes a directory that sets up the site of a snapshot
//! elsewhere.

mod args;

pub(crate) use args::MaterializeArgs;

use crate::output::Output;
use serde_json::Value;
use std::process::ExitCode;
use wp_codebox_workloads::{REPLAY_COMMAND, ReplayPackage, materialize};

pub(crate) fn main(output: &Output, args: &MaterializeArgs) -> ExitCode {
    let package = ReplayPackage {
        snapshot: args.snapshot.clone(),
        output: args.output.clone(),
        snapshot_ref: args.snapshot_ref.clone(),
        id: args.id.clone(),
        created_at: args.created_at.clone(),
        landing_page: args.landing_page.clone(),
    };
    match materialize(&package) {
        Ok(document) => {
            let shown = |path: &str| document.pointer(path).and_then(Value::as_str);
            let text = |path: &str| shown(path).unwrap_or_default().to_owned();
            let lines = [
                format!("{} {}", text("/status"), text("/artifactBundle/path")),
                text("/artifactBundle/id"),
            ];
            output.answer(&document, &lines);
            if !output.is_json() {
                for row in document["diagnostics"].as_array().into_iter().flatten() {
                    output.note(row["message"].as_str().unwrap_or_default());
                }
            }
            ExitCode::SUCCESS
        }
        Err(error) => output.failure(REPLAY_COMMAND, &error),
    }
}
