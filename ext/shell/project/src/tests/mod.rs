//! Tests of the search for a project in temporary directory trees.

mod checks;
mod errors;
mod layouts;
mod links;
mod plugins;
mod sites;
mod themes;
mod upwards;

use super::error::ProjectError;
use super::find::{Reach, find};
use super::found::Project;
use super::place::Bounds;
use std::fs;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::CodedError;

/// Header of a plugin with a version.
const PLUGIN: &str = "<?php\n/**\n * Plugin Name: Hello\n * Version: 1.2\n */\n";
/// Header of a theme.
const THEME: &str = "/*\nTheme Name: Sky\nVersion: 2.0\n*/\n";

/// A directory tree in which `home` is the user's home directory.
struct Tree {
    root: PathBuf,
    _temporary: tempfile::TempDir,
}

impl Tree {
    /// Creates files with their content below `home`; a path that ends with `/` is a directory.
    fn new(files: &[(&str, &str)]) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path().canonicalize().unwrap().join("home");
        fs::create_dir(&root).unwrap();
        let tree = Self {
            root,
            _temporary: temporary,
        };
        for (path, content) in files {
            tree.write(path, content);
        }
        tree
    }

    fn write(&self, path: &str, content: &str) {
        let place = self.root.join(path);
        if path.ends_with('/') {
            fs::create_dir_all(place).unwrap();
            return;
        }
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, content).unwrap();
    }

    fn program(&self, path: &str) {
        use std::os::unix::fs::PermissionsExt;
        self.write(path, "#!/usr/bin/env php\n");
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.root.join(path), mode).unwrap();
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn find(&self, start: &Path, reach: Reach) -> Result<Project, ProjectError> {
        let bounds = Bounds {
            home: Some(self.root.clone()),
        };
        find(start, reach, &bounds)
    }

    fn around(&self, start: &str) -> Result<Project, ProjectError> {
        self.find(&self.at(start), Reach::Upward)
    }

    fn of(&self, directory: &str) -> Result<Project, ProjectError> {
        self.find(&self.at(directory), Reach::Here)
    }

    /// Returns `ROOT -> TARGET` of the project around a directory, relative to `home` and to
    /// `/wordpress/wp-content`, or the code of the error.
    fn place(&self, start: &str) -> String {
        self.shown(self.around(start))
    }

    fn shown(&self, found: Result<Project, ProjectError>) -> String {
        match found {
            Ok(project) => {
                let root = project.root.strip_prefix(&self.root).unwrap();
                let target = project.target.trim_start_matches("/wordpress/wp-content/");
                format!("{} -> {target}", root.display())
            }
            Err(error) => error.body().code.to_string(),
        }
    }

    /// Returns the site around a project, relative to `home`.
    fn site(&self, start: &str) -> Option<String> {
        let site = self.around(start).unwrap().site?;
        let site = site.strip_prefix(&self.root).unwrap();
        Some(site.display().to_string())
    }
}

/// Returns the files by which a directory is recognised as a WordPress core.
fn core(directory: &str) -> Vec<(String, &'static str)> {
    [
        "wp-load.php",
        "wp-includes/version.php",
        "wp-admin/admin.php",
    ]
    .map(|file| (format!("{directory}/{file}"), "<?php\n"))
    .to_vec()
}

/// Creates a tree with a core in each of `cores`, and other files.
fn tree_with_cores(cores: &[&str], files: &[(&str, &str)]) -> Tree {
    let tree = Tree::new(files);
    for (path, content) in cores.iter().flat_map(|directory| core(directory)) {
        tree.write(&path, content);
    }
    tree
}
