//! Arguments of every subcommand. The doc comments are the help texts.

use super::boot::BootArgs;
use super::episode::EpisodeCommand;
use super::groups::{BatchArgs, FanoutArgs, SingleArgs};
use super::profile::ProfileCommand;
use super::recipe::{BlueprintArgs, RecipeCommand, RecipeRunArgs, WorkspacePolicyCommand};
use super::run_args::RunArgs;
use super::runs::{PlaceArgs, RunsCommand};
use super::sandbox::SandboxCommand;
use super::settings::PathArgs;
use super::sync::SyncArgs;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Runs coding agents in a disposable WordPress, isolated by the kernel, and hands
/// back a verifiable bundle of what they changed.
#[derive(Debug, Parser)]
#[command(
    name = "wp-codebox",
    version,
    disable_help_subcommand = true,
    max_term_width = 100
)]
#[command(after_help = "\
Every command has more to say: `wp-codebox help COMMAND`, or its page of the manual.

Examples:
  wp-codebox doctor
  wp-codebox run --wordpress /srv/site --mount ./my-plugin:/workspace/x \\
    --agent-command 'sh fix.sh' --check 'phpunit'
  wp-codebox runs list --json | jq -r '.runs[].runId'

Exit status: 0 succeeded, 1 failed or wrong usage, 3 partial or blocked, 124 timed out, 125 the \
sandbox could not start or this host is not set up, 126 denied by policy, 130 cancelled; that of \
`exec` is its program's.

Environment:
  WP_CODEBOX_STATE_DIR                 instead of --state
  WP_CODEBOX_WORDPRESS                 instead of --wordpress
  WP_CODEBOX_SHARE_DIR                 instead of --share
  WP_CODEBOX_LAUNCHER                  instead of --launcher
  WP_CODEBOX_CGROUP                    instead of --cgroup
  WP_CODEBOX_IDENTITY                  instead of --identity
  WP_CODEBOX_GUEST_IDS                 instead of --guest-ids
  WP_CODEBOX_AGENTS_DIR                instead of --agents-dir
  WP_CODEBOX_BROWSER                   instead of --browser
  WP_CODEBOX_PHP                       instead of --php
  WP_CODEBOX_PREVIEW_HOLD_MAX_SECONDS  longest --preview-hold, 3600 to 86400
  WP_CODEBOX_REQUIRE_SOURCE_SHA256     1: a recipe names the sha256 of archives
  COLUMNS                              width of help, where no terminal says it
  NO_COLOR                             if set, no colours in help and errors

Files:
  /var/lib/wp-codebox             state: templates, runs, bundles, keys
  /usr/share/wp-codebox           WP-CLI, the SQLite drop-in, guest programs
  /usr/libexec/wp-codebox-launch  launcher
  /opt/wp-codebox/agents          programs of agents, a directory for each
  STATE/profiles                  profiles that sandboxes are made from")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one command or agent in a fresh sandbox and write its bundle.
    Run(Box<RunArgs>),
    /// Run a program in a sandbox that is held, with your terminal or pipes.
    Exec(Box<super::exec::ExecArgs>),
    /// Start a WordPress that stays for a while.
    Boot(Box<BootArgs>),
    /// Judge and plan recipes.
    #[command(subcommand)]
    Recipe(RecipeCommand),
    /// Run a recipe in a fresh sandbox and write its bundle.
    RecipeRun(Box<RecipeRunArgs>),
    /// Say which parts of a blueprint mean something here, and why the rest does not.
    ValidateBlueprint(BlueprintArgs),
    /// Judge where a workspace may be changed.
    #[command(subcommand)]
    WorkspacePolicy(WorkspacePolicyCommand),
    /// Verify bundles and prepare their application.
    #[command(subcommand, alias = "artifact")]
    Artifacts(ArtifactsCommand),
    /// Work with a sandbox step by step, and keep a trace of it that verifies.
    #[command(subcommand)]
    Episode(EpisodeCommand),
    /// Run one agent task that is given as JSON.
    #[command(visible_aliases = ["run-agent-task", "agent-task-run"])]
    AgentSandboxRun(SingleArgs),
    /// Run several agent tasks, each in a sandbox of its own.
    #[command(visible_alias = "run-agent-task-batch")]
    AgentSandboxBatch(BatchArgs),
    /// Run workers that may wait for each other, and judge what they come to together.
    #[command(visible_alias = "run-agent-task-fanout")]
    AgentFanout(FanoutArgs),
    /// Make sandboxes that outlive their commands, keep their state, bring it back, end them.
    #[command(subcommand)]
    Sandbox(SandboxCommand),
    /// Judge and list the profiles that sandboxes are made from.
    #[command(subcommand)]
    Profile(ProfileCommand),
    /// Look at runs that others started, follow and cancel them.
    #[command(subcommand)]
    Runs(RunsCommand),
    /// List the agents there are presets for, and whether their programs are installed.
    Agents(super::agents::AgentsArgs),
    /// List the commands a sandbox offers, or show one with its arguments.
    Commands(super::commands::CommandsArgs),
    /// Print the JSON Schema of a document, or the definition of a tool.
    Schema(SchemaArgs),
    /// Check whether this host can run sandboxes, and say what to fix.
    Doctor(DoctorArgs),
    /// Carry files between a directory here and a held sandbox.
    Sync(SyncArgs),
    /// Remove what runs left: settled run directories, dead scratch, unfinished bundles,
    /// unused templates, empty control groups. Bundles only when asked for.
    Gc(GcArgs),
    /// Print a completion script for a shell.
    #[command(after_help = "\
Examples:
  wp-codebox completion bash >/etc/bash_completion.d/wp-codebox
  source <(wp-codebox completion zsh)

Exit status: 0 printed, 1 wrong usage.")]
    Completion {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the help of a command, as its --help does.
    #[command(after_help = "\
Examples:
  wp-codebox help
  wp-codebox help runs list

Exit status: 0 printed, 1 there is no such command.")]
    Help {
        /// The command, such as `runs list`; none: the whole program.
        command: Vec<String>,
    },
    /// Print the manual page of a command, or write all pages into a directory.
    Man(super::manual::ManArgs),
    /// Print the bare version.
    #[command(after_help = "\
Examples:
  wp-codebox version

Exit status: 0.")]
    Version,
    /// Start a supervisor for a caller that holds the frame socket on descriptor 3.
    #[command(hide = true)]
    Spawn,
    /// Remove the groups of a run when its supervisor is gone.
    #[command(hide = true)]
    KeepCgroups {
        /// The run's file in the state directory.
        intent: PathBuf,
        /// The groups.
        directories: Vec<PathBuf>,
    },
    /// Supervise one run.
    #[command(hide = true)]
    Supervise {
        #[arg(long, default_value_t = 3)]
        frames_fd: i32,
        /// Numbers set aside for guests of callers who are not root: FIRST:COUNT.
        #[arg(long)]
        guest_ids: Option<String>,
    },
}

/// Arguments of `schema`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox schema --list
  wp-codebox schema recipe --json
  wp-codebox schema wp-codebox/command-catalog/v1
  wp-codebox schema tool workspace.read

Exit status: 0 printed, 1 there is no such schema or wrong usage.")]
pub(crate) struct SchemaArgs {
    /// Id of the schema, or its name without `wp-codebox/` and `/v1`; or `tool` and its name.
    #[arg(value_name = "NAME", num_args = 0..=2)]
    pub name: Vec<String>,
    /// List the schemas and tools there are.
    #[arg(long)]
    pub list: bool,
    /// Print JSON on standard output; a schema is JSON anyway.
    #[arg(long)]
    pub json: bool,
}

/// Bundle and key of `artifacts`.
#[derive(Debug, Args)]
pub(crate) struct BundleArgs {
    /// Bundle directory.
    #[arg(long, visible_alias = "artifacts", value_name = "DIR")]
    pub bundle: PathBuf,
    /// State directory whose key counts as this host's; one that is named must have a key. With a
    /// key `apply-preflight` refuses bundles that others signed, as an apply would.
    /// [default: $WP_CODEBOX_STATE_DIR, else /var/lib/wp-codebox]
    #[arg(long = "state", value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Subcommands of `artifacts`.
#[derive(Debug, Subcommand)]
pub(crate) enum ArtifactsCommand {
    /// Verify a bundle directory; exit 1 when anything is wrong with it.
    Verify(VerifyArgs),
    /// Cut a bundle's patch down to approved files; exit 1 when it is not ready.
    ApplyPreflight(PreflightArgs),
}

/// Arguments of `artifacts verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox artifacts verify --bundle ./out/run_1f \\
    --state /var/lib/wp-codebox --json

Exit status: 0 the bundle is what it says, 1 it is not, or cannot be read.")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub of: BundleArgs,
}

/// Arguments of `artifacts apply-preflight`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox artifacts apply-preflight --bundle ./out/run_1f \\
    --approved-file /workspace/my-plugin/my-plugin.php \\
    --state /var/lib/wp-codebox --json

Exit status: 0 the approved part can be applied, 1 it cannot; the answer says why.")]
pub(crate) struct PreflightArgs {
    #[command(flatten)]
    pub of: BundleArgs,
    /// An approved path, exactly as in changed-files.json; may be repeated.
    #[arg(long = "approved-file", value_name = "PATH")]
    pub approved: Vec<String>,
    /// Approved paths, separated by commas.
    #[arg(long, value_name = "PATHS", value_delimiter = ',')]
    pub approved_files: Vec<String>,
}

/// Arguments of `gc`.
#[derive(Debug, Args)]
#[command(after_help = "\
Nothing of a run that is alive is touched.

Examples:
  wp-codebox gc --dry-run
  wp-codebox gc --max-age 7d --max-bytes 2G
  wp-codebox gc --artifacts-max-age 90d --json

Exit status: 0, or 1 when something could not be removed.")]
pub(crate) struct GcArgs {
    /// Remove settled runs, and templates unused for so long, such as 12h or 7d.
    #[arg(long, value_name = "AGE", default_value = "30d")]
    pub max_age: String,
    /// Keep at most so much of the settled runs of each site, newest first: bytes, or a number with K, M or G.
    #[arg(long, value_name = "SIZE")]
    pub max_bytes: Option<String>,
    /// Also delete bundles older than this. Without it bundles stay whatever their age.
    #[arg(long, value_name = "AGE")]
    pub artifacts_max_age: Option<String>,
    /// Also delete snapshots of sandboxes older than this. Without it and --snapshots-max-bytes they stay.
    #[arg(long, value_name = "AGE")]
    pub snapshots_max_age: Option<String>,
    /// Keep at most so much of the snapshots of each site, newest first: bytes, or a number with K, M or G.
    #[arg(long, value_name = "SIZE")]
    pub snapshots_max_bytes: Option<String>,
    /// List what would be removed, and remove nothing.
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox doctor
  sudo wp-codebox doctor --state /var/lib/wp-codebox --json

Exit status: 0 sandboxes can run here, 1 they cannot, or not as safely as asked; every cause \
comes with its fix.")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}
