//! Files that differ from the last commit, and the crates that they belong to.

use crate::commands;
use crate::findings::TaskError;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Files outside the folder of a crate that are compiled into it.
const COMPILED: &[(&str, &str)] = &[("abilities/schemas", "wp-codebox-schemas")];

/// What differs from the last commit.
#[derive(Debug, PartialEq, Eq)]
pub struct Changes {
    /// Changed and new files that exist, below the root.
    pub files: Vec<PathBuf>,
    /// Names of the packages with a changed, new or removed file.
    pub packages: BTreeSet<String>,
}

/// Asks git for the files and cargo for the packages.
pub fn read(root: &Path) -> Result<Changes, TaskError> {
    let status = [
        "status",
        "--porcelain=v1",
        "-z",
        "--untracked-files=all",
        "--no-renames",
    ];
    let changed = commands::required(root, "git", &status)?;
    let metadata = commands::metadata(root)?;
    let paths = paths(&String::from_utf8_lossy(&changed));
    Ok(Changes {
        packages: packages(&paths, &metadata),
        files: paths
            .into_iter()
            .filter(|path| root.join(path).is_file())
            .collect(),
    })
}

/// Returns the paths of `git status --porcelain=v1 -z`: two letters, a space and the path each.
fn paths(status: &str) -> Vec<PathBuf> {
    let rows = status.split('\0').filter_map(|row| row.get(3..));
    rows.filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .collect()
}

/// Returns the packages that the paths belong to: those with the longest folder around each.
fn packages(paths: &[PathBuf], metadata: &Value) -> BTreeSet<String> {
    let root = Path::new(metadata["workspace_root"].as_str().unwrap_or_default());
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let folders = packages.filter_map(|package| {
        let manifest = Path::new(package["manifest_path"].as_str()?);
        let folder = manifest.parent()?.strip_prefix(root).ok()?;
        Some((folder.to_owned(), package["name"].as_str()?.to_owned()))
    });
    let compiled = COMPILED
        .iter()
        .map(|(folder, package)| (PathBuf::from(folder), (*package).to_owned()));
    let folders: Vec<(PathBuf, String)> = folders.chain(compiled).collect();
    let owner = |path: &PathBuf| {
        let around = folders
            .iter()
            .filter(|(folder, _)| path.starts_with(folder));
        let (_, package) = around.max_by_key(|(folder, _)| folder.iter().count())?;
        Some(package.clone())
    };
    paths.iter().filter_map(owner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn changed_new_and_removed_files_give_their_packages_and_other_files_give_none() {
        let status = " M ext/core/policy/src/lib.rs\0?? ext/core/policy/new file.rs\0 D ext/php/src/a.rs\0\
             M  abilities/schemas/parts/a.json\0 M README.md\0";
        let package = |name, folder| json!({"name": name, "manifest_path": format!("/x/{folder}/Cargo.toml")});
        let metadata = json!({"workspace_root": "/x", "packages": [
            package("wp-codebox-policy", "ext/core/policy"),
            package("wp-codebox-ext", "ext/php"),
            package("wp-codebox-recipe", "ext/core/recipe"),
        ]});
        let paths = paths(status);
        assert_eq!(paths.len(), 5);
        assert_eq!(paths[1], Path::new("ext/core/policy/new file.rs"));
        let found: Vec<String> = packages(&paths, &metadata).into_iter().collect();
        assert_eq!(
            found,
            ["wp-codebox-ext", "wp-codebox-policy", "wp-codebox-schemas"]
        );
    }
}
