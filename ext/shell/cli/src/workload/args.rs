//! Arguments of `run-wordpress-workload`. The doc comments are the help texts.

use crate::placement::PlacementArgs;
use crate::recipe::{FallbackArgs, StepsArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use wp_codebox_settings::PathArgs;

/// Arguments of `run-wordpress-workload`.
#[derive(Debug, Args)]
#[command(after_help = "\
The input is wp-codebox/wordpress-workload-run/v1: {schema, steps: [{command, args}]} with optional \
before, after, mounts, blueprint, artifacts and more. Standard output is always one document, \
wp-codebox/wordpress-workload-run-result/v1. The steps run like those of a recipe, in a fresh \
sandbox.

Examples:
  wp-codebox run-wordpress-workload --input workload.json --wordpress /srv/site
  echo '{\"schema\": \"wp-codebox/wordpress-workload-run/v1\", \"steps\": [
    {\"command\": \"wordpress.wp-cli\", \"args\": [\"command=option get home\"]}]}' |
    wp-codebox run-wordpress-workload --input - | jq .status

Exit status: 0 completed, 1 failed, unsupported or not valid, 124 timed out, 125 the sandbox could \
not start, 126 denied by policy, 130 cancelled.")]
pub(crate) struct WorkloadArgs {
    /// Workload in JSON: a file, or - for standard input. Its relative paths are resolved against
    /// the directory of the file, with - against the current directory.
    #[arg(long, visible_alias = "input-file", value_name = "FILE|-")]
    pub input: PathBuf,
    #[command(flatten)]
    pub steps: StepsArgs,
    /// Check the workload without running it; its status is `skipped` if it is valid.
    #[arg(long)]
    pub dry_run: bool,
    /// Part of the state directory, sites/ID, in which the bundle is stored.
    #[arg(long, default_value = "cli", value_name = "ID")]
    pub site: String,
    #[command(flatten)]
    pub fallback: FallbackArgs,
    #[command(flatten)]
    pub placement: PlacementArgs,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Format of the output.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Print JSON, as without this option.
    #[arg(long)]
    pub json: bool,
}

/// Format of the output.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Json,
}
