//! Builds the browser engine with npm and packs its runtime files.
//!
//! The flat folder `browser/dist/` goes into the plugin. The big files, which `runtime.json` lists
//! by size and hash, become an archive of their own: the plugin has no archive and no program in
//! it, and installs these files after it has compared them with the list.

use super::archive;
use crate::commands;
use crate::digest::hex;
use crate::findings::{TaskError, settle};
use crate::tree;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Directory of the engine in the plugin.
pub(super) const BELOW: &str = "assets/browser";
/// Directory of the npm project below the checkout.
const PROJECT: &str = "browser";
/// Directory of the big files below the folder that npm builds.
const RUNTIME: &str = "runtime";
/// Name of the list of the big files.
const LIST: &str = "runtime.json";
/// File with the hash of the sources that the folder was built from.
const STAMP: &str = ".sources.sha256";

/// `runtime.json`. Other members are for the plugin.
#[derive(Deserialize)]
struct RuntimeList {
    files: Vec<RuntimeFile>,
}

/// A big file.
#[derive(Deserialize)]
struct RuntimeFile {
    name: String,
    bytes: u64,
    sha256: String,
}

/// Builds the engine if its sources changed since the last build, and returns the folder with its files.
/// `None` means that the checkout has no browser project.
pub(super) fn build(root: &Path) -> Result<Option<PathBuf>, TaskError> {
    let project = root.join(PROJECT);
    if !project.join("package.json").is_file() {
        return Ok(None);
    }
    let built = project.join("dist");
    let stamp = built.join(STAMP);
    let wanted = hash_of_sources(&project)?;
    if let Some(built) = current(root)? {
        return Ok(Some(built));
    }
    if !commands::exists("npm") {
        return settle(vec![
            "npm is missing, which builds browser/; run: tests/provision packages".to_owned(),
        ])
        .map(|()| None);
    }
    let folder = project.display().to_string();
    for arguments in [
        &["ci", "--no-audit", "--no-fund"][..],
        &["run", "--silent", "build"][..],
    ] {
        let answer = commands::quiet(
            root,
            "npm",
            &[&["--prefix", folder.as_str()], arguments].concat(),
        )?;
        if !answer.success {
            return settle(vec![format!(
                "npm {} failed in {PROJECT}/: {}",
                arguments.join(" "),
                answer.said
            )])
            .map(|()| None);
        }
    }
    fs::write(&stamp, wanted).map_err(TaskError::file(&stamp))?;
    Ok(Some(built))
}

/// Returns the folder of [`build`] if it was built from the present sources.
pub(super) fn current(root: &Path) -> Result<Option<PathBuf>, TaskError> {
    let built = root.join(PROJECT).join("dist");
    let Ok(found) = fs::read_to_string(built.join(STAMP)) else {
        return Ok(None);
    };
    let is_current = found == hash_of_sources(&root.join(PROJECT))? && built.join(LIST).is_file();
    Ok(is_current.then_some(built))
}

/// Returns source and target path of each file of the engine that the plugin contains.
pub(super) fn sources(built: &Path) -> Result<Vec<(PathBuf, PathBuf)>, TaskError> {
    let mut files = Vec::new();
    for path in tree::files(built)? {
        let relative = path.strip_prefix(built).unwrap_or(&path).to_path_buf();
        let hidden = relative.as_os_str().as_encoded_bytes().starts_with(b".");
        if !hidden && relative.components().count() == 1 {
            files.push((path.clone(), Path::new(BELOW).join(relative)));
        }
    }
    Ok(files)
}

/// Compares the big files with `runtime.json` and returns the bytes of their archive.
pub(super) fn runtime_archive(built: &Path) -> Result<Vec<u8>, TaskError> {
    let list = built.join(LIST);
    let directory = built.join(RUNTIME);
    let parsed: Result<RuntimeList, _> = serde_json::from_str(&tree::read(&list)?);
    let Ok(parsed) = parsed else {
        return settle(vec![format!(
            "{PROJECT}/dist/{LIST} is not a list of files"
        )])
        .map(|()| Vec::new());
    };
    let mut findings = Vec::new();
    let mut left: BTreeSet<String> = tree::files(&directory)?
        .iter()
        .map(|path| tree::shown(&directory, path))
        .collect();
    for file in &parsed.files {
        if !served_as_stored(&file.name) {
            findings.push(format!(
                "{LIST}: web servers may unpack {} on the way; name it NAME.bin or NAME.zip",
                file.name
            ));
        }
        let path = directory.join(&file.name);
        if !left.remove(&file.name) {
            findings.push(format!("{LIST}: there is no {RUNTIME}/{}", file.name));
            continue;
        }
        let bytes = fs::read(&path).map_err(TaskError::file(&path))?;
        if bytes.len() as u64 != file.bytes || hex(&Sha256::digest(&bytes)) != file.sha256 {
            findings.push(format!(
                "{LIST}: size or hash of {RUNTIME}/{} is another one",
                file.name
            ));
        }
    }
    findings.extend(
        left.iter()
            .map(|name| format!("{LIST}: does not list {RUNTIME}/{name}")),
    );
    settle(findings)?;
    archive::pack(&directory, "")
}

/// Whether web servers with default settings send a file of this name as it is stored. Apache
/// evaluates every extension of a name, and `.gz` or `.br` declares an encoding, so a name may
/// have only one extension.
fn served_as_stored(name: &str) -> bool {
    matches!(
        name.split('.').collect::<Vec<_>>().as_slice(),
        [_, "bin" | "zip"]
    )
}

/// Returns the hash of all files that a build reads.
fn hash_of_sources(project: &Path) -> Result<String, TaskError> {
    let mut hash = Sha256::new();
    for path in tree::files(project)? {
        let relative = path.strip_prefix(project).unwrap_or(&path);
        if relative.starts_with("dist") || relative.starts_with("test") {
            continue;
        }
        let bytes = fs::read(&path).map_err(TaskError::file(&path))?;
        hash.update(format!("{}\n{}\n", relative.display(), bytes.len()));
        hash.update(&bytes);
    }
    Ok(hex(&hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(list: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join(RUNTIME)).unwrap();
        fs::write(directory.path().join("runtime/php.bin"), "wasm").unwrap();
        for name in ["client.js", "remote.html", STAMP] {
            fs::write(directory.path().join(name), "x").unwrap();
        }
        fs::create_dir(directory.path().join("screens")).unwrap();
        fs::write(directory.path().join("screens/page.png"), "x").unwrap();
        fs::write(directory.path().join(LIST), list).unwrap();
        directory
    }

    fn row(name: &str, text: &str, bytes: usize) -> String {
        let sha256 = hex(&Sha256::digest(text));
        format!(r#"{{"name":"{name}","bytes":{bytes},"sha256":"{sha256}"}}"#)
    }

    #[test]
    fn plugin_gets_the_files_of_the_build_directory_except_subdirectories_and_the_stamp_file() {
        let directory = built("{}");
        let targets: Vec<_> = sources(directory.path())
            .unwrap()
            .into_iter()
            .map(|(_, target)| target.display().to_string())
            .collect();
        assert_eq!(
            targets,
            [
                "assets/browser/client.js",
                "assets/browser/remote.html",
                "assets/browser/runtime.json"
            ]
        );
    }

    #[test]
    fn runtime_archive_has_exactly_the_listed_files_at_its_top() {
        let list = format!(r#"{{"files":[{}]}}"#, row("php.bin", "wasm", 4));
        let bytes = runtime_archive(built(&list).path()).unwrap();
        let mut archive = zip::ZipArchive::new(std::io::Cursor::new(bytes)).unwrap();
        assert_eq!(archive.len(), 1);
        assert_eq!(archive.by_index(0).unwrap().name().unwrap(), "php.bin");
    }

    #[test]
    fn runtime_list_that_differs_from_the_files_is_refused() {
        let good = row("php.bin", "wasm", 4);
        for list in [
            String::new(),
            "[]".to_owned(),
            r#"{"files":[]}"#.to_owned(),
            format!(r#"{{"files":[{}]}}"#, row("php.bin", "wasM", 4)),
            format!(r#"{{"files":[{}]}}"#, row("php.bin", "wasm", 5)),
            format!(r#"{{"files":[{good},{}]}}"#, row("other", "", 0)),
            format!(r#"{{"files":[{good},{good}]}}"#),
        ] {
            assert!(runtime_archive(built(&list).path()).is_err(), "{list}");
        }
    }

    #[test]
    fn runtime_file_whose_name_can_make_web_servers_declare_a_content_encoding_is_refused() {
        for (name, stored) in [
            ("php-jspi.bin", true),
            ("sqlite.zip", true),
            ("php.wasm.gz", false),
            ("php.gz.bin", false),
            ("php.br", false),
            ("php", false),
        ] {
            assert_eq!(served_as_stored(name), stored, "{name}");
        }
        let directory = built(&format!(r#"{{"files":[{}]}}"#, row("php.gz", "wasm", 4)));
        let runtime = directory.path().join(RUNTIME);
        fs::rename(runtime.join("php.bin"), runtime.join("php.gz")).unwrap();
        assert!(runtime_archive(directory.path()).is_err());
    }

    #[test]
    fn hash_of_sources_changes_with_src_and_ignores_dist_node_modules_and_test() {
        let directory = tempfile::tempdir().unwrap();
        let project = directory.path();
        fs::create_dir_all(project.join("src")).unwrap();
        fs::write(project.join("src/a.ts"), "1").unwrap();
        let before = hash_of_sources(project).unwrap();
        for other in ["dist", "node_modules/x", "test"] {
            fs::create_dir_all(project.join(other)).unwrap();
            fs::write(project.join(other).join("b.js"), "2").unwrap();
        }
        assert_eq!(before, hash_of_sources(project).unwrap());
        fs::write(project.join("src/a.ts"), "2").unwrap();
        assert_ne!(before, hash_of_sources(project).unwrap());
    }
}
