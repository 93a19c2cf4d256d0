//! `agents`: the presets of this installation.

use super::Settings;
use super::args::AgentsArgs;
use super::output::Output;
use crate::run::preset;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use wp_codebox_contracts::schema_id;

/// Lists presets; a broken one is a row with its error.
pub(crate) fn main(output: &Output, args: &AgentsArgs) -> ExitCode {
    let settings = Settings::resolve(&args.paths);
    let rows: Vec<Value> = preset::names(&settings.share_dir)
        .iter()
        .map(|name| row(&settings.share_dir, settings.agents_dir.as_deref(), name))
        .collect();
    if output.is_json() {
        output.document(&json!({"schema": schema_id::AGENT_PRESET_LIST, "agents": rows}));
        return ExitCode::SUCCESS;
    }
    for row in &rows {
        let text = |name: &str| row[name].as_str().unwrap_or_default();
        let state = match (row["error"].as_str(), row["installed"].as_bool()) {
            (Some(error), _) => format!("broken: {error}"),
            (None, Some(true)) => "installed".to_owned(),
            (None, _) => format!("not installed: {}", text("install")),
        };
        output.line(&format!("{}\t{}\t{state}", text("name"), text("title")));
    }
    ExitCode::SUCCESS
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
