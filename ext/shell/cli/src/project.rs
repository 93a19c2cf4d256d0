//! Asks the crate `project` with the directories of the user who called this program.

use std::path::{Path, PathBuf};
use wp_codebox_contracts::ErrorBody;
use wp_codebox_project::{ProjectError, UserDirectories};

pub(crate) use wp_codebox_project::{NO_CHECKS, Project, proposed_checks};

/// Returns the project for the current directory.
pub(crate) fn here() -> Result<Project, ErrorBody> {
    wp_codebox_project::around(Path::new("."), &user()).map_err(|e| e.body())
}

/// Returns the project that is exactly this directory.
pub(crate) fn of(directory: &Path) -> Result<Project, ProjectError> {
    wp_codebox_project::of(directory, &user())
}

/// Returns the real path of the WordPress core that contains a directory or lies in a known place
/// beside it, the nearest one.
pub(crate) fn site_around(directory: &Path) -> Option<PathBuf> {
    wp_codebox_project::site_around(directory, &user())
}

fn user() -> UserDirectories {
    UserDirectories {
        home: std::env::home_dir(),
        working: std::env::var_os("PWD").map(PathBuf::from),
    }
}
