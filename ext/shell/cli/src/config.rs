//! `wp-codebox config`: shows every setting with its value and the origin of the value.

use super::columns::{Column, table, terminal};
use super::output::Output;
use clap::Args;
use serde_json::{Value, json};
use std::process::ExitCode;
use wp_codebox_contracts::schema_id;
use wp_codebox_settings::{PathArgs, Settings};

const COLUMNS: &[Column] = &[
    Column {
        heading: "SETTING",
        spare: false,
    },
    Column {
        heading: "FROM",
        spare: false,
    },
    Column {
        heading: "VALUE",
        spare: false,
    },
];

/// Arguments of `config`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each value comes from the first of: option, environment variable, configuration file, a place where \
it was found, default. The configuration file is the one in WP_CODEBOX_CONFIG, else \
~/.config/wp-codebox/config.json (not for root), else /etc/wp-codebox/config.json: a JSON object \
with the names of this table, such as {\"wordpress\": \"/srv/site\"}. In the file of /etc, \
\"max_runs\", \"user_max_runs\" and \"max_limits\" bound what other users may run through \
wp-codebox.socket; \"max_limits\" is an object such as {\"memory_bytes\": 1073741824}.

Examples:
  wp-codebox config
  wp-codebox config --json | jq -r '.settings[].value'

Exit status: 0, or 125 when the configuration file cannot be used.")]
pub(crate) struct ConfigArgs {
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Prints the settings.
pub(crate) fn main(output: &Output, args: &ConfigArgs) -> ExitCode {
    let settings = match Settings::resolve(&args.paths) {
        Ok(settings) => settings,
        Err(error) => return output.failure("config", &error),
    };
    let rows = settings.rows();
    if output.is_json() {
        output.document(&json!({
            "schema": schema_id::CONFIG,
            "file": settings.file().map(|file| file.to_string_lossy()),
            "settings": rows,
        }));
        return ExitCode::SUCCESS;
    }
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or("-").to_owned();
    let mut cells = Vec::new();
    for row in &rows {
        let from = match (row["origin"].as_str(), row["detail"].as_str()) {
            (Some(origin), Some("")) => origin.to_owned(),
            (origin, detail) => format!(
                "{} ({})",
                origin.unwrap_or_default(),
                detail.unwrap_or_default()
            ),
        };
        cells.push(vec![text(row, "name"), from, text(row, "value")]);
    }
    let lines = table(COLUMNS, &cells, terminal());
    lines.iter().for_each(|line| output.line(line));
    output.note(&settings.file_line());
    ExitCode::SUCCESS
}
