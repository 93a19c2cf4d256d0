//! Arguments of `bench`. The doc comments are the help texts.

use crate::guest_args::StoreArgs;
use crate::recipe::{FallbackArgs, StepsArgs};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Subcommands of `bench`.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Summarize results of `wordpress.bench`: each scenario with its statistics.
    Summarize(SummarizeArgs),
    /// Compare two results of `wordpress.bench` scenario by scenario.
    Compare(CompareArgs),
    /// Run a recipe once per combination of values and summarize the results of its benchmarks.
    Matrix(Box<MatrixArgs>),
}

/// Arguments of `bench summarize`.
#[derive(Debug, Args)]
#[command(after_help = "\
The input is a bundle directory, a result (wp-codebox/bench-results/v1), or JSON output of this \
program that contains results, such as that of recipe-run. With --json the output is \
wp-codebox/benchmark-summary/v1.

Examples:
  wp-codebox bench summarize --bundle ./out/run_1f
  wp-codebox recipe-run --recipe bench.json --json |
    wp-codebox bench summarize --input - --json

Exit status: 0, also when a scenario failed; 1 when there are no results.")]
pub(crate) struct SummarizeArgs {
    #[command(flatten)]
    pub of: SourceArgs,
    /// Only this scenario; may be repeated.
    #[arg(long = "scenario-id", value_name = "ID")]
    pub scenarios: Vec<String>,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Where results are read from.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct SourceArgs {
    /// Results: a JSON file, a bundle directory, or - for standard input.
    #[arg(long, value_name = "FILE|DIR|-")]
    pub input: Option<PathBuf>,
    /// Bundle directory with results.
    #[arg(long, value_name = "DIR")]
    pub bundle: Option<PathBuf>,
}

/// Arguments of `bench compare`.
#[derive(Debug, Args)]
#[command(after_help = "\
Both results must have the same scenarios. --baseline-index and --candidate-index choose one of \
several results; without them the first is used, and the output says so. With --json the output is \
wp-codebox/benchmark-comparison/v1: for each metric both values, their difference and the relative \
change of the median.

Examples:
  wp-codebox bench compare --baseline ./out/run_1f --candidate ./out/run_2a
  wp-codebox bench compare --baseline old.json --candidate new.json --json

Exit status: 0 compared; 1 when there are no results, or their scenarios differ.")]
pub(crate) struct CompareArgs {
    /// Earlier results: a JSON file or a bundle directory.
    #[arg(long, value_name = "FILE|DIR")]
    pub baseline: PathBuf,
    /// Later results: a JSON file or a bundle directory.
    #[arg(long, value_name = "FILE|DIR")]
    pub candidate: PathBuf,
    #[command(flatten)]
    pub index: IndexArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Which of several results is compared.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct IndexArgs {
    /// Which result of the baseline to compare, counted from 0. [default: 0]
    #[arg(long, value_name = "N")]
    pub baseline_index: Option<usize>,
    /// Which result of the candidate to compare, counted from 0. [default: 0]
    #[arg(long, value_name = "N")]
    pub candidate_index: Option<usize>,
}

/// Arguments of `bench matrix`.
#[derive(Debug, Args)]
#[command(after_help = "\
The matrix is {\"dimensions\": [{\"name\": NAME, \"values\": [TEXT, ...]}, ...]}; every combination of \
values is one run of the recipe. NAME says what a value sets: `wp` the recipe's runtime.wp, \
`phpVersion` its runtime.phpVersion, `arg.NAME` the argument NAME of its wordpress.bench steps, a \
name like CACHE_SIZE that variable in inputs.runtimeEnv. With --json the output is \
wp-codebox/benchmark-matrix-run/v1.

Examples:
  wp-codebox bench matrix --recipe bench.json --matrix \\
    '{\"dimensions\": [{\"name\": \"wp\", \"values\": [\"6.9\", \"7.1\"]}]}'
  wp-codebox bench matrix --recipe bench.json --matrix matrix.json \\
    --artifacts ./out --json

Exit status: 0 every run succeeded and has results; 1 otherwise, or when the matrix or the recipe is \
not valid; then nothing runs. 130 cancelled.")]
pub(crate) struct MatrixArgs {
    /// Matrix: a JSON file or JSON text.
    #[arg(long, value_name = "FILE|JSON")]
    pub matrix: String,
    /// Recipe file in JSON with at least one wordpress.bench step.
    #[arg(long, value_name = "FILE")]
    pub recipe: PathBuf,
    #[command(flatten)]
    pub steps: StepsArgs,
    #[command(flatten)]
    pub fallback: FallbackArgs,
    #[command(flatten)]
    pub store: StoreArgs,
}
