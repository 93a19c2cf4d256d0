//! Arguments of every subcommand. The doc comments are the help texts.

use super::artifacts::{
    BenchCompareArgs, BenchResultsArgs, BenchmarkArgs, BrowserMetricsArgs, DiscoverPartialArgs,
};
use super::bench::BenchCommand;
use super::boot::BootArgs;
use super::daily;
use super::episode::EpisodeCommand;
use super::groups::{BatchArgs, FanoutArgs, SingleArgs};
use super::internal::Internal;
use super::phpunit::PhpunitArgs;
use super::platform::MoreCommands;
use super::preview_lease::LeaseCommand;
use super::profile::ProfileCommand;
use super::recipe::{BlueprintArgs, RecipeCommand, RecipeRunArgs, WorkspacePolicyCommand};
use super::replay_package::MaterializeArgs;
use super::run_args::RunArgs;
use super::runs::{OneArgs, PlaceArgs, RunsCommand};
use super::sandbox::SandboxCommand;
use super::sync::SyncArgs;
use super::trusted_key_args::TrustedKeyArgs;
use super::workload::WorkloadArgs;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use wp_codebox_contracts::IsolationLevel;
use wp_codebox_settings::PathArgs;

const USAGE: &str = "\
wp-codebox 'GOAL' [OPTIONS of run]
       wp-codebox COMMAND [ARGUMENTS]";

/// Help of the whole program: one screen. The manual page lists all commands and what [`Cli`] says after
/// its options.
pub(crate) const OVERVIEW: &str = "\
Runs coding agents in disposable, kernel-isolated WordPress sandboxes

Usage: wp-codebox 'GOAL' [OPTIONS of run]  in a plugin's or theme's directory
       wp-codebox COMMAND [ARGUMENTS]

Start here   run    Run an agent or another program in a new sandbox
             diff   Print the change of a run as a patch
             apply  Apply the change of a run to the files of this directory
             undo   Undo an applied change
             again  Run again with comments on the last change
             log    List the runs of this directory, newest first
Look inside  up, shell, wp, php
Check        test, phpunit
Automate     recipe, recipe-run, bench, episode
Kept running sandbox, boot, exec, sync, profile
Results      runs, artifacts, recover, gc
Reference    commands, tools, agents, schema, man, version
Set up       doctor, config, wordpress, users, keys, completion
Many hosts   serve, token, node, cluster, ledger

Example: wp-codebox 'Fix the failing test' --agent codex --model NAME

`wp-codebox help COMMAND` describes a command. `wp-codebox man | man -l -` has
all commands, exit statuses, environment variables and files.
";

/// Runs coding agents in disposable, kernel-isolated WordPress sandboxes and returns a verifiable
/// bundle of their changes.
#[derive(Debug, Parser)]
#[command(
    name = "wp-codebox",
    version,
    disable_help_subcommand = true,
    max_term_width = 100
)]
#[command(override_help = OVERVIEW, override_usage = USAGE)]
#[command(after_help = "\
Nothing has to be configured: in the directory of a plugin or theme, a goal in quotes starts a run.

Examples:
  wp-codebox 'Fix the failing test' --agent-command 'sh fix.sh' --check auto
  wp-codebox diff && wp-codebox apply
  wp-codebox up --open
  wp-codebox test
  wp-codebox runs list --json | jq -r '.runs[].runId'

Exit status: 0 succeeded, 1 failed or wrong usage, 3 partial or blocked, 124 timed out, 125 the \
sandbox could not start or this host is not set up, 126 denied by policy, 130 cancelled; \
`exec` returns the exit status of its program.

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
  WP_CODEBOX_CACHE_DIR                 directory of WordPress versions
  WP_CODEBOX_CONFIG                    configuration file, see `config`
  WP_CODEBOX_PREVIEW_HOLD_MAX_SECONDS  longest --preview-hold, 3600 to 86400
  WP_CODEBOX_REQUIRE_SOURCE_SHA256     1: archives in recipes need a sha256
  COLUMNS                              width of help without a terminal
  NO_COLOR                             if set, no colours in help and errors

Files:
  /var/lib/wp-codebox/wp-codebox  state of root: templates, runs, bundles, keys
  /var/lib/wp-codebox/USER        state of a user of `wp-codebox users`
  ~/.local/state/wp-codebox       state of other users
  /var/cache/wp-codebox           WordPress versions of root
  ~/.cache/wp-codebox             WordPress versions of other users
  /usr/share/wp-codebox           WP-CLI, the SQLite drop-in, guest programs
  /usr/libexec/wp-codebox-launch  launcher
  /opt/wp-codebox/agents          agent programs, one directory each
  STATE/tools                     registered WASI tools
  STATE/profiles                  profiles of sandboxes")]
pub(crate) struct Cli<M: MoreCommands> {
    #[command(subcommand)]
    pub command: Command<M>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command<M: MoreCommands> {
    /// Run an agent or another program in a new sandbox and write its bundle.
    Run(Box<RunArgs>),
    /// Run again with comments on the last change of this directory.
    Again(Box<daily::AgainArgs>),
    /// Print the change of a run as a patch.
    Diff(daily::DiffArgs),
    /// Apply the change of a run to the files of this directory.
    Apply(daily::ApplyArgs),
    /// Undo an applied change.
    Undo(daily::UndoArgs),
    /// List the runs of this directory, newest first.
    Log(daily::LogArgs),
    /// Start a WordPress with the project of this directory and print its address.
    Up(Box<daily::UpArgs>),
    /// Open a shell in a sandbox with the project of this directory.
    Shell(daily::ShellArgs),
    /// Run WP-CLI in a sandbox with the project of this directory.
    Wp(daily::ProgramArgs),
    /// Run PHP in a sandbox with the project of this directory.
    Php(daily::ProgramArgs),
    /// Run the project's own checks in a sandbox.
    Test(daily::TestArgs),
    /// Run the project's PHPUnit tests, in one sandbox or divided among several.
    Phpunit(Box<PhpunitArgs>),
    /// Run a program in a sandbox that is kept running, connected to your terminal or pipes.
    Exec(Box<super::exec::ExecArgs>),
    /// Start a WordPress sandbox and keep it running for a while.
    Boot(Box<BootArgs>),
    /// Validate recipes, or show what they would do.
    #[command(subcommand)]
    Recipe(RecipeCommand),
    /// Run a recipe, a JSON file with steps, in a fresh sandbox and write its bundle.
    RecipeRun(Box<RecipeRunArgs>),
    /// Run the commands of one JSON document in a fresh sandbox and print one JSON document.
    RunWordpressWorkload(Box<WorkloadArgs>),
    /// Show which parts of a blueprint are supported, and why others are not.
    ValidateBlueprint(BlueprintArgs),
    /// Check a workspace against a policy for writable and hidden paths.
    #[command(subcommand)]
    WorkspacePolicy(WorkspacePolicyCommand),
    /// Verify bundles, prepare applying them, and read the measurements in them.
    #[command(subcommand, alias = "artifact")]
    Artifacts(ArtifactsCommand),
    /// Summarize and compare benchmark results, and measure a recipe with several values.
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Write a package that sets up the site of a snapshot elsewhere.
    MaterializeReplayPackage(MaterializeArgs),
    /// Work with a sandbox step by step and record a verifiable trace.
    #[command(subcommand)]
    Episode(EpisodeCommand),
    /// Run one agent task given as JSON.
    #[command(visible_aliases = ["run-agent-task", "agent-task-run"])]
    AgentSandboxRun(SingleArgs),
    /// Run several agent tasks, each in its own sandbox.
    #[command(visible_alias = "run-agent-task-batch")]
    AgentSandboxBatch(BatchArgs),
    /// Run agent tasks that may depend on each other, and aggregate their results.
    #[command(visible_alias = "run-agent-task-fanout")]
    AgentFanout(FanoutArgs),
    /// Create long-lived sandboxes, snapshot and restore them, and destroy them.
    #[command(subcommand)]
    Sandbox(SandboxCommand),
    /// Validate and list the profiles that sandboxes are created from.
    #[command(subcommand)]
    Profile(ProfileCommand),
    /// Commands that only the program has.
    #[command(flatten)]
    More(M),
    /// Inspect, follow and cancel runs, including runs of other processes.
    #[command(subcommand)]
    Runs(RunsCommand),
    /// Show or close the preview of a run: the address of its site while the sandbox is kept
    /// running.
    #[command(subcommand)]
    PreviewLease(LeaseCommand),
    /// List the agents with presets and whether their programs are installed.
    Agents(super::agents::AgentsArgs),
    /// Register, list, remove and run WASI tools for agents.
    #[command(subcommand)]
    Tools(super::tools::ToolsCommand),
    /// List the commands that a sandbox offers, or show one with its arguments.
    Commands(super::commands::CommandsArgs),
    /// Print the JSON Schema of a document or the definition of a tool.
    Schema(SchemaArgs),
    /// Check whether this host can run sandboxes and show how to fix problems.
    Doctor(DoctorArgs),
    /// Show all settings and where each value comes from.
    Config(super::config::ConfigArgs),
    /// Let users of this host run tasks through the runner socket, each with its own state.
    #[command(subcommand)]
    Users(super::users::UsersCommand),
    /// Install, list and choose WordPress versions for sandboxes.
    #[command(subcommand)]
    Wordpress(super::wordpress::WordpressCommand),
    /// Synchronize files between a local directory and a sandbox that is kept running.
    Sync(SyncArgs),
    /// Make a bundle of a run that worked and whose end failed.
    #[command(after_help = "\
The supervisor of a run writes a recovery bundle before the checks. When the run cannot write its own \
bundle afterwards, because the disk is full for instance, its error names this command. The bundle has \
the change, says that it is a recovery, has no check results and no signature, and cannot be approved: \
read it with `artifacts`, and run again. Outcome and error of the run stay. `gc` removes what the run \
kept in its scratch directory.

With --json the output is wp-codebox/run/v1.

Examples:
  wp-codebox recover run_1f
  wp-codebox recover run_1f --json | jq -r .bundle_id

Exit status: 0, also when the run has a bundle already; 1 when no run or more than one matches, or \
the run left no recovery bundle; 125 when it has not ended or the state directory cannot be used.")]
    Recover(OneArgs),
    /// Replace the key that signs the bundles of this host.
    #[command(subcommand)]
    Keys(super::keys::KeysCommand),
    /// Remove leftovers of runs: directories of ended runs, scratch directories of crashed runs,
    /// unfinished bundles, unused templates and empty cgroups. Removes bundles only with
    /// --artifacts-max-age.
    Gc(GcArgs),
    /// Print a completion script for a shell.
    #[command(after_help = "\
Examples:
  wp-codebox completion bash >/etc/bash_completion.d/wp-codebox
  source <(wp-codebox completion zsh)

Exit status: 0 printed, 1 wrong usage.")]
    Completion {
        /// Shell to print the script for.
        shell: clap_complete::Shell,
    },
    /// Print the help of a command, like its --help option.
    #[command(after_help = "\
Examples:
  wp-codebox help
  wp-codebox help runs list

Exit status: 0 printed, 1 unknown command.")]
    Help {
        /// Command, such as `runs list`. [default: the whole program]
        command: Vec<String>,
    },
    /// Print the manual page of a command, or write all pages into a directory.
    Man(super::manual::ManArgs),
    /// Print the version number only.
    #[command(after_help = "\
Examples:
  wp-codebox version

Exit status: 0.")]
    Version,
    #[command(flatten)]
    Internal(Internal),
}

/// Arguments of `schema`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox schema --list
  wp-codebox schema recipe --json
  wp-codebox schema wp-codebox/command-catalog/v1
  wp-codebox schema tool workspace.read

Exit status: 0 printed, 1 unknown schema or wrong usage.")]
pub(crate) struct SchemaArgs {
    /// Id of the schema, or its name without `wp-codebox/` and `/v1`; or `tool` and the name of a
    /// tool.
    #[arg(value_name = "NAME", num_args = 0..=2)]
    pub name: Vec<String>,
    /// List the available schemas and tools.
    #[arg(long)]
    pub list: bool,
    /// Print JSON on standard output (a schema is JSON in any case).
    #[arg(long)]
    pub json: bool,
}

/// Options of `artifacts` that name the bundle and the key.
#[derive(Debug, Args)]
pub(crate) struct BundleArgs {
    /// Bundle directory.
    #[arg(long, visible_alias = "artifacts", value_name = "DIR")]
    pub bundle: PathBuf,
    /// State directory whose key counts as this host's key; fails if a directory given here has no
    /// key. With a key, `apply-preflight` rejects bundles that no trusted key signed, like an
    /// apply does. [default: as --state of other commands]
    #[arg(long = "state", value_name = "DIR")]
    pub state: Option<PathBuf>,
    #[command(flatten)]
    pub trusted: TrustedKeyArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Subcommands of `artifacts`.
#[derive(Debug, Subcommand)]
pub(crate) enum ArtifactsCommand {
    /// Verify a bundle directory; exit status 1 if it is not valid.
    Verify(VerifyArgs),
    /// Reduce a bundle's patch to the approved files; exit status 1 if it cannot be applied.
    ApplyPreflight(PreflightArgs),
    /// List or extract the benchmark results of a bundle.
    Benchmark(BenchmarkArgs),
    /// Summarize the benchmark results of a bundle.
    BenchResults(BenchResultsArgs),
    /// Compare the benchmark results of two bundles.
    BenchCompare(BenchCompareArgs),
    /// Show times, memory, requests and errors of the browser commands of a run.
    BrowserMetrics(BrowserMetricsArgs),
    /// List bundles below a directory, and files that belong to no complete bundle.
    DiscoverPartial(DiscoverPartialArgs),
}

/// Arguments of `artifacts verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox artifacts verify --bundle ./out/run_1f \\
    --state /var/lib/wp-codebox/www-data --json

Exit status: 0 the bundle is valid, 1 it is not valid or cannot be read.")]
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
    --state /var/lib/wp-codebox/www-data --json

Exit status: 0 the approved files can be applied, 1 they cannot; the output states why.")]
pub(crate) struct PreflightArgs {
    #[command(flatten)]
    pub of: BundleArgs,
    /// Approved path, exactly as in changed-files.json; may be repeated.
    #[arg(long = "approved-file", value_name = "PATH")]
    pub approved: Vec<String>,
    /// Approved paths, separated by commas.
    #[arg(long, value_name = "PATHS", value_delimiter = ',')]
    pub approved_files: Vec<String>,
    /// Accept contents that a browser uploaded; the signing host did not see their code run.
    #[arg(long)]
    pub confirm_browser_origin: bool,
}

/// Arguments of `gc`.
#[derive(Debug, Args)]
#[command(after_help = "\
Running sandboxes and their files are never removed.

Examples:
  wp-codebox gc --dry-run
  wp-codebox gc --max-age 7d --max-bytes 2G
  wp-codebox gc --artifacts-max-age 90d --json

A run that cannot be read stays as it is, and the report names it.

Exit status: 0, or 1 when something could not be removed or a run cannot be read.")]
pub(crate) struct GcArgs {
    /// Remove ended runs and templates that were not used for this time, such as 12h or 7d.
    #[arg(long, value_name = "AGE", default_value = "30d")]
    pub max_age: String,
    /// Maximum total size of the ended runs of each site; the oldest beyond it are removed: bytes,
    /// or a number with K, M or G.
    #[arg(long, value_name = "SIZE")]
    pub max_bytes: Option<String>,
    /// Also delete bundles older than this. Without this option bundles are never removed.
    #[arg(long, value_name = "AGE")]
    pub artifacts_max_age: Option<String>,
    /// Also delete snapshots of sandboxes older than this. Without this option and
    /// --snapshots-max-bytes snapshots are never removed.
    #[arg(long, value_name = "AGE")]
    pub snapshots_max_age: Option<String>,
    /// Maximum total size of the snapshots of each site; the oldest beyond it are removed: bytes, or
    /// a number with K, M or G.
    #[arg(long, value_name = "SIZE")]
    pub snapshots_max_bytes: Option<String>,
    /// Number of applied changes of each site that can still be undone; the undo data of older ones
    /// is removed.
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    pub changes: usize,
    /// Also remove the undo data of applied changes older than this.
    #[arg(long, value_name = "AGE", default_value = "90d")]
    pub changes_max_age: String,
    /// Maximum total size of the old file contents that each site stores to undo applied changes;
    /// the oldest beyond it are removed: bytes, or a number with K, M or G.
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    pub changes_max_bytes: String,
    /// List what would be removed without removing it.
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Isolation level that `doctor` requires.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum RequiredLevel {
    Full,
    Reduced,
}

impl From<RequiredLevel> for IsolationLevel {
    fn from(level: RequiredLevel) -> Self {
        match level {
            RequiredLevel::Full => Self::Full,
            RequiredLevel::Reduced => Self::Reduced,
        }
    }
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox doctor
  sudo wp-codebox doctor --state /var/lib/wp-codebox/www-data --json
  wp-codebox doctor --require reduced

Exit status: 0 a run with the required isolation level can start, 1 it cannot; each problem is shown \
with its fix.")]
pub(crate) struct DoctorArgs {
    /// Isolation level that a sandbox must reach. A run needs full, unless its policy allows
    /// reduced.
    #[arg(long, value_name = "LEVEL", default_value = "full")]
    pub require: RequiredLevel,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HandedOver;
    use clap::CommandFactory;

    /// Commands that callers of the public contract use, which only the manual page lists.
    const CONTRACT: [&str; 8] = [
        "agent-fanout",
        "agent-sandbox-batch",
        "agent-sandbox-run",
        "materialize-replay-package",
        "preview-lease",
        "run-wordpress-workload",
        "validate-blueprint",
        "workspace-policy",
    ];

    #[test]
    fn overview_names_every_command_except_those_of_the_contract_and_fits_24_lines_of_80_columns() {
        assert!(OVERVIEW.lines().count() <= 24);
        assert!(OVERVIEW.lines().all(|line| line.chars().count() < 80));
        let (_, groups) = OVERVIEW.split_once("Start here").unwrap();
        let (groups, _) = groups.split_once("Example").unwrap();
        let (start, others) = groups.split_at(groups.find("Look inside").unwrap());
        let start = start
            .lines()
            .filter_map(|line| line.split_whitespace().next());
        let others = others
            .lines()
            .flat_map(|line| line.get(13..).unwrap_or(line).split(','));
        let mut named: Vec<&str> = start
            .chain(others.map(str::trim).filter(|name| !name.is_empty()))
            .chain(CONTRACT)
            .chain(["help"])
            .collect();
        named.sort_unstable();
        let root = Cli::<HandedOver>::command();
        let visible = root.get_subcommands().filter(|c| !c.is_hide_set());
        let mut commands: Vec<&str> = visible.map(clap::Command::get_name).collect();
        commands.sort_unstable();
        assert_eq!(named, commands);
    }
}
