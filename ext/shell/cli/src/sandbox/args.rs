//! Arguments of `sandbox`. The doc comments are the help texts.

use crate::guest_args::ServiceArgs;
use clap::{Args, Subcommand, ValueEnum};
use wp_codebox_contracts::SandboxScope;
use wp_codebox_settings::PathArgs;

/// Subcommands of `sandbox`.
#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Create a sandbox from a profile and wait until it is ready.
    Create(CreateArgs),
    /// Show a sandbox, including one that has ended.
    Get(OneArgs),
    /// List sandboxes, newest first, including ended ones.
    List(ListArgs),
    /// Set the remaining lifetime of a sandbox, counted from now.
    ExtendTtl(ExtendArgs),
    /// Store the files and the database of a sandbox as a snapshot.
    Snapshot(SnapshotArgs),
    /// Restore a sandbox to a snapshot.
    Restore(RestoreArgs),
    /// Destroy a sandbox and create it again from the same profile, mounts and snapshot.
    Recreate(OneArgs),
    /// End a sandbox and write its bundle. Has no effect on an ended sandbox.
    Destroy(OneArgs),
    /// Open the preview of a sandbox, or show its address if it is open.
    Preview(PreviewArgs),
    /// List snapshots, oldest first.
    Snapshots(SnapshotsArgs),
    /// Remove a snapshot. Has no effect if the snapshot does not exist.
    RemoveSnapshot(RemoveSnapshotArgs),
    /// Estimate the CPU time, memory and disk use of a sandbox, without a price.
    EstimateCost(EstimateArgs),
}

/// Site of the sandboxes and actor of the request.
#[derive(Debug, Clone, Args)]
pub(crate) struct PlaceArgs {
    /// Part of the state directory that is used, sites/ID.
    #[arg(long, value_name = "ID", default_value = "cli")]
    pub site: String,
    /// Name of the user or program that makes the request; recorded in the events of the run.
    #[arg(long, value_name = "NAME", default_value = "cli")]
    pub actor: String,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Owner of a sandbox.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ScopeArg {
    Session,
    Agent,
    Shared,
}

impl From<ScopeArg> for SandboxScope {
    fn from(scope: ScopeArg) -> Self {
        match scope {
            ScopeArg::Session => Self::Session,
            ScopeArg::Agent => Self::Agent,
            ScopeArg::Shared => Self::Shared,
        }
    }
}

/// Arguments of `sandbox create`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox sandbox create --profile ./shop.yaml --source ./shop \\
    --wordpress /srv/site
  wp-codebox sandbox create --profile profile.shop@1.2.0 --ttl 30m \\
    --from-snapshot snap_1f --json

Exit status: 0 when it is ready; 1 when the profile is not valid or one of its setup commands \
failed; 125 when it could not start.")]
pub(crate) struct CreateArgs {
    /// File in YAML or JSON, or the id of a profile in <state>/profiles.
    #[arg(long, value_name = "FILE|ID")]
    pub profile: String,
    /// Host directory for the workspace, if the profile names none.
    #[arg(long, value_name = "DIR")]
    pub source: Option<String>,
    /// Start with the files and the database of this snapshot.
    #[arg(long, value_name = "SNAPSHOT")]
    pub from_snapshot: Option<String>,
    #[command(flatten)]
    pub services: ServiceArgs,
    /// Time to live, such as 90s, 15m or 4h. [default: the profile's]
    #[arg(long, value_name = "DURATION")]
    pub ttl: Option<String>,
    /// Owner of the sandbox. [default: the profile's]
    #[arg(long, value_enum)]
    pub scope: Option<ScopeArg>,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Arguments of `sandbox get`, `recreate` and `destroy`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox sandbox get run_1f --json
  wp-codebox sandbox recreate run_1f
  wp-codebox sandbox destroy run_1f --actor deploy

Exit status: 0; 1 when the sandbox does not exist; 125 when it does not answer or cannot start.")]
pub(crate) struct OneArgs {
    /// Id of the sandbox or a unique prefix of the id.
    #[arg(value_name = "SANDBOX")]
    pub sandbox: String,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Arguments of `sandbox list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox sandbox list
  wp-codebox sandbox list --limit 200 --json

Exit status: 0, also when there is none; 125 when the state directory cannot be used.")]
pub(crate) struct ListArgs {
    /// Number of rows, at most 200.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=200))]
    pub limit: u16,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Arguments of `sandbox extend-ttl`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox sandbox extend-ttl run_1f 2h

Exit status: 0; 1 when it has ended or the time is not allowed; 125 when it does not answer.")]
pub(crate) struct ExtendArgs {
    /// Id of the sandbox or a unique prefix of the id.
    #[arg(value_name = "SANDBOX")]
    pub sandbox: String,
    /// Remaining lifetime from now, such as 90s, 15m or 4h.
    #[arg(value_name = "DURATION")]
    pub ttl: String,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Arguments of `sandbox snapshot`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox sandbox snapshot run_1f --name before-update

Exit status: 0 when it is complete on disk; 1 when a program runs in the sandbox or the name is \
taken; 125 when the sandbox does not answer or there is no space.")]
pub(crate) struct SnapshotArgs {
    /// Id of the sandbox or a unique prefix of the id.
    #[arg(value_name = "SANDBOX")]
    pub sandbox: String,
    /// Name, unique in this sandbox. [default: the time]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Arguments of `sandbox restore`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox sandbox restore run_1f before-update
  wp-codebox sandbox restore run_1f snap_9c1d

Exit status: 0; 1 when the snapshot does not exist or is damaged (the sandbox continues as it \
was), or a program runs in the sandbox; 125 when the sandbox does not answer.")]
pub(crate) struct RestoreArgs {
    /// Id of the sandbox or a unique prefix of the id.
    #[arg(value_name = "SANDBOX")]
    pub sandbox: String,
    /// Id of a snapshot, a unique prefix of the id, or the name of a snapshot of this sandbox.
    #[arg(value_name = "SNAPSHOT")]
    pub snapshot: String,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Arguments of `sandbox snapshots`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox sandbox snapshots
  wp-codebox sandbox snapshots --of run_1f --json

`wp-codebox gc --snapshots-max-age 7d` removes old ones.

Exit status: 0, also when there is none; 1 when a snapshot cannot be read, which stays as it is.")]
pub(crate) struct SnapshotsArgs {
    /// List only snapshots of this sandbox.
    #[arg(long, value_name = "SANDBOX")]
    pub of: Option<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Arguments of `sandbox remove-snapshot`.
#[derive(Debug, Args)]
#[command(after_help = "\
The removal is recorded in the site's audit log before the snapshot is removed.

Examples:
  wp-codebox sandbox remove-snapshot snap_9c1d
  wp-codebox sandbox remove-snapshot before-update --of run_1f \\
    --actor deploy --json

Exit status: 0, also when a complete id no longer exists; 1 when nothing matches, or while a \
running sandbox started from it or was restored to it; 125 when it cannot be removed.")]
pub(crate) struct RemoveSnapshotArgs {
    /// Id of the snapshot or a unique prefix of the id; with --of also its name.
    #[arg(value_name = "SNAPSHOT")]
    pub snapshot: String,
    /// Consider only snapshots of this sandbox.
    #[arg(long, value_name = "SANDBOX")]
    pub of: Option<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Arguments of `sandbox preview`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox sandbox preview run_1f
  wp-codebox sandbox preview run_1f --login
  wp-codebox sandbox preview run_1f --login=editor --json

Exit status: 0; 1 when the sandbox does not exist or has ended, or the preview cannot be opened.")]
pub(crate) struct PreviewArgs {
    /// Id of the sandbox or of the run that keeps it running, or a unique prefix of the id.
    #[arg(value_name = "SANDBOX")]
    pub sandbox: String,
    /// Also create a link that signs its first visitor in to wp-admin: as USER, or as the first
    /// administrator. Replaces an unused link.
    #[arg(long, value_name = "USER", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub login: Option<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Arguments of `sandbox estimate-cost`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox sandbox estimate-cost --profile ./shop.yaml --duration 2h

Exit status: 0; 1 when the profile is not valid.")]
pub(crate) struct EstimateArgs {
    /// File in YAML or JSON, or the id of a profile in <state>/profiles.
    #[arg(long, value_name = "FILE|ID")]
    pub profile: String,
    /// Lifetime for the estimate, such as 90s, 15m or 4h. [default: the profile's time to live]
    #[arg(long, value_name = "DURATION")]
    pub duration: Option<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
}
