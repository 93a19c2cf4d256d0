//! `agents`: lists the agent presets of this installation.

use super::columns::{self, Column};
use super::output::Output;
use clap::Args;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use wp_codebox_contracts::{ErrorBody, ErrorCode, schema_id};
use wp_codebox_settings::{PathArgs, Settings};
use wp_codebox_supervisor::preset;

/// Arguments of `agents`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox agents
  wp-codebox agents codex
  wp-codebox agents --agents-dir /opt/wp-codebox/agents --json

Exit status: 0 listed, 1 wrong usage or no such agent.")]
pub(crate) struct AgentsArgs {
    /// Show only this preset and how to install its agent.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Lists all presets, or shows one with its installation steps; an invalid preset is a row with its
/// error.
pub(crate) fn main(output: &Output, args: &AgentsArgs) -> ExitCode {
    let settings = match Settings::resolve(&args.paths) {
        Ok(settings) => settings,
        Err(error) => return output.failure("agents", &error),
    };
    let names = match &args.name {
        None => preset::names(&settings.share_dir),
        Some(name) => match preset::load(&settings.share_dir, name) {
            Err(error) => return output.failure("agents", &error),
            Ok(_) => vec![name.clone()],
        },
    };
    let rows: Vec<Value> = names
        .iter()
        .map(|name| row(&settings.share_dir, settings.agents_dir.as_deref(), name))
        .collect();
    if output.is_json() {
        output.document(&json!({"schema": schema_id::AGENT_PRESET_LIST, "agents": rows}));
        return ExitCode::SUCCESS;
    }
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let state = |row: &Value| match (row["error"].as_str(), row["installed"].as_bool()) {
        (Some(error), _) => format!("broken: {error}"),
        (None, Some(true)) => "installed".to_owned(),
        (None, _) => "not installed".to_owned(),
    };
    if args.name.is_some() {
        for row in &rows {
            output.line(&format!("{}: {}", text(row, "name"), text(row, "title")));
            for name in ["about", "license", "homepage"] {
                output.line(&format!("  {name:<9} {}", text(row, name)));
            }
            output.line(&format!("  state     {}", state(row)));
            output.line(&format!("  install   {}", text(row, "install")));
        }
        return ExitCode::SUCCESS;
    }
    let column = |heading| Column {
        heading,
        spare: false,
    };
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| vec![text(row, "name"), state(row), text(row, "title")])
        .collect();
    let columns = [column("AGENT"), column("STATE"), column("TITLE")];
    for line in columns::table(&columns, &cells, columns::terminal()) {
        output.line(&line);
    }
    if rows.iter().any(|row| row["installed"] == false) {
        output.note("wp-codebox agents NAME prints how to install one");
    }
    ExitCode::SUCCESS
}

/// Returns the error for a goal without an agent: the ways to choose one, with the agents that are
/// installed and the variables with API keys that are set.
pub(crate) fn missing(settings: &Settings) -> ErrorBody {
    let installed = preset::names(&settings.share_dir)
        .into_iter()
        .filter(|name| {
            let row = row(&settings.share_dir, settings.agents_dir.as_deref(), name);
            row["installed"] == true
        });
    let installed = listed(installed, "none is installed; `wp-codebox agents` says how");
    let keys = std::env::vars_os().filter(|(_, value)| !value.is_empty());
    let keys = keys.filter_map(|(name, _)| name.into_string().ok());
    let keys = keys.filter(|name| name.ends_with("_API_KEY"));
    let keys = listed(keys, "no variable …_API_KEY is set here");
    ErrorBody::new(
        ErrorCode::AgentMissing,
        "no agent was chosen to work on the goal; add one of these:",
    )
    .hint("--agent-command 'php agent.php'   a program")
    .hint(format!("--agent NAME   an installed agent ({installed})"))
    .hint(
        "--model NAME --model-url URL --model-key-env VARIABLE   the built-in agent with a model,",
    )
    .hint(format!(
        "  also needed by --agent; VARIABLE has the key ({keys})"
    ))
}

fn listed(names: impl Iterator<Item = String>, none: &str) -> String {
    let mut names: Vec<String> = names.collect();
    names.sort();
    match names.is_empty() {
        true => none.to_owned(),
        false => names.join(", "),
    }
}

fn row(share: &Path, agents_dir: Option<&Path>, name: &str) -> Value {
    match preset::load(share, name) {
        Err(error) => json!({"name": name, "error": error.message}),
        Ok(found) => {
            let directory = agents_dir.map(|directory| directory.join(name));
            let installed = directory
                .as_ref()
                .is_some_and(|directory| directory.join(&found.program).is_file());
            let shown = directory.map_or_else(String::new, |d| d.display().to_string());
            json!({
                "name": found.name,
                "title": found.title,
                "about": found.about,
                "apis": found.apis,
                "license": found.license,
                "homepage": found.homepage,
                "install": found.install.replace("{directory}", &shown),
                "installed": installed,
            })
        }
    }
}
