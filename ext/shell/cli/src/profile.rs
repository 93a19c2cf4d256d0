//! `wp-codebox profile`: validates, lists and shows profiles, the descriptions from which sandboxes
//! are created.

use super::Settings;
use super::output::{Output, name};
use super::settings::PathArgs;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_recipe::{MAX_PROFILE_BYTES, Profile, parse_profile};

/// Name of the state directory's subdirectory that contains profiles.
const PROFILES: &str = "profiles";
/// Maximum number of profiles that are read from the state directory.
const MOST: usize = 500;

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

/// A parsed profile and the text that it was parsed from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The profile.
    pub profile: Profile,
    /// The text.
    pub text: String,
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
    let loaded = load(&args.profile, &Settings::resolve(&args.paths)?.state_dir)?;
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
    let loaded = load(&args.profile, &Settings::resolve(&args.paths)?.state_dir)?;
    output.document(&json!(loaded.profile));
    Ok(())
}

fn list(output: &Output, state: &Path) {
    let rows: Vec<Value> = files(state)
        .iter()
        .map(|path| {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            match read(path) {
                Ok(Loaded { profile, .. }) => json!({
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

/// Loads a profile by the path of its file or by its id in the state directory.
pub(crate) fn load(reference: &str, state: &Path) -> Result<Loaded, ErrorBody> {
    let path = Path::new(reference);
    let named = reference.contains('/')
        || path
            .extension()
            .is_some_and(|e| ["yaml", "yml", "json"].iter().any(|known| e == *known));
    if named {
        return read(path);
    }
    let (id, version) = match reference.split_once('@') {
        Some((id, version)) => (id, version),
        None => (reference, ""),
    };
    let mut found: Vec<Loaded> = all(state)
        .into_iter()
        .filter(|loaded| loaded.profile.id == id)
        .filter(|loaded| version.is_empty() || loaded.profile.version == version)
        .collect();
    match (found.pop(), found.len()) {
        (Some(one), 0) => Ok(one),
        (None, _) => Err(ErrorBody::new(
            ErrorCode::ProfileNotFound,
            format!(
                "there is no profile {reference:?} in the state directory; `wp-codebox profile list` shows all; give the path of a file to use a file"
            ),
        )),
        (Some(one), _) => {
            let others = found.iter().chain([&one]);
            let versions: Vec<&str> = others.map(|l| l.profile.version.as_str()).collect();
            let message = format!(
                "there are several versions of profile {id}: use {id}@VERSION with one of {}",
                versions.join(", ")
            );
            Err(ErrorBody::new(ErrorCode::ProfileNotFound, message))
        }
    }
}

/// Returns the valid profiles of the state directory, in the order of their file names.
pub fn all(state: &Path) -> Vec<Loaded> {
    let files = files(state);
    files.iter().filter_map(|path| read(path).ok()).collect()
}

fn files(state: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(state.join(PROFILES)) else {
        return Vec::new();
    };
    let known = |path: &PathBuf| {
        path.extension()
            .is_some_and(|e| ["yaml", "yml", "json"].iter().any(|known| e == *known))
    };
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(known)
        .take(MOST)
        .collect();
    files.sort();
    files
}

fn read(path: &Path) -> Result<Loaded, ErrorBody> {
    let unreadable = |e: std::io::Error| {
        let message = format!("the profile {} cannot be read: {e}", path.display());
        ErrorBody::new(ErrorCode::ProfileNotFound, message)
    };
    let regular = fs::metadata(path).map_err(unreadable)?.is_file();
    if !regular {
        return Err(unreadable(std::io::Error::other(
            "it is not a regular file",
        )));
    }
    let most = u64::try_from(MAX_PROFILE_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(most + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    parsed(&bytes, &path.display().to_string())
}

/// Parses a profile; `name` is its name in an error message.
pub fn parsed(bytes: &[u8], name: &str) -> Result<Loaded, ErrorBody> {
    let profile = parse_profile(bytes).map_err(|issues| {
        let first = issues.first();
        let first = first.map_or(String::new(), |i| format!("{}: {}", i.path, i.message));
        let more = match issues.len() {
            0 | 1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        ErrorBody::new(
            ErrorCode::ProfileInvalid,
            format!("the profile {name} is not valid; correct these fields: {first}{more}"),
        )
        .with("issues", json!(issues))
    })?;
    Ok(Loaded {
        profile,
        text: String::from_utf8_lossy(bytes).into_owned(),
    })
}
