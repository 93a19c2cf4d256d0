//! Lists files of the checkout in a fixed order, without following symbolic links.

use crate::findings::TaskError;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns every regular file below `directory`, sorted by path bytes; empty if it does not
/// exist.
///
/// Directories named `target`, `node_modules` or `.git` are skipped.
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

/// Returns name and directory of every crate below `ext`, sorted by name. Crates are in the folders of
/// their floors; the floor `php` is one crate.
pub fn crates(root: &Path) -> Result<Vec<(String, PathBuf)>, TaskError> {
    let mut found = Vec::new();
    for floor in directories(&root.join("ext"))? {
        match floor.join("Cargo.toml").is_file() {
            true => found.push(floor),
            false => found.extend(directories(&floor)?),
        }
    }
    let mut named: Vec<(String, PathBuf)> = found
        .into_iter()
        .filter_map(|path| Some((path.file_name()?.to_str()?.to_owned(), path)))
        .collect();
    named.sort();
    Ok(named)
}

fn directories(path: &Path) -> Result<Vec<PathBuf>, TaskError> {
    let entries = fs::read_dir(path).map_err(TaskError::file(path))?;
    let paths: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(TaskError::file(path))?;
    Ok(paths.into_iter().filter(|path| path.is_dir()).collect())
}

/// Reads a file as text; fails if it is not UTF-8, which all sources are.
pub fn read(path: &Path) -> Result<String, TaskError> {
    fs::read_to_string(path).map_err(TaskError::file(path))
}

/// Returns `path` relative to `root`, as findings show it.
pub fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root)
        .unwrap_or(path)
        .display()
        .to_string()
}

/// Returns whether the file's extension is `extension`.
pub fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}
