//! Arguments of `runs`. The doc comments are the help texts.

use crate::cli::args::PathArgs;
use clap::{Args, Subcommand, ValueEnum};
use wp_codebox_contracts::RunStatus;

/// Subcommands of `runs`.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs, newest first.
    List(ListArgs),
    /// Show one run, with its result when it came to one.
    Get(GetArgs),
    /// Show what happened in a run.
    Events(EventsArgs),
    /// Ask a run to stop; what its guest did is saved, as far as it got.
    Cancel(GetArgs),
}

/// Where runs are looked for.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// Only this partition of the state directory. [default: every one]
    #[arg(long, value_name = "ID")]
    pub site: Option<String>,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Status of a run.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum StatusArg {
    Running,
    Ended,
}

impl From<StatusArg> for RunStatus {
    fn from(status: StatusArg) -> Self {
        match status {
            StatusArg::Running => Self::Running,
            StatusArg::Ended => Self::Ended,
        }
    }
}

/// Arguments of `runs list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox runs list --status running
  wp-codebox runs list --site cli --limit 200 --offset 200 --json

Exit status: 0, also when there is none; 125 when the state directory cannot be used.")]
pub(crate) struct ListArgs {
    /// Only runs of this status.
    #[arg(long, value_enum)]
    pub status: Option<StatusArg>,
    /// Rows at most, 200 at most.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=200))]
    pub limit: u16,
    /// Rows passed over.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub offset: usize,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Arguments of `runs get` and `runs cancel`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox runs get run_1f --json
  wp-codebox runs cancel run_1f

Exit status: 0; 1 when no run or more than one matches; 125 when the state directory cannot be
used or the run does not answer. Cancelling a run that ended is no error.")]
pub(crate) struct GetArgs {
    /// Id of the run, or a prefix that only it has.
    #[arg(value_name = "RUN")]
    pub run: String,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Arguments of `runs events`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox runs events run_1f --after 20
  wp-codebox runs events run_1f --follow

Exit status: 0; 1 when no run or more than one matches; 125 when the state directory cannot be used.")]
pub(crate) struct EventsArgs {
    /// Id of the run, or a prefix that only it has.
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Only events after this number.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub after: u64,
    /// Events at most, 1000 at most; with --follow of each page.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub limit: u16,
    /// Go on until the run has ended. With --json each page is one line.
    #[arg(long)]
    pub follow: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}
