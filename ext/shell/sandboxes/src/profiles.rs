//! Profiles, the descriptions from which sandboxes are created, in files and in the state directory.

use serde_json::json;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_recipe::{MAX_PROFILE_BYTES, Profile, parse_profile};

/// Name of the state directory's subdirectory that contains profiles.
const PROFILES: &str = "profiles";
/// Maximum number of profiles that are read from the state directory.
const MOST: usize = 500;

/// A parsed profile and the text that it was parsed from.
#[derive(Debug, Clone)]
pub struct LoadedProfile {
    /// The profile.
    pub profile: Profile,
    /// The text.
    pub text: String,
}

/// Loads a profile by the path of its file or by its id in the state directory.
pub fn load_profile(reference: &str, state: &Path) -> Result<LoadedProfile, ErrorBody> {
    let path = Path::new(reference);
    let named = reference.contains('/')
        || path
            .extension()
            .is_some_and(|e| ["yaml", "yml", "json"].iter().any(|known| e == *known));
    if named {
        return read_profile(path);
    }
    let (id, version) = match reference.split_once('@') {
        Some((id, version)) => (id, version),
        None => (reference, ""),
    };
    let mut found: Vec<LoadedProfile> = valid_profiles(state)
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
pub fn valid_profiles(state: &Path) -> Vec<LoadedProfile> {
    let files = profile_files(state);
    files
        .iter()
        .filter_map(|path| read_profile(path).ok())
        .collect()
}

/// Returns the files with profiles in the state directory, in the order of their names.
pub fn profile_files(state: &Path) -> Vec<PathBuf> {
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

/// Reads the profile in a file.
pub fn read_profile(path: &Path) -> Result<LoadedProfile, ErrorBody> {
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
    parsed_profile(&bytes, &path.display().to_string())
}

/// Parses a profile; `name` is its name in an error message.
pub fn parsed_profile(bytes: &[u8], name: &str) -> Result<LoadedProfile, ErrorBody> {
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
    Ok(LoadedProfile {
        profile,
        text: String::from_utf8_lossy(bytes).into_owned(),
    })
}
