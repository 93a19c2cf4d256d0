//! Arguments of the subcommands of `artifacts` that read measurements and unfinished output.

use crate::bench::IndexArgs;
use clap::Args;
use std::path::PathBuf;

/// A bundle whose documents are read. The bundle is not verified.
#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// Bundle directory.
    #[arg(long, visible_alias = "artifacts", value_name = "DIR")]
    pub bundle: PathBuf,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `artifacts benchmark`.
#[derive(Debug, Args)]
#[command(after_help = "\
With --json the output is wp-codebox/benchmark-artifacts/v1. This command does not verify the bundle.

Examples:
  wp-codebox artifacts benchmark --bundle ./out/run_1f
  wp-codebox artifacts benchmark --bundle ./out/run_1f \\
    --scenario-id checkout --extract-to ./results --json

Exit status: 0; 1 when the bundle has no results or no such scenario, or a file exists already.")]
pub(crate) struct BenchmarkArgs {
    #[command(flatten)]
    pub of: ReadArgs,
    /// Only results with this scenario; may be repeated.
    #[arg(long = "scenario-id", value_name = "ID")]
    pub scenarios: Vec<String>,
    /// Write each result as bench-results-N.json into this directory, which is created if it is
    /// missing. Existing files are not replaced.
    #[arg(long, value_name = "DIR")]
    pub extract_to: Option<PathBuf>,
}

/// Arguments of `artifacts bench-results`.
#[derive(Debug, Args)]
#[command(after_help = "\
The same as `wp-codebox bench summarize --bundle DIR`. With --json the output is \
wp-codebox/benchmark-summary/v1.

Examples:
  wp-codebox artifacts bench-results --bundle ./out/run_1f --json

Exit status: 0, also when a scenario failed; 1 when the bundle has no results.")]
pub(crate) struct BenchResultsArgs {
    #[command(flatten)]
    pub of: ReadArgs,
    /// Only this scenario; may be repeated.
    #[arg(long = "scenario-id", value_name = "ID")]
    pub scenarios: Vec<String>,
}

/// Arguments of `artifacts bench-compare`.
#[derive(Debug, Args)]
#[command(after_help = "\
The same as `wp-codebox bench compare` with two bundles. With --json the output is \
wp-codebox/benchmark-comparison/v1.

Examples:
  wp-codebox artifacts bench-compare --baseline-bundle ./out/run_1f \\
    --candidate-bundle ./out/run_2a --json

Exit status: 0 compared; 1 when a bundle has no results, or their scenarios differ.")]
pub(crate) struct BenchCompareArgs {
    /// Bundle with the earlier results.
    #[arg(long, value_name = "DIR")]
    pub baseline_bundle: PathBuf,
    /// Bundle with the later results.
    #[arg(long, value_name = "DIR")]
    pub candidate_bundle: PathBuf,
    #[command(flatten)]
    pub index: IndexArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `artifacts browser-metrics`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each row is one browser command of the run, with its times, memory, requests and errors. With \
--json the output is wp-codebox/browser-metrics/v1. This command does not verify the bundle.

Examples:
  wp-codebox artifacts browser-metrics --bundle ./out/run_1f --json

Exit status: 0; 1 when the run used no browser.")]
pub(crate) struct BrowserMetricsArgs {
    #[command(flatten)]
    pub of: ReadArgs,
}

/// Arguments of `artifacts discover-partial`.
#[derive(Debug, Args)]
#[command(after_help = "\
Lists the bundles below a directory and the files that belong to no complete bundle, for example \
after an interrupted copy. Symbolic links are not followed. With --json the output is \
wp-codebox/partial-artifact-discovery/v1.

Examples:
  wp-codebox artifacts discover-partial --artifacts ./out --session-id run_1f
  wp-codebox artifacts discover-partial --artifacts ./out \\
    --started-at 2026-11-26T08:00:00Z --finished-at 2026-11-26T09:00:00Z --json

Exit status: 0, also when there is nothing; 1 when the directory cannot be read.")]
pub(crate) struct DiscoverPartialArgs {
    /// Directory with bundles, such as that of `run --artifacts`.
    #[arg(long, value_name = "DIR")]
    pub artifacts: PathBuf,
    /// Only what belongs to this run or session: a path that contains the id, or a bundle of the
    /// run with this id.
    #[arg(long, value_name = "ID")]
    pub session_id: Option<String>,
    /// Only what was changed at or after this time, in RFC 3339.
    #[arg(long, value_name = "TIME")]
    pub started_at: Option<String>,
    /// Only what was changed at or before this time, in RFC 3339.
    #[arg(long, value_name = "TIME")]
    pub finished_at: Option<String>,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}
