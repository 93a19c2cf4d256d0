//! `bench matrix`: runs a recipe once per combination of values and collects the results of its
//! benchmarks. Document: `wp-codebox/benchmark-matrix-run/v1`.

use super::args::MatrixArgs;
use crate::duration;
use crate::output::Output;
use crate::placement::PlacementArgs;
use crate::preview::PreviewArgs;
use crate::recipe::{Executed, Looked, RunChoice, execute};
use crate::request::is_json_text;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::process::ExitCode;
use wp_codebox_contracts::{ErrorBody, ErrorCode, Outcome, hex, parse_json};
use wp_codebox_recipe::{MAX_RECIPE_BYTES, parse, validate};
use wp_codebox_runs::{Loaded, directory_of, read_file};
use wp_codebox_settings::Settings;
use wp_codebox_settings::prepare_state;
use wp_codebox_workloads::bench::{
    Cell, add_result, cells, dimensions, matrix_document, skipped_row,
};

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
            true => skipped_row(index, &ready.cell),
            false => {
                output.note(&format!("{} of {total}: {}", index + 1, ready.cell.id));
                measured(output, args, index, ready)
            }
        };
        cancelled |= row["outcome"] == Outcome::Cancelled.as_str();
        rows.push(row);
    }
    let document = matrix_document(&args.recipe.display().to_string(), &dimensions, rows);
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

/// Runs a cell; returns its row.
fn measured(output: &Output, args: &MatrixArgs, index: usize, ready: &Ready) -> Value {
    let mut row = skipped_row(index, &ready.cell);
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
    add_result(&mut row, &result, exported.as_deref());
    row
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
