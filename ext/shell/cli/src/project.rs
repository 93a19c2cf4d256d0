//! Asks the crate `project` with the directories of the user who called this program.

use std::path::Path;
use wp_codebox_contracts::ErrorBody;
use wp_codebox_project::ProjectError;
use wp_codebox_settings::user_directories;

pub(crate) use wp_codebox_project::{NO_CHECKS, Project, proposed_checks};

/// Returns the project for the current directory.
pub(crate) fn here() -> Result<Project, ErrorBody> {
    wp_codebox_project::around(Path::new("."), &user_directories()).map_err(ErrorBody::from)
}

/// Returns the project that is exactly this directory.
pub(crate) fn of(directory: &Path) -> Result<Project, ProjectError> {
    wp_codebox_project::of(directory, &user_directories())
}
