//! `wp-codebox profile`: validates, lists and shows profiles, the descriptions from which sandboxes
//! are created.

use super::output::{Output, name};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use wp_codebox_contracts::ErrorBody;
use wp_codebox_recipe::Profile;
use wp_codebox_sandboxes::{LoadedProfile, load_profile, profile_files, read_profile};
use wp_codebox_settings::PathArgs;
use wp_codebox_settings::Settings;

/// Subcommands of `profile`.
#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// Validate a profile; every problem is listed with its path.
    Validate(NamedArgs),
    /// List the profiles of the state directory.
    List(ListArgs),
    /// Show a profile with all default values filled in.
    Show(NamedArgs),
}

/// Arguments of `profile validate` and `profile show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox profile validate ./shop.yaml
  wp-codebox profile show profile.shop@1.2.0 --json

Exit status: 0; 1 when the profile does not exist or is not valid.")]
pub(crate) struct NamedArgs {
    /// File in YAML or JSON, or the id of a profile in <state>/profiles, with @VERSION if there are
    /// several.
    #[arg(value_name = "FILE|ID")]
    pub profile: String,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `profile list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox profile list
  wp-codebox profile list --state /var/lib/wp-codebox/www-data --json

Exit status: 0, also when there are no profiles or one is not readable: the list shows which.")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn main(output: &Output, command: &ProfileCommand) -> ExitCode {
    let (name, done) = match command {
        ProfileCommand::Validate(args) => ("profile validate", validate(output, args)),
        ProfileCommand::Show(args) => ("profile show", show(output, args)),
        ProfileCommand::List(args) => {
            let settings = Settings::resolve(&args.paths);
            let listed = settings.map(|settings| list(output, &settings.state_dir));
            ("profile list", listed)
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output.failure(name, &error),
    }
}

fn validate(output: &Output, args: &NamedArgs) -> Result<(), ErrorBody> {
    let loaded = load_profile(&args.profile, &Settings::resolve(&args.paths)?.state_dir)?;
    let Profile {
        id,
        version,
        sha256,
        ..
    } = &loaded.profile;
    let document = json!({
        "success": true, "valid": true, "issues": [],
        "id": id, "version": version, "sha256": sha256,
    });
    output.answer(&document, &[format!("{id} {version} is valid")]);
    Ok(())
}

fn show(output: &Output, args: &NamedArgs) -> Result<(), ErrorBody> {
    let loaded = load_profile(&args.profile, &Settings::resolve(&args.paths)?.state_dir)?;
    output.document(&json!(loaded.profile));
    Ok(())
}

fn list(output: &Output, state: &Path) {
    let rows: Vec<Value> = profile_files(state)
        .iter()
        .map(|path| {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            match read_profile(path) {
                Ok(LoadedProfile { profile, .. }) => json!({
                    "file": file, "id": profile.id, "version": profile.version,
                    "description": profile.description, "sha256": profile.sha256, "valid": true,
                }),
                Err(error) => json!({"file": file, "valid": false, "error": error}),
            }
        })
        .collect();
    if output.is_json() {
        output.document(&json!({"success": true, "total": rows.len(), "profiles": rows}));
        return;
    }
    for row in &rows {
        let text = |name: &str| row[name].as_str().unwrap_or("-").to_owned();
        let (id, version, file) = (text("id"), text("version"), name(&text("file")));
        output.line(&format!("{id:<32} {version:<12} {file}"));
        if let Some(why) = row["error"]["message"].as_str() {
            output.note(&format!("  {file}: {why}"));
        }
    }
    output.note(&format!("{} profiles", rows.len()));
}
