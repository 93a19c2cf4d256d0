//! Arguments of `preview-lease`. The doc comments are the help texts.

use crate::runs::PlaceArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Subcommands of `preview-lease`.
#[derive(Debug, Subcommand)]
pub(crate) enum LeaseCommand {
    /// Show the preview of a run: its addresses, whether it is open, and until when.
    #[command(after_help = "\
A lease is the time for which a preview is open; its id is the id of the run. With --json the \
output is wp-codebox/preview-lease/v1. Its status is active, released, expired or unknown (no \
preview was opened). The link with the access token is shown by `wp-codebox sandbox preview` only.

Examples:
  wp-codebox preview-lease status --lease-id run_1f
  wp-codebox preview-lease status --registry /srv/state --lease-id run_1f

Exit status: 0 for any status; 1 when no run or more than one matches; 125 when the state directory \
cannot be used.")]
    Status(LeaseArgs),
    /// Close the preview of a run. Has no effect on a preview that has ended.
    #[command(after_help = "\
The sandbox stays until its own time limit; `wp-codebox runs cancel` ends it. With --json the output \
is wp-codebox/preview-lease/v1.

Examples:
  wp-codebox preview-lease release --lease-id run_1f
  wp-codebox preview-lease release --lease-file lease.json --json

Exit status: 0; 1 when no run or more than one matches; 125 when the state directory cannot be used \
or the sandbox does not answer.")]
    Release(LeaseArgs),
}

/// One lease.
#[derive(Debug, Args)]
pub(crate) struct LeaseArgs {
    /// Id of the lease, which is the id of its run, or a unique prefix of it.
    #[arg(long, value_name = "ID", required_unless_present = "lease_file")]
    pub lease_id: Option<String>,
    /// JSON file with the id of the lease, such as the output of `preview-lease status` or `boot`.
    #[arg(long, value_name = "FILE", conflicts_with = "lease_id")]
    pub lease_file: Option<PathBuf>,
    #[command(flatten)]
    pub place: PlaceArgs,
}
