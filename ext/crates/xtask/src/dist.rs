//! `cargo xtask dist`: the WordPress plugin as one directory, and the rules a
//! plugin directory must keep.
//!
//! The content depends on the checkout alone. Schema examples, dotfiles and
//! Markdown stay out. The finished directory appears by one rename.

use crate::digest::hex;
use crate::findings::{TaskError, settle};
use crate::tree;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

const SLUG: &str = "wp-codebox";
/// Kinds of file that may be in a plugin.
const EXTENSIONS: &[&str] = &[
    "php", "json", "txt", "css", "js", "svg", "png", "pot", "po", "mo",
];
const HEADERS: &[&str] = &[
    "Plugin Name",
    "Description",
    "Version",
    "Requires at least",
    "Requires PHP",
    "Author",
    "License",
    "License URI",
    "Text Domain",
];
const README_HEADERS: &[&str] = &[
    "Contributors",
    "Tags",
    "Requires at least",
    "Tested up to",
    "Requires PHP",
    "Stable tag",
    "License",
];

/// Builds `dist/wp-codebox/` and checks it.
pub fn build(root: &Path) -> Result<(), TaskError> {
    let target = root.join("dist").join(SLUG);
    let staging = root.join("dist").join(format!(".{SLUG}.new"));
    remove(&staging)?;
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
    files.sort_by(|a, b| {
        a.1.as_os_str()
            .as_encoded_bytes()
            .cmp(b.1.as_os_str().as_encoded_bytes())
    });
    let mut hash = Sha256::new();
    for (source, relative) in &files {
        let bytes = fs::read(source).map_err(TaskError::file(source))?;
        hash.update(format!("{}\n{}\n", relative.display(), bytes.len()));
        hash.update(&bytes);
        write(&staging.join(relative), &bytes)?;
    }
    let findings = judge(&staging)?;
    if !findings.is_empty() {
        remove(&staging)?;
        return settle(findings);
    }
    remove(&target)?;
    fs::rename(&staging, &target).map_err(TaskError::file(&target))?;
    println!(
        "dist/{SLUG}: {} files, sha256 {}",
        files.len(),
        hex(&hash.finalize())
    );
    Ok(())
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

/// What of the sources goes into the plugin.
fn shipped(folder: &str, relative: &Path) -> bool {
    let hidden = relative
        .components()
        .any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."));
    let examples = folder == "abilities" && relative.starts_with("schemas/examples");
    !hidden && !examples && !tree::has_extension(relative, "md")
}

/// The file and header rules, on the finished directory.
fn judge(directory: &Path) -> Result<Vec<String>, TaskError> {
    let mut findings = Vec::new();
    let main = directory.join(format!("{SLUG}.php"));
    let readme = directory.join("readme.txt");
    for required in [&main, &readme] {
        if !required.is_file() {
            findings.push(format!("{} is missing", tree::shown(directory, required)));
        }
    }
    if !findings.is_empty() {
        return Ok(findings);
    }
    for path in tree::files(directory)? {
        findings.extend(file_rules(directory, &path)?);
    }
    let main = tree::read(&main)?;
    let readme = tree::read(&readme)?;
    for name in HEADERS {
        if header(&main, name).is_none() {
            findings.push(format!("{SLUG}.php: has no header `{name}`"));
        }
    }
    for name in README_HEADERS {
        if header(&readme, name).is_none() {
            findings.push(format!("readme.txt: has no header `{name}`"));
        }
    }
    if header(&main, "Text Domain").is_some_and(|domain| domain != SLUG) {
        findings.push(format!(
            "{SLUG}.php: the text domain must be the slug {SLUG}"
        ));
    }
    for (ours, theirs) in [
        ("Version", "Stable tag"),
        ("Requires at least", "Requires at least"),
        ("Requires PHP", "Requires PHP"),
    ] {
        if header(&main, ours) != header(&readme, theirs) {
            findings.push(format!(
                "{SLUG}.php `{ours}` and readme.txt `{theirs}` differ"
            ));
        }
    }
    if !readme.starts_with("=== ") {
        findings.push("readme.txt: must start with === name ===".to_owned());
    }
    Ok(findings)
}

fn file_rules(directory: &Path, path: &Path) -> Result<Vec<String>, TaskError> {
    let mut findings = Vec::new();
    let shown = tree::shown(directory, path);
    let extension = path
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or_default();
    if !EXTENSIONS.contains(&extension) {
        findings.push(format!(
            "{shown}: this kind of file may not be in a plugin; allowed are {EXTENSIONS:?}"
        ));
    }
    if !shown
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte))
    {
        findings.push(format!(
            "{shown}: file names are letters, digits, dots, dashes and underscores"
        ));
    }
    if extension == "php" {
        let text = tree::read(path)?;
        if !text.starts_with("<?php") {
            findings.push(format!("{shown}: must start with <?php"));
        }
        if !["defined( 'ABSPATH' )", "defined( 'WP_UNINSTALL_PLUGIN' )"]
            .iter()
            .any(|guard| text.contains(guard))
        {
            findings.push(format!("{shown}: has no guard against direct access"));
        }
        // Starting programs is the runner's work; a plugin that does is refused by many hosts.
        for forbidden in [
            "proc_open",
            "shell_exec",
            "passthru",
            "eval(",
            "base64_decode( '",
        ] {
            if text.contains(forbidden) {
                findings.push(format!("{shown}: uses {forbidden}"));
            }
        }
    }
    Ok(findings)
}

/// A `Name: value` header, with or without the ` * ` of a comment before it.
fn header<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().take(60).find_map(|line| {
        let value = line
            .trim_start_matches([' ', '\t', '*', '/', '#'])
            .strip_prefix(name)?
            .strip_prefix(':')?
            .trim();
        (!value.is_empty()).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let main: String = HEADERS
            .iter()
            .map(|name| {
                format!(
                    " * {name}: {}\n",
                    if *name == "Text Domain" { SLUG } else { "1.0" }
                )
            })
            .collect();
        let readme: String = README_HEADERS
            .iter()
            .map(|name| format!("{name}: 1.0\n"))
            .collect();
        write(
            &directory.path().join("wp-codebox.php"),
            format!("<?php\n/**\n{main} */\ndefined( 'ABSPATH' ) || exit;\n").as_bytes(),
        )
        .unwrap();
        write(
            &directory.path().join("readme.txt"),
            format!("=== WP Codebox ===\n{readme}").as_bytes(),
        )
        .unwrap();
        directory
    }

    #[test]
    fn a_sound_plugin_has_no_findings() {
        assert_eq!(judge(plugin().path()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn each_rule_bites() {
        for (name, bytes) in [
            ("run.sh", "echo"),
            ("open.php", "<?php\necho 1;\n"),
            ("late.php", "\n<?php defined( 'ABSPATH' ) || exit;"),
            (
                "exec.php",
                "<?php\ndefined( 'ABSPATH' ) || exit;\nproc_open();\n",
            ),
            ("two words.txt", "x"),
        ] {
            let directory = plugin();
            write(&directory.path().join(name), bytes.as_bytes()).unwrap();
            assert_eq!(judge(directory.path()).unwrap().len(), 1, "{name}");
        }
        let directory = plugin();
        let readme = directory.path().join("readme.txt");
        let text = fs::read_to_string(&readme)
            .unwrap()
            .replace("Stable tag: 1.0", "Stable tag: 1.1");
        fs::write(&readme, text).unwrap();
        assert_eq!(judge(directory.path()).unwrap().len(), 1);
    }

    #[test]
    fn what_ships() {
        assert!(shipped(
            "abilities",
            Path::new("schemas/thing.v1.schema.json")
        ));
        assert!(!shipped(
            "abilities",
            Path::new("schemas/examples/thing/valid-1.json")
        ));
        assert!(!shipped("plugin-php", Path::new("includes/.hidden")));
        assert!(!shipped("plugin-php", Path::new("NOTES.md")));
    }
}
