//! `wp-codebox bench`: summarizes and compares results of `wordpress.bench`, and measures a recipe
//! with several combinations of values. `artifacts benchmark`, `bench-results` and `bench-compare`
//! use the same code.

mod args;
mod matrix;

pub(crate) use args::{BenchCommand, IndexArgs};

use crate::columns::{Column, table, terminal};
use crate::output::Output;
use args::SummarizeArgs;
use serde_json::Value;
use std::path::Path;
use std::process::ExitCode;
use wp_codebox_contracts::ErrorBody;
use wp_codebox_workloads::Evidence;
use wp_codebox_workloads::bench::{
    Side, comparison, comparison_rows, only, results, summary, summary_rows,
};

pub(crate) fn main(output: &Output, command: &BenchCommand) -> ExitCode {
    let (name, done) = match command {
        BenchCommand::Summarize(args) => ("bench summarize", summarize(*output, args)),
        BenchCommand::Compare(args) => (
            "bench compare",
            compare(*output, &args.baseline, &args.candidate, &args.index),
        ),
        BenchCommand::Matrix(args) => match matrix::run(output, args) {
            Ok(status) => return status,
            Err(error) => ("bench matrix", Err(error)),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output.failure(name, &error),
    }
}

fn summarize(output: Output, args: &SummarizeArgs) -> Result<(), ErrorBody> {
    let evidence = match (&args.of.input, &args.of.bundle) {
        (_, Some(bundle)) => Evidence::of_bundle(bundle)?,
        (Some(input), None) => Evidence::read(input)?,
        // The argument parser requires one of them.
        (None, None) => return Ok(()),
    };
    show_summary(output, &evidence, &args.scenarios)
}

/// Prints the summary of the results of a bundle or file.
pub(crate) fn show_summary(
    output: Output,
    evidence: &Evidence,
    scenarios: &[String],
) -> Result<(), ErrorBody> {
    let mut results = results(evidence)?;
    only(&mut results, scenarios)?;
    let document = summary(evidence, &results);
    let headings = [
        "SCENARIO",
        "METRIC",
        "FIRST RUN",
        "MIN",
        "MEDIAN",
        "P95",
        "MAX",
    ];
    answer(output, &document, &headings, &summary_rows(&document));
    Ok(())
}

/// Prints the comparison of two results.
pub(crate) fn compare(
    output: Output,
    baseline: &Path,
    candidate: &Path,
    index: &IndexArgs,
) -> Result<(), ErrorBody> {
    let (old, new) = (Evidence::read(baseline)?, Evidence::read(candidate)?);
    let (before, after) = (results(&old)?, results(&new)?);
    let document = comparison(
        &Side {
            evidence: &old,
            results: &before,
            index: index.baseline_index,
            option: "--baseline-index",
        },
        &Side {
            evidence: &new,
            results: &after,
            index: index.candidate_index,
            option: "--candidate-index",
        },
    )?;
    let headings = ["SCENARIO", "METRIC", "BASELINE", "CANDIDATE", "CHANGE"];
    answer(output, &document, &headings, &comparison_rows(&document));
    Ok(())
}

fn answer(output: Output, document: &Value, headings: &[&'static str], rows: &[Vec<String>]) {
    if output.is_json() {
        return output.document(document);
    }
    let columns: Vec<Column> = headings
        .iter()
        .map(|heading| Column {
            heading,
            spare: false,
        })
        .collect();
    for line in table(&columns, rows, terminal()) {
        output.line(&line);
    }
    for row in document["diagnostics"].as_array().into_iter().flatten() {
        output.note(row["message"].as_str().unwrap_or_default());
    }
}
