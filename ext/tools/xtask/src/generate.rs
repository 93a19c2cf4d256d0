//! `cargo xtask generate`: writes all generated files.
//!
//! A generator returns the complete text of its file. `check` compares that text with the file
//! and `rewrite` writes it, so the drift check and the fix always agree.

use crate::findings::TaskError;
use crate::generated::Generated;
use crate::{
    abilities, attacks, commands, compatibility, error_codes, hosts, kernel_memory, request_fields,
    schemas, site_content, task, tree,
};
use std::fs;
use std::path::Path;

fn all(root: &Path) -> Result<Vec<Generated>, TaskError> {
    let [facade, table] = abilities::documents(root)?;
    Ok(vec![
        attacks::document(root)?,
        compatibility::document(root)?,
        error_codes::php_enum(),
        hosts::document(root)?,
        kernel_memory::document(root)?,
        request_fields::document(root)?,
        schemas::manifest(root)?,
        site_content::copy(root)?,
        task::authorities(),
        facade,
        table,
    ])
}

/// Returns one finding per outdated generated file.
pub fn check(root: &Path) -> Result<Vec<String>, TaskError> {
    let stale = stale(root)?;
    Ok(stale
        .iter()
        .map(|file| format!("{}: is out of date; run: cargo xtask generate", file.path))
        .collect())
}

/// Writes outdated generated files.
pub fn rewrite(root: &Path) -> Result<(), TaskError> {
    // docs/compatibility.md lists the methods of WP_Codebox_API, which is generated. So it is right
    // only in the second pass.
    for _ in 0..2 {
        for file in stale(root)? {
            let path = root.join(file.path);
            fs::write(&path, file.text).map_err(TaskError::file(&path))?;
            println!("{}: written", file.path);
        }
    }
    Ok(())
}

/// Tests that record what they compare with, when `UPDATE_GOLDEN` is 1: arguments of `cargo test`. The
/// schema of recipes comes before the files that are made of schemas, the others after them.
const RECORDED: [&[&str]; 3] = [
    &[
        "-p",
        "wp-codebox-recipe",
        "--lib",
        "committed_recipe_schema",
    ],
    &[
        "-p",
        "wp-codebox-contracts",
        "-p",
        "wp-codebox-artifacts",
        "-p",
        "wp-codebox-platform",
        "--test",
        "golden",
    ],
    &["-p", "wp-codebox-service", "--test", "service", "openapi"],
];

/// Writes outdated generated files and the golden files that tests record.
pub fn rewrite_all(root: &Path) -> Result<(), TaskError> {
    let [recipes, others @ ..] = RECORDED;
    record(root, recipes)?;
    rewrite(root)?;
    others.iter().try_for_each(|test| record(root, test))
}

fn record(root: &Path, test: &[&str]) -> Result<(), TaskError> {
    let cargo = commands::cargo();
    let words = [&["UPDATE_GOLDEN=1", &cargo, "test", "--quiet"], test].concat();
    match commands::shown(root, "env", &words)? {
        true => Ok(()),
        false => Err(TaskError::Findings(vec![format!(
            "cargo test {} failed; see above",
            test.join(" ")
        )])),
    }
}

fn stale(root: &Path) -> Result<Vec<Generated>, TaskError> {
    let mut stale = Vec::new();
    for file in all(root)? {
        let path = root.join(file.path);
        if !path.is_file() || tree::read(&path)? != file.text {
            stale.push(file);
        }
    }
    Ok(stale)
}
