//! Walks the checkout in one fixed order, without following links.

use crate::findings::TaskError;
use std::fs;
use std::path::{Path, PathBuf};

/// Every regular file below `directory`, sorted by path bytes; none when it does not exist.
///
/// Directories named `target`, `node_modules` or `.git` are not entered.
pub fn files(directory: &Path) -> Result<Vec<PathBuf>, TaskError> {
    let mut found = Vec::new();
    if directory.is_dir() {
        walk(directory, &mut found)?;
    }
    found.sort_by(|a, b| {
        a.as_os_str()
            .as_encoded_bytes()
            .cmp(b.as_os_str().as_encoded_bytes())
    });
    Ok(found)
}

fn walk(directory: &Path, found: &mut Vec<PathBuf>) -> Result<(), TaskError> {
    for entry in fs::read_dir(directory).map_err(TaskError::file(directory))? {
        let entry = entry.map_err(TaskError::file(directory))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(TaskError::file(&path))?;
        if kind.is_dir() {
            if !matches!(
                entry.file_name().to_str(),
                Some("target" | "node_modules" | ".git")
            ) {
                walk(&path, found)?;
            }
        } else if kind.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

/// The text of a file; a file that is not UTF-8 is an error, as all sources are.
pub fn read(path: &Path) -> Result<String, TaskError> {
    fs::read_to_string(path).map_err(TaskError::file(path))
}

/// `path` as seen from `root`, for messages.
pub fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root)
        .unwrap_or(path)
        .display()
        .to_string()
}

/// Whether the file's extension is `extension`.
pub fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}
