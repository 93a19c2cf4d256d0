//! `cargo xtask dist`: builds the WordPress plugin as a directory and as an archive.
//!
//! The content depends only on the checkout. Schemas are flattened. Schema examples, dotfiles and
//! Markdown files are excluded. [`translations`] makes the template of the translations with WP-CLI.
//! [`browser`] builds the engine of browser sandboxes and a second archive with its big files. A
//! plugin that violates a rule of [`rules`] is not written. Directory and archives are each put in
//! place by one rename.

mod archive;
mod browser;
mod rules;
mod translations;

use crate::commands;
use crate::digest::hex;
use crate::findings::{TaskError, settle};
use crate::{schemas, tree};
use rules::{DIRECTORY, SLUG};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

/// Directory of the schemas, in the checkout and in the plugin.
const SCHEMAS: &str = "abilities/schemas";

/// Builds and checks `dist/wp-codebox/`, `dist/codebox.zip` and `dist/codebox-browser.zip`.
pub fn build(root: &Path) -> Result<(), TaskError> {
    let engine = browser::build(root)?;
    if engine.is_none() {
        println!("browser/ does not exist: the plugin has no engine for browser sandboxes");
    }
    let dist = root.join("dist");
    directory(root, &dist, engine.as_deref())?;
    let packed = archive::pack(&dist.join(DIRECTORY), &format!("{SLUG}/"))?;
    put(&dist, &format!("{SLUG}.zip"), &packed)?;
    if let Some(built) = &engine {
        let packed = browser::runtime_archive(built)?;
        put(&dist, &format!("{SLUG}-browser.zip"), &packed)?;
    }
    Ok(())
}

/// Builds and checks `dist/wp-codebox/` without building the engine for browser sandboxes.
pub fn plugin(root: &Path) -> Result<(), TaskError> {
    directory(root, &root.join("dist"), browser::current(root)?.as_deref())
}

/// Writes the plugin with these files of the engine to a directory below `dist`.
fn directory(root: &Path, dist: &Path, engine: Option<&Path>) -> Result<(), TaskError> {
    let target = dist.join(DIRECTORY);
    let staging = dist.join(format!(".{DIRECTORY}.new"));
    remove(&staging)?;
    let mut sources = sources(root)?;
    if let Some(built) = engine {
        sources.extend(browser::sources(built)?);
    }
    let mut files = schemas(root)?;
    for (source, relative) in sources {
        let bytes = fs::read(&source).map_err(TaskError::file(&source))?;
        files.push((relative, bytes));
    }
    for (relative, bytes) in &files {
        write(&staging.join(relative), bytes)?;
    }
    let findings = rules::judge(&staging)?;
    if !findings.is_empty() {
        remove(&staging)?;
        return settle(findings);
    }
    match translations::template(root, &staging) {
        Ok(template) => files.push((PathBuf::from(translations::TEMPLATE), template)),
        Err(error) => {
            remove(&staging)?;
            return Err(error);
        }
    }
    sort(&mut files);
    let mut hash = Sha256::new();
    for (relative, bytes) in &files {
        hash.update(format!("{}\n{}\n", relative.display(), bytes.len()));
        hash.update(bytes);
    }
    remove(&target)?;
    fs::rename(&staging, &target).map_err(TaskError::file(&target))?;
    println!(
        "dist/{DIRECTORY}: {} files, sha256 {}",
        files.len(),
        hex(&hash.finalize())
    );
    Ok(())
}

/// Writes an archive to `dist/` under a temporary name, then renames it to `name`.
fn put(dist: &Path, name: &str, packed: &[u8]) -> Result<(), TaskError> {
    let archive = dist.join(name);
    let unfinished = dist.join(format!(".{name}.new"));
    write(&unfinished, packed)?;
    fs::rename(&unfinished, &archive).map_err(TaskError::file(&archive))?;
    println!(
        "dist/{name}: {} bytes, sha256 {}",
        packed.len(),
        hex(&Sha256::digest(packed))
    );
    Ok(())
}

/// Builds the Debian packages with a script that uses Debian's tools.
pub fn debian(root: &Path) -> Result<(), TaskError> {
    const SCRIPT: &str = "packaging/debian/build";
    let program = root.join(SCRIPT).display().to_string();
    settle(if commands::shown(root, &program, &[])? {
        Vec::new()
    } else {
        vec![format!("{SCRIPT} failed; see above")]
    })
}

/// Returns target path and bytes of every flattened schema.
fn schemas(root: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>, TaskError> {
    let schemas = schemas::flattened(root)?.into_iter();
    Ok(schemas
        .map(|schema| (Path::new(SCHEMAS).join(schema.file), schema.text.into()))
        .collect())
}

/// Returns source and target path of every file that the plugin takes from the checkout as it is.
fn sources(root: &Path) -> Result<Vec<(PathBuf, PathBuf)>, TaskError> {
    let mut files = Vec::new();
    for (folder, below) in [
        ("plugin-php", ""),
        ("abilities", "abilities"),
        ("wp-cli", "wp-cli"),
    ] {
        let source = root.join(folder);
        for path in tree::files(&source)? {
            let relative = path
                .strip_prefix(&source)
                .map_or_else(|_| path.clone(), Path::to_path_buf);
            if shipped(folder, &relative) {
                files.push((path, Path::new(below).join(relative)));
            }
        }
    }
    Ok(files)
}

/// Sorts files by target path.
fn sort(files: &mut [(PathBuf, Vec<u8>)]) {
    files.sort_by(|a, b| {
        a.0.as_os_str()
            .as_encoded_bytes()
            .cmp(b.0.as_os_str().as_encoded_bytes())
    });
}

fn remove(directory: &Path) -> Result<(), TaskError> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(TaskError::file(directory)(error))
        }
        _ => Ok(()),
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), TaskError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(TaskError::file(parent))?;
    }
    fs::write(path, bytes).map_err(TaskError::file(path))
}

/// Returns whether the plugin contains a source file as it is. [`schemas`] writes the schemas.
fn shipped(folder: &str, relative: &Path) -> bool {
    let hidden = relative
        .components()
        .any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."));
    let schemas = folder == "abilities" && relative.starts_with("schemas");
    !hidden && !schemas && !tree::has_extension(relative, "md")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packaged_plugin_excludes_schema_examples_dotfiles_and_markdown() {
        let directory = tempfile::tempdir().unwrap();
        let sources = directory.path().join(SCHEMAS);
        for (file, text) in [
            ("thing.v1.schema.json", r#"{"$ref": "parts/row.json"}"#),
            ("parts/row.json", r#"{"type": "object"}"#),
            ("examples/thing.json", "{}"),
        ] {
            write(&sources.join(file), text.as_bytes()).unwrap();
            assert!(!shipped("abilities", &Path::new("schemas").join(file)));
        }
        let flat = b"{\n  \"type\": \"object\"\n}\n".to_vec();
        let target = PathBuf::from("abilities/schemas/thing.v1.schema.json");
        assert_eq!(schemas(directory.path()).unwrap(), [(target, flat)]);
        assert!(shipped("abilities", Path::new("manifest.php")));
        assert!(!shipped("plugin-php", Path::new("includes/.hidden")));
        assert!(!shipped("plugin-php", Path::new("NOTES.md")));
    }
}
