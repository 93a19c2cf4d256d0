//! `cargo xtask generate`: writes all generated files.
//!
//! A generator returns the complete text of its file. `check` compares that text with the file
//! and `rewrite` writes it, so the drift check and the fix always agree.

use crate::findings::TaskError;
use crate::generated::Generated;
use crate::{
    abilities, attacks, compatibility, error_codes, hosts, kernel_memory, request_fields, schemas,
    site_content, task, tree,
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
