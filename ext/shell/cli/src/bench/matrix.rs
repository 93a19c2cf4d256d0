//! `bench matrix`: runs a recipe once per combination of values and collects the results of its
//! benchmarks. Document: `wp-codebox/benchmark-matrix-run/v1`.

use super::args::MatrixArgs;
use super::plan::{Cell, Dimension, cells, dimensions};
use super::scenario::results;
use super::summary::summary;
use crate::evidence::Evidence;
use crate::output::Output;
use crate::placement::PlacementArgs;
use crate::preview::PreviewArgs;
use crate::recipe::{Executed, Looked, RunChoice, execute};
use crate::recipe_request::{Loaded, directory_of, read_file};
use crate::request::is_json_text;
use crate::settings::prepare_state;
use crate::{Settings, duration};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::process::ExitCode;
use wp_codebox_contracts::{ErrorBody, ErrorCode, Outcome, RunResult, hex, parse_json};
use wp_codebox_recipe::{MAX_RECIPE_BYTES, parse, validate};

/// Schema id of the document.
const BENCHMARK_MATRIX_RUN: &str = "wp-codebox/benchmark-matrix-run/v1";

/// A cell (one combination of values) whose recipe was validated.
struct Ready {
    cell: Cell,
    looked: Looked,
}

pub(super) fn run(output: &Output, args: &MatrixArgs) -> Result<ExitCode, ErrorBody> {
    duration::or_milliseconds(ErrorCode::LimitInvalid, "--timeout", &args.steps.timeout)?;
    let dimensions = dimensions(&matrix(&args.matrix)?)?;
    let recipe = json_of(&args.recipe)?;
    let settings = settings(*output, args)?;
    // Every cell is checked before the first one runs.
    let ready = cells(&recipe, &dimensions)?
        .into_iter()
        .map(|cell| ready(args, &settings, cell))
        .collect::<Result<Vec<_>, _>>()?;
    let (total, mut rows) = (ready.len(), Vec::new());
    let mut cancelled = false;
    for (index, ready) in ready.iter().enumerate() {
        let row = match cancelled {
            true => skipped(index, &ready.cell),
            false => {
                output.note(&format!("{} of {total}: {}", index + 1, ready.cell.id));
                measured(output, args, index, ready)
            }
        };
        cancelled |= row["outcome"] == Outcome::Cancelled.as_str();
        rows.push(row);
    }
    let document = document(args, &dimensions, rows);
    show(*output, &document);
    Ok(match (document["success"] == true, cancelled) {
        (true, _) => ExitCode::SUCCESS,
        (false, true) => ExitCode::from(Outcome::Cancelled.exit_status()),
        (false, false) => ExitCode::from(1),
    })
}

fn settings(output: Output, args: &MatrixArgs) -> Result<Settings, ErrorBody> {
    let mut settings = Settings::resolve(&args.store.paths)?;
    if settings.fitting(None).is_none() {
        settings = Settings::for_guests(&args.store.paths, None, output)?;
    } else {
        prepare_state(&settings)?;
    }
    settings.wp_fallback = args.fallback.choice();
    Ok(settings)
}

fn json_of(path: &Path) -> Result<Value, ErrorBody> {
    let bytes = read_file(path, MAX_RECIPE_BYTES, "file")?;
    parse_json(&bytes).map_err(|e| {
        let message = format!(
            "{} is not valid JSON (line {}, column {})",
            path.display(),
            e.line(),
            e.column()
        );
        ErrorBody::new(ErrorCode::InputInvalid, message)
    })
}

fn matrix(given: &str) -> Result<Value, ErrorBody> {
    if !is_json_text(given) {
        return json_of(Path::new(given));
    }
    parse_json(given.as_bytes()).map_err(|e| {
        let message = format!(
            "--matrix is not valid JSON (line {}, column {})",
            e.line(),
            e.column()
        );
        ErrorBody::new(ErrorCode::InputInvalid, message)
    })
}

/// Validates the recipe of a cell against this host.
fn ready(args: &MatrixArgs, settings: &Settings, cell: Cell) -> Result<Ready, ErrorBody> {
    let bytes = cell.recipe.to_string().into_bytes();
    let loaded = Loaded {
        shown: args.recipe.display().to_string(),
        directory: directory_of(&args.recipe, "recipe")?,
        sha256: hex(&Sha256::digest(&bytes)),
        recipe: parse(&bytes),
    };
    let looked = Looked::of(loaded, args.steps.policy.as_deref(), settings)?;
    let issues = match &looked.loaded.recipe {
        Ok(recipe) => validate(recipe, looked.context()),
        Err(issues) => issues.clone(),
    };
    match issues.first() {
        None => Ok(Ready { cell, looked }),
        Some(first) => {
            let message = format!(
                "the recipe is not valid with the values {}: {}: {}",
                cell.id, first.path, first.message
            );
            Err(ErrorBody::new(ErrorCode::RecipeInvalid, message).with("issues", json!(issues)))
        }
    }
}

fn skipped(index: usize, cell: &Cell) -> Value {
    json!({
        "index": index,
        "id": cell.id,
        "values": cell.values,
        "success": false,
        "status": "skipped",
    })
}

/// Runs a cell; returns its row.
fn measured(output: &Output, args: &MatrixArgs, index: usize, ready: &Ready) -> Value {
    let mut row = skipped(index, &ready.cell);
    row["status"] = json!("failed");
    let choice = RunChoice {
        site: &args.store.site,
        steps: &args.steps,
        preview: &PreviewArgs::default(),
        // Run every cell on this host: times of different hosts cannot be compared.
        placement: &PlacementArgs::default(),
    };
    // `ready` has checked that the recipe is valid.
    let Ok(recipe) = &ready.looked.loaded.recipe else {
        return row;
    };
    let executed = execute(output, &ready.looked, recipe, &choice);
    let (result, exported) = match executed {
        Ok(Executed {
            result: Ok(result),
            exported,
        }) => (result, exported),
        Ok(Executed {
            result: Err(error), ..
        })
        | Err(error) => {
            row["error"] = json!(error);
            return row;
        }
    };
    ran(&mut row, &result, exported.as_deref());
    row
}

fn ran(row: &mut Value, result: &RunResult, exported: Option<&str>) {
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

fn document(args: &MatrixArgs, dimensions: &[Dimension], rows: Vec<Value>) -> Value {
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
        "recipePath": args.recipe.display().to_string(),
        "matrix": {"dimensions": dimensions},
        "summary": {"total": rows.len(), "succeeded": succeeded, "failed": failed, "skipped": skipped},
        "cells": rows,
    })
}

fn show(output: Output, document: &Value) {
    if output.is_json() {
        return output.document(document);
    }
    for row in document["cells"].as_array().into_iter().flatten() {
        let text = |name: &str| row[name].as_str().unwrap_or_default();
        output.line(&format!(
            "{:<10} {} {}",
            text("status"),
            text("runId"),
            text("id")
        ));
        for scenario in row["summary"]["scenarios"].as_array().into_iter().flatten() {
            let id = scenario["id"].as_str().unwrap_or_default();
            let median = &scenario["metrics"]["wallMs"]["p50"];
            if median.is_number() {
                output.line(&format!("           {id}: median {median} ms"));
            }
        }
        if let Some(why) = row["error"]["message"].as_str() {
            output.note(why);
        }
    }
}
