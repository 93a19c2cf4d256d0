//! Arguments of `recipe`, `recipe-run`, `validate-blueprint` and `workspace-policy`.

use crate::guest_args::StoreArgs;
use crate::model::{HEADING, ModelArgs};
use crate::placement::PlacementArgs;
use crate::preview::PreviewArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use wp_codebox_recipe::{BuildKind, WpFallback};
use wp_codebox_runs::AgentOptions;
use wp_codebox_settings::PathArgs;

/// What happens if no WordPress of this host has the version that a recipe asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fallback {
    /// Run with the nearest version; the result and the bundle say so.
    Nearest,
}

/// Option of all commands that run or check recipes.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FallbackArgs {
    /// Run with the nearest installed WordPress if none has the version that the recipe asks for;
    /// the result and the bundle say so. [default: refuse the recipe]
    #[arg(long, value_name = "HOW", value_enum)]
    pub wp_fallback: Option<Fallback>,
}

impl FallbackArgs {
    pub(crate) const fn choice(&self) -> WpFallback {
        match self.wp_fallback {
            None => WpFallback::Refuse,
            Some(Fallback::Nearest) => WpFallback::Nearest,
        }
    }
}

/// Subcommands of `recipe`.
#[derive(Debug, Subcommand)]
pub(crate) enum RecipeCommand {
    /// Validate a recipe: structure, paths, steps and policy, without running it.
    Validate(RecipeArgs),
    /// Show everything that a recipe would do, without running it.
    DryRun(RecipeArgs),
    /// Write a recipe from a list of options.
    Build(RecipeBuildArgs),
}

/// Arguments of `recipe build`.
#[derive(Debug, Args)]
#[command(after_help = "\
Every kind has the options of a recipe: name, wp, phpVersion, blueprint, mounts, workspaces, \
extraPlugins, runtimeEnv, secretEnv, services, before, after, artifacts and metadata, and \
timeoutMs, allowFailure and advisory for its step. phpunit, bench and generic-ability-runtime-run \
also have the arguments of their command (`wp-codebox commands`), so plugin-slug is pluginSlug.

  phpunit, bench: source, the directory of the plugin
  template: steps; without them, one that lists the plugins
  generic-ability-runtime-run: ability, its name or {name, input}
  runtime-package-run: package {slug, source}, workflow {id, spec}, input

Examples:
  wp-codebox recipe build phpunit --output recipe.json \\
    --options '{\"source\": \".\", \"pluginSlug\": \"my-plugin\"}'
  wp-codebox recipe build template > recipe.json

Exit status: 0 the recipe was built, 1 an option is not valid.")]
pub(crate) struct RecipeBuildArgs {
    /// What the recipe does.
    #[arg(value_name = "KIND", value_parser = build_kind())]
    pub kind: BuildKind,
    /// Options: a JSON file or JSON text. [default: none]
    #[arg(long, value_name = "FILE|JSON")]
    pub options: Option<String>,
    /// File to write; an existing one is replaced. [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print errors as JSON; the recipe always is.
    #[arg(long)]
    pub json: bool,
}

fn build_kind() -> impl TypedValueParser<Value = BuildKind> {
    PossibleValuesParser::new(BuildKind::ALL.map(BuildKind::name)).try_map(|name| {
        let found = BuildKind::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or("no such kind")
    })
}

/// Arguments of `recipe validate` and `recipe dry-run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox recipe validate --recipe recipe.json --wordpress /srv/site
  wp-codebox recipe dry-run --recipe recipe.json --policy policy.json --json

Exit status: 0 the recipe is valid, 1 it is not; every issue names its field.")]
pub(crate) struct RecipeArgs {
    /// Recipe file in JSON. Its relative paths are resolved against its own directory.
    #[arg(long, value_name = "FILE")]
    pub recipe: PathBuf,
    /// Runtime policy: a JSON file or JSON text. [default: derived from the recipe]
    #[arg(long, value_name = "FILE|JSON")]
    pub policy: Option<String>,
    #[command(flatten)]
    pub fallback: FallbackArgs,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Options about the agent of a recipe.
#[derive(Debug, Default, Args)]
pub(crate) struct AgentArgs {
    /// Agent program with arguments for the recipe's agent step, in place of the agent and the model
    /// that the step names; split like a shell does but run without a shell.
    #[arg(long, value_name = "COMMAND LINE", help_heading = HEADING)]
    pub agent_command: Option<String>,
    #[command(flatten)]
    pub model: ModelArgs,
}

impl AgentArgs {
    /// Returns the options that the arguments give.
    pub(crate) fn options(&self) -> AgentOptions {
        AgentOptions {
            agent_command: self.agent_command.clone(),
            model: self.model.options(),
        }
    }
}

/// Options of every command that runs a recipe or what becomes one.
#[derive(Debug, Args)]
pub(crate) struct StepsArgs {
    /// Runtime policy: a JSON file or JSON text. [default: derived from the steps]
    #[arg(long, value_name = "FILE|JSON")]
    pub policy: Option<String>,
    /// Also copy the bundle of each run to DIR/<run id>. [default: artifacts.directory of the input]
    #[arg(long, value_name = "DIR")]
    pub artifacts: Option<PathBuf>,
    /// Wall clock limit of each run, such as 90s, 15m or 4h; a number without a unit is
    /// milliseconds.
    #[arg(long, value_name = "DURATION", default_value = "25m")]
    pub timeout: String,
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// Arguments of `recipe-run`.
#[derive(Debug, Args)]
#[command(after_help = "\
A step that fails stops the run, unless it has allowFailure or advisory; steps of workflow.after \
run even after a failure. The step wp-codebox.agent-sandbox-run runs an agent in the same sandbox; the \
address and the key of its model come from this command.

Examples:
  wp-codebox recipe-run --recipe recipe.json --wordpress /srv/site
  wp-codebox recipe-run --recipe agent.json --model gpt-5 \\
    --model-url https://api.openai.com/v1 --model-key-env OPENAI_API_KEY
  wp-codebox recipe-run --recipe recipe.json --artifacts ./out --timeout 5m
  wp-codebox recipe-run --recipe recipe.json --placement cluster
  wp-codebox recipe-run --recipe recipe.json --dry-run --json

Exit status: 0 succeeded, 1 failed or the recipe is not valid, 124 timed out, 125 the sandbox \
could not start, 126 denied by policy, 130 cancelled.")]
pub(crate) struct RecipeRunArgs {
    /// Recipe file in JSON. Its relative paths are resolved against its own directory.
    #[arg(long, value_name = "FILE")]
    pub recipe: PathBuf,
    #[command(flatten)]
    pub steps: StepsArgs,
    /// Show everything that the recipe would do, without running it.
    #[arg(long)]
    pub dry_run: bool,
    /// Print only the summary.
    #[arg(long, visible_alias = "summary-only", conflicts_with = "dry_run")]
    pub summary: bool,
    /// Not supported: replays a case of an adversarial campaign.
    #[arg(long, value_name = "VALUE", hide = true)]
    pub adversarial_replay: Option<String>,
    /// Not supported: the heap size of Node.
    #[arg(long, value_name = "MB", hide = true)]
    pub host_node_heap_mb: Option<String>,
    /// Not supported: approval of writes to external services.
    #[arg(long, hide = true)]
    pub approve_external_service_writes: bool,
    #[command(flatten)]
    pub fallback: FallbackArgs,
    #[command(flatten)]
    pub preview: PreviewArgs,
    #[command(flatten)]
    pub placement: PlacementArgs,
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Arguments of `validate-blueprint`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox validate-blueprint blueprint.json
  wp-codebox validate-blueprint blueprint.json --json
  wp-codebox validate-blueprint --blueprint '{\"login\": true}'

Exit status: 0 every part is supported, 1 a part is not; each is listed with its reason.")]
pub(crate) struct BlueprintArgs {
    /// Blueprint: a JSON file or JSON text.
    #[arg(value_name = "FILE|JSON", required_unless_present = "blueprint")]
    pub file: Option<String>,
    /// Blueprint, as an option.
    #[arg(long, value_name = "FILE|JSON", conflicts_with = "file")]
    pub blueprint: Option<String>,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Subcommands of `workspace-policy`.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkspacePolicyCommand {
    /// Check the files of a workspace against the policy.
    Check(WorkspacePolicyArgs),
}

/// Arguments of `workspace-policy check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox workspace-policy check --workspace-root . \\
    --writable-root src --writable-root docs/
  wp-codebox workspace-policy check --workspace-root . --writable-root . \\
    --hidden-path secrets --git --json

Exit status: 0 no violations, 1 violations.")]
pub(crate) struct WorkspacePolicyArgs {
    /// Directory of the workspace.
    #[arg(long, value_name = "DIR")]
    pub workspace_root: PathBuf,
    /// Path below the workspace that may be changed, including everything below it; may be
    /// repeated.
    #[arg(long = "writable-root", value_name = "PATH", required = true)]
    pub writable_roots: Vec<String>,
    /// Path below the workspace that must neither exist nor change; may be repeated.
    #[arg(long = "hidden-path", value_name = "PATH")]
    pub hidden_paths: Vec<String>,
    /// Also check with git: ignored paths, unmerged paths, submodules.
    #[arg(long)]
    pub git: bool,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}
