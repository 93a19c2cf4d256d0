//! Arguments of tasks and groups of tasks. The doc comments are the help texts.

use crate::guest_args::StoreArgs;
use clap::Args;
use std::path::PathBuf;

/// What every one of these commands takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct TaskArgs {
    /// The input as JSON: a file, or - for standard input.
    #[arg(long, value_name = "FILE|-")]
    pub input_file: PathBuf,
    /// Also write the answer to this file: whole or not at all.
    #[arg(long, value_name = "FILE")]
    pub result_file: Option<PathBuf>,
    /// Also copy each bundle to DIR/<run id>.
    #[arg(long, value_name = "DIR")]
    pub artifacts: Option<PathBuf>,
    /// Environment variable of this command that holds the key of the tasks' model.
    #[arg(long, value_name = "VARIABLE")]
    pub model_key_env: Option<String>,
    /// How the tasks' model is spoken to.
    #[arg(long, value_name = "API", value_parser = ["openai-chat", "anthropic-messages"])]
    pub model_api: Option<String>,
    /// Runs of the partition that may be alive at once; what comes beyond them waits.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub max_runs: u32,
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Arguments of `agent-sandbox-run`.
#[derive(Debug, Args)]
#[command(after_help = "\
The input has the fields of the ability run-agent-task, but none that needs a WordPress site: \
plugin, theme, git, runtime_task, component_contracts, provider_plugin_paths, agent_bundles, \
tool_bridge, parent_tool_bridge, inherit, wait, budget.cost_usd. An item of secret_env is \
NAME=HOST[,HOST]. The answer is wp-codebox/agent-task-run/v1.

Examples:
  echo '{\"goal\": \"Mend it\", \"agent_command\": \"sh fix.sh\",
    \"mounts\": [{\"source\": \"/srv/x\", \"target\": \"/workspace/x\"}]}' |
    wp-codebox agent-sandbox-run --input-file - --wordpress /srv/site --json
  wp-codebox agent-sandbox-run --input-file task.json --result-file answer.json

Exit status: 0 succeeded or nothing to do, 1 failed, 3 partial or blocked, 124 timed out, 125 the \
sandbox could not start, 126 denied by policy, 130 cancelled.")]
pub(crate) struct SingleArgs {
    #[command(flatten)]
    pub task: TaskArgs,
}

/// Arguments of `agent-sandbox-batch`.
#[derive(Debug, Args)]
#[command(after_help = "\
The input has tasks, a list of goals or of objects with the fields of a task, and fields that all \
of them share; stop_on_failure starts no further task once one is not good. Each task has a \
sandbox of its own and a row in the answer, wp-codebox/agent-task-batch/v1; a task that is wrong \
is a failed row.

Ctrl-C cancels every run and saves what each of them did.

Examples:
  wp-codebox agent-sandbox-batch --input-file tasks.json --concurrency 8
  wp-codebox agent-sandbox-batch --input-file tasks.json --json |
    jq '.runs[] | select(.success | not)'

Exit status: 0 all good, 3 some of them, 1 none, 130 cancelled; 1 as well when the input is \
wrong.")]
pub(crate) struct BatchArgs {
    /// Tasks at once.
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
caller-review-required); and fields that all workers share. A plan that is wrong anywhere starts \
nothing. Two workers that changed one file of the host are a conflict; nothing is merged. The \
answer is wp-codebox/agent-fanout-result/v1.

Ctrl-C cancels every run and saves what each of them did.

Examples:
  wp-codebox agent-fanout --input-file plan.json --wordpress /srv/site --json
  wp-codebox agent-fanout --input-file plan.json --result-file answer.json

Exit status: 0 all good, 3 some of them, 1 none, 130 cancelled; 1 as well when the plan is wrong.")]
pub(crate) struct FanoutArgs {
    /// Workers at once, instead of the plan's concurrency.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub concurrency: Option<u16>,
    #[command(flatten)]
    pub task: TaskArgs,
}
