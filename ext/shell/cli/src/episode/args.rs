//! Arguments of `episode`. The doc comments are the help texts.

use crate::guest_args::StoreArgs;
use crate::runs::PlaceArgs;
use clap::{Args, Subcommand};

/// Subcommands of `episode`.
#[derive(Debug, Subcommand)]
pub(crate) enum EpisodeCommand {
    /// Start a sandbox that is kept running, and begin its trace.
    Start(Box<StartArgs>),
    /// Run a command as a step and make an observation afterwards.
    Step(StepArgs),
    /// Make an observation between the steps.
    Observe(ObserveArgs),
    /// Store a snapshot of the sandbox.
    Snapshot(SnapshotArgs),
    /// Replace the guest by a fresh one and start a new trace.
    Reset(OneArgs),
    /// Show the trace so far.
    Trace(OneArgs),
    /// End the sandbox, write its bundle including the trace, and print the bundle's path.
    Close(OneArgs),
}

/// Arguments of `episode start`.
#[derive(Debug, Args)]
#[command(after_help = "\
The output is wp-codebox/sandbox/v1; the other subcommands take its id.

Examples:
  wp-codebox episode start --mount ./my-plugin:/workspace/my-plugin \\
    --wordpress /srv/site --json
  wp-codebox episode start --ttl 10m --idle 2m --wordpress /srv/site

Exit status: 0; 1 for wrong input; 125 when the sandbox could not start.")]
pub(crate) struct StartArgs {
    /// Host directory and its path in the guest: HOST:GUEST[:readonly|readwrite]; may be repeated.
    #[arg(long = "mount", value_name = "HOST:GUEST[:MODE]")]
    pub mounts: Vec<String>,
    /// Runtime policy: a JSON file or JSON text. [default: the commands that an episode needs]
    #[arg(long, value_name = "FILE|JSON")]
    pub policy: Option<String>,
    /// Time to live, such as 90s, 15m or 4h.
    #[arg(long, value_name = "DURATION", default_value = "15m")]
    pub ttl: String,
    /// End the sandbox after this time without use, such as 5m. [default: no idle limit]
    #[arg(long, value_name = "DURATION")]
    pub idle: Option<String>,
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Sandbox and actor of the request.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Id of the sandbox or a unique prefix of the id.
    #[arg(value_name = "SANDBOX")]
    pub sandbox: String,
    /// Name of the user or program that makes the request; for the record only.
    #[arg(long, value_name = "NAME", default_value = "cli")]
    pub actor: String,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Arguments of `episode step`.
#[derive(Debug, Args)]
#[command(after_help = "\
The output is the step as it is in the trace.

Examples:
  wp-codebox episode step run_1f --command wordpress.wp-cli \\
    --arg command='option get home'
  wp-codebox episode step run_1f --command wordpress.run-php \\
    --arg code='update_option(\"a\", 1);' --json \\
    --observe '{\"type\": \"wordpress-state\", \"optionNames\": [\"a\"]}'
  wp-codebox episode step run_1f --action '{\"kind\": \"http\",
    \"command\": \"wordpress.http-request\", \"args\": [\"url=/\"], \"url\": \"/\"}'

Exit status: 0 when the command ran, with any result; 1 when it was refused or no sandbox \
matches; 125 when the sandbox cannot be reached.")]
pub(crate) struct StepArgs {
    /// Command id to run, see `wp-codebox commands`.
    #[arg(long, required_unless_present = "action")]
    pub command: Option<String>,
    /// Argument of the command, name=value; may be repeated.
    #[arg(long = "arg", value_name = "NAME=VALUE", requires = "command")]
    pub args: Vec<String>,
    /// Whole action as JSON instead: kind, command, args, timeoutMs, url, path, metadata and more
    #[arg(long, value_name = "JSON", conflicts_with = "command")]
    pub action: Option<String>,
    /// Observation after the command: a type, or a JSON object with type and its fields.
    #[arg(long, value_name = "TYPE|JSON")]
    pub observe: Option<String>,
    #[command(flatten)]
    pub which: Which,
}

/// Arguments of `episode observe`.
#[derive(Debug, Args)]
#[command(after_help = "\
Types: runtime-info, mounts, files (path, includeContent), command-result (commandId), \
wordpress-state (sections: summary, plugins, themes, options, users, posts, tables; optionNames, \
userFields), http-response (url, method, headers, body, includeBody), browser-result (url), \
runtime-events, runtime-logs. Names of people are redacted unless redaction is none; secrets always.

Examples:
  wp-codebox episode observe run_1f mounts
  wp-codebox episode observe run_1f \\
    '{\"type\": \"files\", \"path\": \"/workspace/x\", \"includeContent\": true}'

Exit status: 0; 1 when it was refused, or no sandbox matches; 125 when the sandbox cannot be \
reached.")]
pub(crate) struct ObserveArgs {
    #[command(flatten)]
    pub which: Which,
    /// Observation: a type, or a JSON object with type and its fields.
    #[arg(value_name = "TYPE|JSON")]
    pub spec: String,
}

/// Arguments of `episode snapshot`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox episode snapshot run_1f before-migration

Exit status: 0; 1 when it was refused, or no sandbox matches; 125 when the sandbox cannot be \
reached.")]
pub(crate) struct SnapshotArgs {
    #[command(flatten)]
    pub which: Which,
    /// Name, unique in the sandbox.
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// Arguments of `episode reset`, `trace` and `close`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox episode trace run_1f --json > trace.json
  wp-codebox episode reset run_1f
  wp-codebox episode close run_1f --json

Exit status: 0; 1 when it was refused, or no sandbox matches; 125 when the sandbox cannot be \
reached.")]
pub(crate) struct OneArgs {
    #[command(flatten)]
    pub which: Which,
}
