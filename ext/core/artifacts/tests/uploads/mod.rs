//! A site that composes bundles of uploads, baselines, and an upload that changes them.
#![allow(dead_code)] // Each test binary uses only some of the functions.

use crate::bundles::{TIME, object};
use crate::trees::scratch;
use serde_json::{Value, json};
use std::fs;
use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::*;
use wp_codebox_contracts::*;
use wp_codebox_policy::Redactor;
use zip::write::SimpleFileOptions;

pub const TARGET: &str = "/wordpress/wp-content/plugins/foo";
pub const CODE: &str = "<?php\n// Plugin Name: Foo\necho 1;\n";

pub struct Site {
    pub state: tempfile::TempDir,
    pub store: Store,
    pub key: HostKey,
}

impl Site {
    pub fn new() -> Self {
        let state = scratch();
        let dir = Dir::open(state.path()).unwrap();
        Self {
            store: Store::open(&dir, &SiteId::new("site-1").unwrap()).unwrap(),
            key: HostKey::load_or_create(&dir).unwrap(),
            state,
        }
    }
    pub fn artifacts(&self) -> PathBuf {
        self.state.path().join("sites/site-1/artifacts")
    }
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.artifacts()).unwrap();
        entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect()
    }
    pub fn compose(&self, request: ComposeRequest) -> Result<Composed, ComposeError> {
        compose(&self.store, &self.key, request, &Redactor::new(&[]))
    }
    pub fn kept(&self, request: ComposeRequest) -> (PathBuf, Composed) {
        let composed = self.compose(request).unwrap();
        (self.artifacts().join(composed.run_id.as_str()), composed)
    }
    pub fn code(&self, request: ComposeRequest) -> ErrorCode {
        let code = self.compose(request).unwrap_err().code();
        assert!(self.names().is_empty(), "a refused upload leaves nothing");
        code
    }
    pub fn trusted(&self) -> TrustedKeys {
        TrustedKeys {
            host: vec![self.key.public_half()],
            known: Vec::new(),
        }
    }
}

/// Returns a baseline archive with these entries: name, mode, content. A name that ends with `/`
/// makes a directory, a mode with the file type of a link a symbolic link to the content.
pub fn archive(entries: &[(&str, u32, &str)]) -> BaselineSource {
    archive_of(&archive_bytes(entries))
}

/// Returns the bytes of an archive.
pub fn archive_bytes(entries: &[(&str, u32, &str)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, mode, content) in entries {
        // Compression is slow in a debug build.
        let options = SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored)
            .unix_permissions(mode & 0o777);
        if name.ends_with('/') {
            zip.add_directory(*name, options).unwrap();
        } else if mode & 0o170_000 == 0o120_000 {
            zip.add_symlink(*name, *content, options).unwrap();
        } else {
            zip.start_file(*name, options).unwrap();
            zip.write_all(content.as_bytes()).unwrap();
        }
    }
    zip.finish().unwrap().into_inner()
}

/// Returns a baseline of these bytes, with their hash.
pub fn archive_of(bytes: &[u8]) -> BaselineSource {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    BaselineSource::Archive {
        file,
        sha256: sha256(bytes),
    }
}

pub fn baseline() -> BaselineSource {
    archive(&[
        ("foo.php", 0o644, CODE),
        ("inc/", 0o755, ""),
        ("inc/a.php", 0o644, "<?php\n"),
        ("inc/b.php", 0o644, "<?php // b\n"),
        ("bin/run", 0o755, "#!/bin/sh\n"),
        ("ReadMe.txt", 0o644, "read\n"),
        ("link", 0o120_777, "/etc/passwd"),
        ("empty/", 0o755, ""),
    ])
}

pub fn root(baseline: Vec<BaselineSource>) -> ComposeRoot {
    ComposeRoot {
        name: "plugins/foo".to_owned(),
        scope: ComposeScope::Everything,
        target: GuestPath::new(TARGET).unwrap(),
        baseline,
        metadata: Some(object(json!({"origin": {"kind": "plugin", "slug": "foo"}}))),
    }
}

pub fn upload(files: &[(&str, &str)], deleted: &[&str]) -> ComposeRequest {
    ComposeRequest {
        created_at: TIME.to_owned(),
        identity: "user 1, session 1".to_owned(),
        roots: vec![root(vec![baseline()])],
        files: files
            .iter()
            .map(|(path, text)| UploadedFile {
                path: (*path).to_owned(),
                bytes: text.as_bytes().to_vec(),
            })
            .collect(),
        deleted: deleted.iter().map(|path| (*path).to_owned()).collect(),
        provenance: object(json!({"requester": {"kind": "user", "id": 1}})),
    }
}

pub fn edit() -> ComposeRequest {
    let new = CODE.replace('1', "2");
    upload(
        &[
            ("plugins/foo/foo.php", &new),
            ("plugins/foo/new/x.js", "x\n"),
        ],
        &["plugins/foo/inc/b.php"],
    )
}

pub fn json_of(bundle: &Path, member: &str) -> Value {
    serde_json::from_slice(&fs::read(bundle.join(member)).unwrap()).unwrap()
}

pub fn changed(bundle: &Path) -> Vec<(String, String)> {
    let document = json_of(bundle, "files/changed-files.json");
    let rows = document["files"].as_array().unwrap();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    rows.iter()
        .map(|row| (text(row, "relativePath"), text(row, "status")))
        .collect()
}
