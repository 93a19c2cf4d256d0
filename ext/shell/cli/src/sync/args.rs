//! Arguments of `sync`. The doc comments are the help texts.

use crate::runs::PlaceArgs;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Arguments of `sync`.
#[derive(Debug, Args)]
#[command(after_help = "\
The state of the last sync is stored with the run and shows which side changed a file: a file that \
one side changed is copied to the other side; a file that both sides changed is a conflict. .git is \
never synced; symbolic links are neither followed nor copied; the largest file size is 1408 KiB.

Examples:
  wp-codebox sync run_1f push ./my-plugin
  wp-codebox sync run_1f pull ./my-plugin --dry-run
  wp-codebox sync run_1f pull ./my-plugin:/workspace/my-plugin \\
    --write-back --on-conflict ours
  wp-codebox sync run_1f status ./my-plugin --json

Exit status: 0 when both sides are equal afterwards; 1 when there are conflicts and nothing was \
copied, or the sandbox or a file cannot be used; 3 when a file was left out.")]
pub(crate) struct SyncArgs {
    /// Id of the run whose sandbox is kept running, or a unique prefix of the id.
    #[arg(value_name = "RUN")]
    pub run: String,
    #[command(subcommand)]
    pub action: SyncAction,
}

/// Subcommands of `sync`.
#[derive(Debug, Subcommand)]
pub(crate) enum SyncAction {
    /// Copy local changes into the sandbox.
    #[command(after_help = "\
Examples:
  wp-codebox sync run_1f push ./my-plugin
  wp-codebox sync run_1f push ./my-plugin:/workspace/my-plugin --dry-run

Exit status: 0; 1 conflicts or failure; 3 when a file was left out.")]
    Push(PushArgs),
    /// Copy changes in the sandbox to the local directory.
    #[command(after_help = "\
Without --write-back existing local files are neither changed nor removed.

Examples:
  wp-codebox sync run_1f pull ./copy
  wp-codebox sync run_1f pull ./my-plugin --write-back

Exit status: 0; 1 conflicts or failure; 3 when a file was left out.")]
    Pull(PullArgs),
    /// Show what push and pull would copy, and conflicts, without changing files.
    #[command(after_help = "\
Examples:
  wp-codebox sync run_1f status ./my-plugin

Exit status: 0 when both sides are equal; 1 conflicts or failure; 3 when they differ.")]
    Status(StatusArgs),
}

/// Directories to synchronize.
#[derive(Debug, Args)]
pub(crate) struct SidesArgs {
    /// Local directory and, after a colon, the directory in the sandbox. [default in the sandbox:
    /// the only writable mount]
    #[arg(value_name = "LOCALDIR[:GUEST]")]
    pub sides: String,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Side that wins if both changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnConflict {
    /// Neither side: copy nothing and list every conflict.
    Fail,
    /// The sandbox.
    Theirs,
    /// The local directory.
    Ours,
}

impl From<OnConflict> for wp_codebox_changes::OnConflict {
    fn from(given: OnConflict) -> Self {
        match given {
            OnConflict::Fail => Self::Fail,
            OnConflict::Theirs => Self::Theirs,
            OnConflict::Ours => Self::Ours,
        }
    }
}

/// Arguments of `sync push`.
#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    #[command(flatten)]
    pub sides: SidesArgs,
    /// Show what would be copied without copying it.
    #[arg(long)]
    pub dry_run: bool,
    /// Side that wins if both changed.
    #[arg(long, value_enum, default_value = "fail")]
    pub on_conflict: OnConflict,
}

/// Arguments of `sync pull`.
#[derive(Debug, Args)]
pub(crate) struct PullArgs {
    #[command(flatten)]
    pub sides: SidesArgs,
    /// Also change and remove existing local files.
    #[arg(long)]
    pub write_back: bool,
    /// Show what would be copied without copying it.
    #[arg(long)]
    pub dry_run: bool,
    /// Side that wins if both changed.
    #[arg(long, value_enum, default_value = "fail")]
    pub on_conflict: OnConflict,
}

/// Arguments of `sync status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub sides: SidesArgs,
}

/// Splits `LOCALDIR[:GUEST]` into its two directories; that of the guest starts at the last `:/`.
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
