//! Arguments of task commands. The doc comments are the help texts.

use crate::guest_args::StoreArgs;
use crate::placement::PlacementArgs;
use crate::preview::PreviewArgs;
use clap::Args;
use std::path::PathBuf;

/// Arguments that all task commands share.
#[derive(Debug, Clone, Args)]
pub struct TaskArgs {
    /// Input as JSON: a file, or - for standard input.
    #[arg(long, value_name = "FILE|-")]
    pub input_file: PathBuf,
    /// Also write the output to this file, atomically.
    #[arg(long, value_name = "FILE")]
    pub result_file: Option<PathBuf>,
    /// Also copy each bundle to DIR/<run id>.
    #[arg(long, value_name = "DIR")]
    pub artifacts: Option<PathBuf>,
    /// Environment variable of this command with the API key of the model that the tasks use.
    #[arg(long, value_name = "VARIABLE")]
    pub model_key_env: Option<String>,
    /// Protocol of the tasks' model.
    #[arg(long, value_name = "API", value_parser = ["openai-chat", "anthropic-messages"])]
    pub model_api: Option<String>,
    /// Limit of running sandboxes with the same --site; further tasks wait.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub max_runs: u32,
    /// Where the runs run.
    #[command(flatten)]
    pub placement: PlacementArgs,
    /// Site and paths of this host.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Arguments of `agent-sandbox-run`.
#[derive(Debug, Args)]
#[command(after_help = "\
The input has the fields of the ability run-agent-task, except those that need a WordPress site: \
plugin, theme, git, runtime_task, component_contracts, provider_plugin_paths, agent_bundles, \
tool_bridge, parent_tool_bridge, inherit, wait, budget.cost_usd. An item of secret_env is \
NAME=HOST[,HOST]. preview_hold_seconds, preview_port, preview_bind and preview_public_url are the options of the same names. The output is wp-codebox/agent-task-run/v1; with a preview the command prints its link at once and waits for its end.

Examples:
  echo '{\"goal\": \"Fix it\", \"agent_command\": \"sh fix.sh\",
    \"mounts\": [{\"source\": \"/srv/x\", \"target\": \"/workspace/x\"}]}' |
    wp-codebox agent-sandbox-run --input-file - --wordpress /srv/site --json
  wp-codebox agent-sandbox-run --input-file task.json --result-file answer.json

Exit status: 0 succeeded or nothing to do, 1 failed, 3 partial or blocked, 124 timed out, 125 the \
sandbox could not start, 126 denied by policy, 130 cancelled.")]
pub(crate) struct SingleArgs {
    #[command(flatten)]
    pub preview: PreviewArgs,
    #[command(flatten)]
    pub task: TaskArgs,
}

/// Arguments of `agent-sandbox-batch`.
#[derive(Debug, Args)]
#[command(after_help = "\
The input has tasks, a list of goals or of objects with the fields of a task, and fields that all \
of them share; with stop_on_failure no further task starts after a failure. Each task has its own \
sandbox and an entry in the output, wp-codebox/agent-task-batch/v1; an invalid task counts as failed.

Ctrl-C cancels every run and saves the changes made so far.

Examples:
  wp-codebox agent-sandbox-batch --input-file tasks.json --concurrency 8
  wp-codebox agent-sandbox-batch --input-file tasks.json --json |
    jq '.runs[] | select(.success | not)'

Exit status: 0 all succeeded, 3 some succeeded, 1 none succeeded or the input is not valid, 130 \
cancelled.")]
pub(crate) struct BatchArgs {
    /// Number of concurrent tasks.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub concurrency: u16,
    #[command(flatten)]
    pub task: TaskArgs,
}

/// Arguments of `agent-fanout`.
#[derive(Debug, Args)]
#[command(after_help = "\
The input has workers, a list of objects with id, goal, dependsOn, required, timeout_seconds and \
the fields of a task; concurrency; aggregator.policy (fail, partial, repair, \
caller-review-required); and fields that all workers share. If any part of the plan is invalid, no \
worker starts. Two workers that changed the same host file are a conflict; nothing is merged. The \
output is wp-codebox/agent-fanout-result/v1. With --artifacts, plan, events, results and bundles \
are also files below DIR/fanout, the aggregated result is DIR/aggregate/final/result.json, and \
bundles are below DIR/fanout/workers/ID/artifacts.

Ctrl-C cancels every run and saves the changes made so far.

Examples:
  wp-codebox agent-fanout --input-file plan.json --wordpress /srv/site --json
  wp-codebox agent-fanout --input-file plan.json --result-file answer.json

Exit status: 0 all succeeded, 3 some succeeded, 1 none succeeded or the plan is not valid, 130 \
cancelled.")]
pub(crate) struct FanoutArgs {
    /// Number of concurrent workers; overrides the plan's concurrency.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub concurrency: Option<u16>,
    #[command(flatten)]
    pub task: TaskArgs,
}
