//! Reads the directories of the user for the search of a project.

use std::path::PathBuf;
use wp_codebox_project::UserDirectories;

/// Returns the directories of the user who called this program, from the environment.
#[must_use]
pub fn user_directories() -> UserDirectories {
    UserDirectories {
        home: std::env::home_dir(),
        working: std::env::var_os("PWD").map(PathBuf::from),
    }
}
