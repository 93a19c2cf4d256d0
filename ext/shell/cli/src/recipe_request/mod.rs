//! Recipes on this host: loads the file, validates it against the host, builds the run request and
//! reports the result.
//!
//! The crate `recipe` interprets recipes; this module adds files, paths, the caller's secrets and
//! facts about the host.

mod agent;
mod facts;
mod host;
mod parent;
mod report;
mod request;

pub(crate) use agent::AgentArgs;
pub(crate) use facts::wordpress_version;
pub(crate) use host::Host;
pub(crate) use parent::seeds;
pub(crate) use report::{RunReport, recipe_run, refused, summary};
pub(crate) use request::{Asked, build};

use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{ErrorBody, ErrorCode, hex};
use wp_codebox_recipe::{Issue, MAX_RECIPE_BYTES, Recipe, parse};

/// A recipe file as loaded.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// Path of the recipe file as the caller gave it.
    pub shown: String,
    /// Directory of the recipe file, against which its relative paths are resolved.
    pub directory: PathBuf,
    /// SHA-256 of the recipe file.
    pub sha256: String,
    /// The parsed recipe, or all its violations of the recipe format.
    pub recipe: Result<Recipe, Vec<Issue>>,
}

/// Reads a regular file up to a size limit.
pub(crate) fn read_file(path: &Path, most: usize, what: &str) -> Result<Vec<u8>, ErrorBody> {
    let fail = |why: String| {
        let message = format!("the {what} {} {why}", path.display());
        ErrorBody::new(ErrorCode::InputInvalid, message)
    };
    let file = std::fs::File::open(path).map_err(|e| fail(format!("cannot be read: {e}")))?;
    let about = file
        .metadata()
        .map_err(|e| fail(format!("cannot be read: {e}")))?;
    if !about.is_file() {
        return Err(fail("is not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(most as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| fail(format!("cannot be read: {e}")))?;
    if bytes.len() > most {
        return Err(fail(format!("is larger than {most} bytes")));
    }
    Ok(bytes)
}

/// Loads a recipe. An unreadable file is an error; an invalid recipe has issues.
pub(crate) fn load(path: &Path) -> Result<Loaded, ErrorBody> {
    let bytes = read_file(path, MAX_RECIPE_BYTES, "recipe")?;
    Ok(Loaded {
        shown: path.display().to_string(),
        directory: directory_of(path, "recipe")?,
        sha256: hex(&Sha256::digest(&bytes)),
        recipe: parse(&bytes),
    })
}

/// Returns the real path of the directory that contains a file.
pub(crate) fn directory_of(path: &Path, what: &str) -> Result<PathBuf, ErrorBody> {
    let absolute = path.canonicalize().map_err(|e| {
        let message = format!(
            "the path of the {what} {} cannot be resolved: {e}",
            path.display()
        );
        ErrorBody::new(ErrorCode::InputInvalid, message)
    })?;
    Ok(absolute.parent().unwrap_or(Path::new("/")).to_owned())
}
