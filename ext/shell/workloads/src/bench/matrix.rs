//! Document of a measured matrix, `wp-codebox/benchmark-matrix-run/v1`: one row for each combination
//! of values.

use super::plan::{Cell, Dimension};
use super::scenario::results;
use super::summary::summary;
use crate::evidence::Evidence;
use serde_json::{Value, json};
use wp_codebox_contracts::RunResult;

/// Schema id of the document.
const BENCHMARK_MATRIX_RUN: &str = "wp-codebox/benchmark-matrix-run/v1";

/// Returns the row of a cell that was not run.
pub fn skipped_row(index: usize, cell: &Cell) -> Value {
    json!({
        "index": index,
        "id": cell.id,
        "values": cell.values,
        "success": false,
        "status": "skipped",
    })
}

/// Adds the result of a cell's run to its row. `exported` is the directory of the copied bundle.
pub fn add_result(row: &mut Value, result: &RunResult, exported: Option<&str>) {
    row["runId"] = json!(result.run_id);
    row["outcome"] = json!(result.outcome);
    if let Some(bundle) = &result.artifacts {
        row["artifacts"] = json!({
            "id": bundle.bundle_id,
            "directory": exported.unwrap_or(&bundle.path),
            "manifestSha256": bundle.manifest_sha256,
        });
    }
    let workflow = result.workflow.clone().unwrap_or_default();
    let evidence = Evidence::of_document(result.run_id.to_string(), workflow);
    let error = match (results(&evidence), &result.error) {
        (Ok(results), error) => {
            row["benchResults"] = results.iter().map(|r| r.document.clone()).collect();
            row["summary"] = summary(&evidence, &results);
            error.clone()
        }
        (Err(_), Some(error)) => Some(error.clone()),
        (Err(missing), None) => Some(missing),
    };
    let success = result.outcome.is_success() && error.is_none();
    row["success"] = json!(success);
    row["status"] = json!(if success { "succeeded" } else { "failed" });
    if let Some(error) = error {
        row["error"] = json!(error);
    }
}

/// Builds the document from the rows of all cells. `recipe` is the path of the recipe.
pub fn matrix_document(recipe: &str, dimensions: &[Dimension], rows: Vec<Value>) -> Value {
    let of = |status: &str| rows.iter().filter(|row| row["status"] == status).count();
    let (succeeded, failed, skipped) = (of("succeeded"), of("failed"), of("skipped"));
    let dimensions: Vec<Value> = dimensions
        .iter()
        .map(|row| json!({"name": row.name, "values": row.values}))
        .collect();
    json!({
        "success": succeeded == rows.len(),
        "schema": BENCHMARK_MATRIX_RUN,
        "status": match (failed + skipped, succeeded) {
            (0, _) => "succeeded",
            (_, 0) => "failed",
            (_, _) => "partial",
        },
        "recipePath": recipe,
        "matrix": {"dimensions": dimensions},
        "summary": {"total": rows.len(), "succeeded": succeeded, "failed": failed, "skipped": skipped},
        "cells": rows,
    })
}
