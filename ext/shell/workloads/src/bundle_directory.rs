//! Opens the directory of a bundle that the caller names.

use std::path::Path;
use wp_codebox_artifacts::Dir;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Opens a bundle directory and returns its real path. Follows a symbolic link in the caller's path, but none inside the
/// bundle.
pub fn open_bundle(bundle: &Path) -> Result<(Dir, String), ErrorBody> {
    let fail = |why: String| {
        ErrorBody::new(
            ErrorCode::ArtifactNotFound,
            format!("the bundle {} cannot be opened: {why}", bundle.display()),
        )
        .hint("name the directory of a bundle: `wp-codebox runs artifacts RUN` shows where the bundle of a run is")
    };
    let path = bundle.canonicalize().map_err(|e| fail(e.to_string()))?;
    let dir = Dir::open(&path).map_err(|e| fail(e.to_string()))?;
    Ok((dir, path.to_string_lossy().into_owned()))
}
