//! `artifacts discover-partial`: bundles below a directory, and files that belong to no complete
//! bundle, as `wp-codebox/partial-artifact-discovery/v1`.

use super::args::DiscoverPartialArgs;
use crate::output::{Output, name as listed};
use serde_json::Value;
use wp_codebox_contracts::ErrorBody;
use wp_codebox_workloads::{PartialSearch, discover_partial};

pub(super) fn show(output: Output, args: &DiscoverPartialArgs) -> Result<(), ErrorBody> {
    let document = discover_partial(&PartialSearch {
        artifacts: args.artifacts.clone(),
        session_id: args.session_id.clone(),
        started_at: args.started_at.clone(),
        finished_at: args.finished_at.clone(),
    })?;
    let rows = |name: &str| document[name].as_array().into_iter().flatten();
    let row = |row: &Value, word: &str| {
        format!(
            "{word:<8} {}",
            listed(row["path"].as_str().unwrap_or_default())
        )
    };
    let bundles = rows("bundles").map(|found| row(found, "bundle"));
    let files = rows("artifacts").map(|found| row(found, "partial"));
    let lines: Vec<String> = bundles.chain(files).collect();
    output.answer(&document, &lines);
    for row in rows("diagnostics") {
        output.note(row["message"].as_str().unwrap_or_default());
    }
    Ok(())
}
