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
mod verify;

pub use agent::AgentOptions;
pub use host::Host;
pub(crate) use parent::seeds;
pub use report::{RunReport, recipe_run, refused, summary};
pub use request::{Asked, build};
pub use verify::{Verified, verify};

use crate::input_file::{directory_of, read_file};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{ErrorBody, hex};
use wp_codebox_recipe::{Issue, MAX_RECIPE_BYTES, Recipe, parse};

/// A recipe file as loaded.
#[derive(Debug)]
pub struct Loaded {
    /// Path of the recipe file as the caller gave it.
    pub shown: String,
    /// Directory of the recipe file, against which its relative paths are resolved.
    pub directory: PathBuf,
    /// SHA-256 of the recipe file.
    pub sha256: String,
    /// The parsed recipe, or all its violations of the recipe format.
    pub recipe: Result<Recipe, Vec<Issue>>,
}

/// Loads a recipe. An unreadable file is an error; an invalid recipe has issues.
pub fn load(path: &Path) -> Result<Loaded, ErrorBody> {
    let bytes = read_file(path, MAX_RECIPE_BYTES, "recipe")?;
    Ok(Loaded {
        shown: path.display().to_string(),
        directory: directory_of(path, "recipe")?,
        sha256: hex(&Sha256::digest(&bytes)),
        recipe: parse(&bytes),
    })
}
