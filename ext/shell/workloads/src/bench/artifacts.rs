//! The results of benchmarks in a bundle, as `wp-codebox/benchmark-artifacts/v1`.

use super::scenario::{BenchResult, only, results};
use crate::evidence::{Bundle, Evidence};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Schema id of the document.
const BENCHMARK_ARTIFACTS: &str = "wp-codebox/benchmark-artifacts/v1";

/// Lists the results of a bundle that have one of the named scenarios; without names, all. Also writes
/// each result into a file of the directory `extract_to`.
///
/// # Errors
/// `wp_codebox_input_invalid` if there are no such results, or a file exists.
pub fn benchmark_artifacts(
    evidence: &Evidence,
    scenarios: &[String],
    extract_to: Option<&Path>,
) -> Result<Value, ErrorBody> {
    let mut results = results(evidence)?;
    only(&mut results, scenarios)?;
    let mut rows: Vec<Value> = results
        .iter()
        .enumerate()
        .map(|(index, result)| row(index, result, evidence.bundle.as_ref()))
        .collect();
    if let Some(directory) = extract_to {
        std::fs::create_dir_all(directory).map_err(|e| unwritten(directory, &e))?;
        for (index, (row, result)) in rows.iter_mut().zip(&results).enumerate() {
            let path = directory.join(format!("bench-results-{index}.json"));
            extract(&path, &result.document).map_err(|e| unwritten(&path, &e))?;
            row["extractedTo"] = json!(path.display().to_string());
        }
    }
    let scenarios: Vec<Value> = rows
        .iter()
        .flat_map(|row| row["scenarioIds"].as_array().into_iter().flatten())
        .cloned()
        .collect();
    Ok(json!({
        "success": true,
        "schema": BENCHMARK_ARTIFACTS,
        "bundleDirectory": evidence.shown,
        "bundleId": evidence.bundle.as_ref().map(|bundle| &bundle.id),
        "artifacts": rows,
        "scenarioIds": scenarios,
        "summary": {"artifacts": rows.len(), "scenarios": scenarios.len()},
    }))
}

fn row(index: usize, result: &BenchResult, bundle: Option<&Bundle>) -> Value {
    let mut row = json!({
        "index": index,
        "kind": "benchmark-results",
        "path": result.path,
        "component": result.component,
        "status": if result.has_failed() { "failed" } else { "passed" },
        "scenarioIds": result.scenarios.iter().map(|row| &row.id).collect::<Vec<_>>(),
    });
    let files = bundle.map_or(&[][..], |bundle| &bundle.files);
    if let Some(file) = files.iter().find(|file| file.path == result.path) {
        row["contentType"] = json!(file.content_type);
        row["sha256"] = json!(file.sha256);
    }
    row
}

/// Writes a document into a new file. An existing file, also a symbolic link, is an error.
fn extract(path: &Path, document: &Value) -> std::io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(path)?;
    let mut text = serde_json::to_vec_pretty(document)?;
    text.push(b'\n');
    file.write_all(&text)
}

fn unwritten(path: &Path, e: &std::io::Error) -> ErrorBody {
    let message = format!("--extract-to: {} cannot be written: {e}", path.display());
    ErrorBody::new(ErrorCode::InputInvalid, message)
        .hint("name a new or empty directory that this user may write")
}
