//! PHP syntax and style: `php -l` on every file, and `phpcs` if a ruleset exists.

use crate::commands;
use crate::findings::TaskError;
use crate::tree;
use std::path::{Path, PathBuf};

const FOLDERS: &[&str] = &[
    "plugin-php",
    "abilities",
    "wp-cli",
    "share",
    "tests",
    "ext/php/stubs",
    "ext/tools/xtask",
];

/// Returns the PHP program: Debian's PHP 8.2, even if another version comes first in PATH.
pub fn program() -> &'static str {
    if commands::exists("php8.2") {
        "php8.2"
    } else {
        "php"
    }
}

/// Returns every syntax error and every finding of phpcs.
pub fn check(root: &Path) -> Result<Vec<String>, TaskError> {
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in FOLDERS {
        files.extend(
            tree::files(&root.join(folder))?
                .into_iter()
                .filter(|path| tree::has_extension(path, "php")),
        );
    }
    judge(root, &files, &[])
}

/// Returns every syntax error and every finding of phpcs in those of the files, below the root, that
/// [`check`] reads.
pub fn check_only(root: &Path, changed: &[PathBuf]) -> Result<Vec<String>, TaskError> {
    let is_read = |path: &&PathBuf| {
        tree::has_extension(path, "php") && FOLDERS.iter().any(|folder| path.starts_with(folder))
    };
    let files: Vec<PathBuf> = changed
        .iter()
        .filter(is_read)
        .map(|path| root.join(path))
        .collect();
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<String> = files.iter().map(|path| tree::shown(root, path)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    judge(root, &files, &names)
}

/// Applies both tools: PHP to `files`, phpcs to `names`, or to all that its ruleset names.
fn judge(root: &Path, files: &[PathBuf], names: &[&str]) -> Result<Vec<String>, TaskError> {
    let mut findings = Vec::new();
    let php = program();
    for file in files {
        let shown = tree::shown(root, file);
        let answer = commands::quiet(
            root,
            php,
            // Without php.ini, PHP loads no extension and starts four times as fast.
            &[
                "-n",
                "-l",
                "-d",
                "display_errors=0",
                "-d",
                "log_errors=1",
                &shown,
            ],
        )?;
        if !answer.success {
            findings.push(format!("{shown}: {}", answer.said.trim()));
        }
    }
    if root.join("phpcs.xml.dist").is_file() {
        let answer = commands::quiet(
            root,
            "phpcs",
            &[
                &[
                    "-q",
                    "--no-colors",
                    "--report=emacs",
                    "--standard=phpcs.xml.dist",
                    "--parallel=2",
                ],
                names,
            ]
            .concat(),
        )?;
        if !answer.success {
            findings.extend(
                answer
                    .said
                    .lines()
                    .filter(|line| !line.is_empty())
                    .map(|line| tree::shown(root, Path::new(line))),
            );
        }
    }
    Ok(findings)
}
