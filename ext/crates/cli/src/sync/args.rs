//! Arguments of `sync`. The doc comments are the help texts.

use crate::runs::PlaceArgs;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Arguments of `sync`.
#[derive(Debug, Args)]
#[command(after_help = "\
What was synced last is kept beside the run, so that both sides can be told apart from what they \
had in common: a file that only one side changed follows that side, one that both changed is a \
conflict. .git never takes part; links are neither followed nor carried; a file has at most 1408 \
KiB.

Examples:
  wp-codebox sync run_1f push ./my-plugin
  wp-codebox sync run_1f pull ./my-plugin --dry-run
  wp-codebox sync run_1f pull ./my-plugin:/workspace/my-plugin \\
    --write-back --on-conflict ours
  wp-codebox sync run_1f status ./my-plugin --json

Exit status: 0 when both sides agree afterwards; 1 when there are conflicts and nothing was \
carried, or the sandbox or a file cannot be used; 3 when something was left out.")]
pub(crate) struct SyncArgs {
    /// Id of the run that holds the sandbox, or a prefix that only it has.
    #[arg(value_name = "RUN")]
    pub run: String,
    #[command(subcommand)]
    pub action: SyncAction,
}

/// Subcommands of `sync`.
#[derive(Debug, Subcommand)]
pub(crate) enum SyncAction {
    /// Carry what changed here into the sandbox.
    #[command(after_help = "\
Examples:
  wp-codebox sync run_1f push ./my-plugin
  wp-codebox sync run_1f push ./my-plugin:/workspace/my-plugin --dry-run

Exit status: 0; 1 conflicts or failure; 3 when something was left out.")]
    Push(PushArgs),
    /// Carry what changed in the sandbox here.
    #[command(after_help = "\
Without --write-back files that exist here are neither changed nor removed.

Examples:
  wp-codebox sync run_1f pull ./copy
  wp-codebox sync run_1f pull ./my-plugin --write-back

Exit status: 0; 1 conflicts or failure; 3 when something was left out.")]
    Pull(PullArgs),
    /// Show what push and pull would carry, and conflicts; nothing is changed.
    #[command(after_help = "\
Examples:
  wp-codebox sync run_1f status ./my-plugin

Exit status: 0 when both sides agree; 1 conflicts or failure; 3 when they differ.")]
    Status(StatusArgs),
}

/// What both sides are.
#[derive(Debug, Args)]
pub(crate) struct SidesArgs {
    /// Directory here and, behind a colon, in the sandbox. [default there: the only writable mount]
    #[arg(value_name = "LOCALDIR[:GUEST]")]
    pub sides: String,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Which side counts where both changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnConflict {
    /// Neither: nothing is carried and every conflict is shown.
    Fail,
    /// The sandbox's.
    Theirs,
    /// The one here.
    Ours,
}

/// Arguments of `sync push`.
#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    #[command(flatten)]
    pub sides: SidesArgs,
    /// Show what would be carried, and carry nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Which side counts where both changed.
    #[arg(long, value_enum, default_value = "fail")]
    pub on_conflict: OnConflict,
}

/// Arguments of `sync pull`.
#[derive(Debug, Args)]
pub(crate) struct PullArgs {
    #[command(flatten)]
    pub sides: SidesArgs,
    /// Change and remove files that exist here, too.
    #[arg(long)]
    pub write_back: bool,
    /// Show what would be carried, and carry nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Which side counts where both changed.
    #[arg(long, value_enum, default_value = "fail")]
    pub on_conflict: OnConflict,
}

/// Arguments of `sync status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub sides: SidesArgs,
}

/// A directory of each side: the guest's part begins at the last `:/`.
pub(super) fn sides(given: &str) -> (PathBuf, Option<String>) {
    match given.rfind(":/").filter(|at| *at > 0) {
        Some(at) => {
            let guest = given.get(at + 1..).unwrap_or_default();
            (
                given.get(..at).unwrap_or_default().into(),
                Some(guest.trim_end_matches('/').to_owned()),
            )
        }
        None => (given.into(), None),
    }
}
