//! Checks of the files that a manifest lists: file types, hashes, unlisted files and the bundle's
//! id.

use super::paths::{UrlFault, path_fault, url_fault};
use super::shape::{digest, text};
use crate::attestation::MANIFEST_PATH;
use crate::canonical::OverLimit;
use crate::digest::{MAX_DOCUMENT, content_digest, file_list_digest, manifest_self_hash, sha256};
use crate::dirfd::{Dir, ReadOutcome, join, read_pieces};
use crate::json::Json;
use crate::patch::quote_name;
use crate::php_syntax::PHP_SYNTAX_KIND;
use rustix::fs::FileType;
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use wp_codebox_contracts::{Sha256Hex, Violation, ViolationCode};

/// Maximum number of directory entries visited in the search for unlisted files.
const MAX_ENTRIES: usize = 100_000;
/// Maximum number of directory levels that the search for unlisted files enters.
const MAX_DEPTH: usize = 64;
/// Maximum number of bytes of a bundle that one verification hashes.
const MAX_TOTAL: u64 = 8 * 1024 * 1024 * 1024;
/// Maximum total size of documents held in memory; further documents are read again and compared
/// with their hash.
const MAX_CACHED: u64 = 256 * 1024 * 1024;

/// Contents of documents by their path in the bundle: the bytes whose hash was verified.
pub(crate) type Documents = BTreeMap<String, Vec<u8>>;

/// State of one verification.
pub(super) struct Session<'d> {
    dir: &'d Dir,
    pub manifest: Json,
    listed: BTreeSet<String>,
    /// Hashes of the files' actual contents, by path in the manifest.
    pub hashes: BTreeMap<String, Sha256Hex>,
    pub cached: Documents,
    cached_bytes: u64,
    pub violations: Vec<Violation>,
}

/// One entry of the manifest's list of files.
pub(super) struct Row {
    pub index: usize,
    pub path: String,
    pub kind: String,
}

impl<'d> Session<'d> {
    pub(super) fn new(dir: &'d Dir, manifest: Json, bytes: Vec<u8>) -> Self {
        Self {
            dir,
            manifest,
            listed: BTreeSet::new(),
            hashes: BTreeMap::new(),
            cached_bytes: bytes.len() as u64,
            cached: Documents::from([(MANIFEST_PATH.to_owned(), bytes)]),
            violations: Vec::new(),
        }
    }

    pub(super) fn add(
        &mut self,
        code: ViolationCode,
        path: impl Into<String>,
        file: Option<&str>,
        message: impl Into<String>,
    ) {
        self.violations.push(Violation {
            code,
            path: path.into(),
            message: message.into(),
            file: file.map(str::to_owned),
            details: None,
        });
    }

    pub(super) fn is_listed(&self, path: &str) -> bool {
        self.listed.contains(path)
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        let files = self.manifest.get("files").and_then(Json::as_array);
        files
            .unwrap_or_default()
            .iter()
            .enumerate()
            .map(|(index, row)| Row {
                index,
                path: text(row, "path").unwrap_or_default().to_owned(),
                kind: text(row, "kind").unwrap_or_default().to_owned(),
            })
            .collect()
    }

    fn row_json(&self, index: usize) -> Option<&Json> {
        self.manifest.get("files")?.as_array()?.get(index)
    }

    /// Returns the paths of the listed files of this kind, without those whose path is invalid.
    pub(super) fn of_kind(&self, kind: &str) -> Vec<String> {
        self.rows()
            .into_iter()
            .filter(|row| row.kind == kind && path_fault(&row.path).is_none())
            .map(|row| row.path)
            .collect()
    }

    /// Checks paths, types and hashes of the listed files, and that every file is listed.
    pub(super) fn check_files(&mut self) {
        for row in self.rows() {
            let field = format!("manifest.files[{}].path", row.index);
            if let Some(fault) = path_fault(&row.path) {
                self.add(ViolationCode::InvalidPath, field, Some(&row.path), fault);
                continue;
            }
            if !self.listed.insert(row.path.clone()) {
                let message = format!("{:?} is listed twice", row.path);
                let code = ViolationCode::InvalidManifestShape;
                self.add(code, &field, Some(&row.path), message);
            }
            self.check_viewer(&row);
            self.check_topology(&field, &row.path);
        }
        if !self.listed.contains(MANIFEST_PATH) {
            let message = "manifest.json must list itself";
            let code = ViolationCode::InvalidManifestShape;
            self.add(code, "manifest.files", Some(MANIFEST_PATH), message);
        }
        self.check_orphans();
        let mut total = 0;
        for row in self.rows() {
            if path_fault(&row.path).is_none() {
                self.check_hash(&row, &mut total);
            }
        }
    }

    fn check_viewer(&mut self, row: &Row) {
        let base = self
            .row_json(row.index)
            .and_then(|r| r.get("viewer"))
            .and_then(|viewer| text(viewer, "base"))
            .map(str::to_owned);
        if let Some(base) = base {
            let field = format!("manifest.files[{}].viewer.base", row.index);
            self.check_url(&field, &row.path, &base);
        }
    }

    pub(super) fn check_url(&mut self, field: &str, file: &str, url: &str) {
        let (code, message) = match url_fault(url) {
            None => return,
            Some(UrlFault::Malformed) => (
                ViolationCode::MalformedReference,
                "the address for the reviewer is not a URL",
            ),
            Some(UrlFault::NotPublic) => (
                ViolationCode::UnsafeFile,
                "a reviewer may only be sent to a public http or https address",
            ),
        };
        self.add(code, field, Some(file), message);
    }

    fn check_topology(&mut self, field: &str, path: &str) {
        let (code, message) = match self.dir.stat_path(path.as_bytes()) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile => {
                (ViolationCode::MissingFile, "is not a regular file")
            }
            Ok(stat) if stat.st_nlink > 1 => {
                let message = format!(
                    "{path:?} has {} hard links, but may have only one",
                    stat.st_nlink
                );
                self.add(ViolationCode::Hardlink, field, Some(path), message);
                let mut details = serde_json::Map::new();
                details.insert("links".to_owned(), stat.st_nlink.into());
                if let Some(last) = self.violations.last_mut() {
                    last.details = Some(details);
                }
                return;
            }
            Ok(_) => return,
            Err(Errno::LOOP | Errno::XDEV) => (
                ViolationCode::UnsafeFile,
                "is reached through a link or another file system",
            ),
            Err(_) => (ViolationCode::MissingFile, "is missing"),
        };
        self.add(code, field, Some(path), format!("{path:?} {message}"));
    }

    fn check_orphans(&mut self) {
        let mut found = Vec::new();
        let mut pending = vec![(Vec::new(), 0)];
        let mut seen = 0;
        while let Some((at, depth)) = pending.pop() {
            let opened: Result<Dir, Errno> = if at.is_empty() {
                self.dir.dir(b".")
            } else {
                self.dir.dir(&at)
            };
            let Ok(names) = opened.as_ref().map_err(|e| *e).and_then(Dir::names) else {
                found.push((quote_name(&at), "cannot be read"));
                continue;
            };
            let Ok(dir) = opened else { continue };
            for name in names {
                seen += 1;
                let path = join(&at, &name);
                let directory = dir.stat(&name).ok().flatten().is_some_and(|stat| {
                    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
                });
                if seen > MAX_ENTRIES || depth > MAX_DEPTH {
                    found.push((
                        quote_name(&path),
                        "is beyond the limit of files or directory levels of a bundle",
                    ));
                    pending.clear();
                    break;
                }
                if directory {
                    pending.push((path, depth + 1));
                } else if !std::str::from_utf8(&path).is_ok_and(|p| self.listed.contains(p)) {
                    found.push((quote_name(&path), "is not listed in manifest.json"));
                }
            }
        }
        found.sort();
        for (path, message) in found {
            let message = format!("{path:?} {message}");
            self.add(ViolationCode::OrphanedFile, &path, Some(&path), message);
        }
    }

    fn check_hash(&mut self, row: &Row, total: &mut u64) {
        let field = format!("manifest.files[{}].sha256", row.index);
        let path = row.path.as_str();
        let stated = self
            .row_json(row.index)
            .and_then(|r| digest(r.get("sha256")))
            .map(str::to_owned);
        let computed = if path == MANIFEST_PATH {
            manifest_self_hash(&self.manifest, MANIFEST_PATH, OverLimit::Drop).ok()
        } else if let Some(known) = self.hashes.get(path) {
            Some(known.clone())
        } else {
            let hash = self.hash_file(path, is_cached(row), total).ok();
            if let Some(hash) = &hash {
                self.hashes.insert(path.to_owned(), hash.clone());
            }
            hash
        };
        let Some(stated) = stated else {
            let message = format!("{path:?} needs a sha256 of 64 lowercase hex digits");
            self.add(ViolationCode::MissingFileHash, field, Some(path), message);
            return;
        };
        let message = match computed {
            Some(hash) if hash.as_str() == stated => return,
            Some(hash) => format!("{path:?} has the hash {hash}, not {stated}"),
            None => format!("{path:?} could not be hashed: it is unreadable or too large"),
        };
        self.add(ViolationCode::FileHashMismatch, field, Some(path), message);
    }

    fn hash_file(&mut self, path: &str, keep: bool, total: &mut u64) -> Result<Sha256Hex, Errno> {
        let (fd, stat) = self.dir.open_file(path.as_bytes())?;
        let size = crate::dirfd::size_of(&stat);
        let keep = keep && size <= MAX_DOCUMENT && self.cached_bytes + size <= MAX_CACHED;
        let mut cached = Vec::new();
        let mut hasher = Sha256::new();
        read_pieces(&fd, |piece| {
            *total += piece.len() as u64;
            if *total > MAX_TOTAL || keep && cached.len() as u64 > MAX_DOCUMENT {
                return Err(Errno::FBIG);
            }
            hasher.update(piece);
            if keep {
                cached.extend_from_slice(piece);
            }
            Ok(())
        })?;
        if keep {
            self.cached_bytes += cached.len() as u64;
            self.cached.insert(path.to_owned(), cached);
        }
        Ok(Sha256Hex::from_bytes(&hasher.finalize().into()))
    }

    /// Returns the contents of a file. If an earlier check hashed the file and its contents have
    /// another hash now, returns `None`.
    pub(super) fn document(&mut self, path: &str) -> Option<Vec<u8>> {
        if let Some(bytes) = self.cached.get(path) {
            return Some(bytes.clone());
        }
        let (outcome, _) = self.dir.read(path.as_bytes(), MAX_DOCUMENT).ok()?;
        let ReadOutcome::Bytes(bytes) = outcome else {
            return None;
        };
        match self.hashes.get(path) {
            Some(hash) if sha256(&bytes) != *hash => None,
            _ => Some(bytes),
        }
    }

    /// Checks that the content digest is that of its inputs, and that the bundle id contains it.
    pub(super) fn check_identity(&mut self) {
        let Some(content) = self.manifest.get("contentDigest").cloned() else {
            return;
        };
        let stated = text(&content, "value").unwrap_or_default().to_owned();
        let inputs: Vec<String> = content
            .get("inputs")
            .and_then(Json::as_array)
            .unwrap_or_default()
            .iter()
            .filter_map(|input| input.as_str().map(str::to_owned))
            .collect();
        self.check_content(&inputs, &stated);
        let id = text(&self.manifest, "id").unwrap_or_default();
        let differs = id
            .strip_prefix("artifact-bundle-sha256-")
            .is_some_and(|value| value != stated);
        if differs {
            let message = "the bundle's \"id\" does not match \"contentDigest.value\"";
            self.add(
                ViolationCode::BundleIdMismatch,
                "manifest.id",
                None,
                message,
            );
        }
    }

    fn check_content(&mut self, inputs: &[String], stated: &str) {
        const LIST: &str = "manifest.files";
        for (index, input) in inputs.iter().enumerate().filter(|(_, i)| *i != LIST) {
            let field = format!("manifest.contentDigest.inputs[{index}]");
            if !self.check_reference(&field, input) {
                return;
            }
        }
        let field = "manifest.contentDigest.value";
        if Sha256Hex::new(stated).is_err() {
            let message = "\"contentDigest.value\" must be 64 lowercase hex digits";
            self.add(ViolationCode::InvalidManifestShape, field, None, message);
            return;
        }
        let computed = if inputs == [LIST] {
            let files = self.manifest.get("files").and_then(Json::as_array);
            file_list_digest(files.unwrap_or_default(), OverLimit::Drop).ok()
        } else {
            let contents: Option<Vec<Vec<u8>>> =
                inputs.iter().map(|input| self.document(input)).collect();
            contents.map(|contents| {
                let pairs: Vec<(&str, &[u8])> = inputs
                    .iter()
                    .map(String::as_str)
                    .zip(contents.iter().map(Vec::as_slice))
                    .collect();
                content_digest(&pairs).value
            })
        };
        let message = match computed {
            Some(value) if value.as_str() == stated => return,
            Some(value) => format!("the inputs have the digest {value}, not {stated}"),
            None => "an input of the content digest could not be read".to_owned(),
        };
        self.add(ViolationCode::DigestMismatch, field, None, message);
    }

    /// Returns whether `reference`, a path in a document of the bundle, is valid and listed in the
    /// manifest. Adds a violation for `field` otherwise.
    pub(super) fn check_reference(&mut self, field: &str, reference: &str) -> bool {
        if let Some(fault) = path_fault(reference) {
            self.add(ViolationCode::InvalidPath, field, Some(reference), fault);
            return false;
        }
        if !self.is_listed(reference) {
            let message = format!("{reference:?} is not listed in manifest.json");
            self.add(
                ViolationCode::MalformedReference,
                field,
                Some(reference),
                message,
            );
            return false;
        }
        true
    }

    /// Returns the hash of the bytes of a listed file. For `manifest.json` this is not the hash in
    /// the manifest's own entry, which is computed with that entry's hash blanked.
    pub(super) fn file_hash(&mut self, path: &str) -> Option<Sha256Hex> {
        if let Some(hash) = self.hashes.get(path) {
            return Some(hash.clone());
        }
        self.document(path).map(|bytes| sha256(&bytes))
    }

    /// Adds a violation unless the file has the hash that a document states for it.
    pub(super) fn check_referenced_hash(&mut self, field: &str, path: &str, stated: Option<&str>) {
        let Some(stated) = stated else {
            let message = format!("the reference to {path:?} needs a \"sha256\"");
            self.add(ViolationCode::MissingFileHash, field, Some(path), message);
            return;
        };
        if self
            .file_hash(path)
            .is_none_or(|hash| hash.as_str() != stated)
        {
            let message =
                format!("{path:?} does not have the hash that the document referring to it states");
            self.add(ViolationCode::FileHashMismatch, field, Some(path), message);
        }
    }
}

/// Returns whether the contents of this file are kept in memory, because a later rule or an apply
/// reads them.
fn is_cached(row: &Row) -> bool {
    const KINDS: [&str; 13] = [
        "metadata",
        "review",
        "changed-files",
        "patch",
        "diff",
        "attestation",
        "runtime-episode-trace",
        "runtime-reference-manifest",
        "runtime-replay-index",
        "typed-artifacts-index",
        "tool-call-transcript",
        "wasi-tools",
        PHP_SYNTAX_KIND,
    ];
    const PATHS: [&str; 4] = [
        "metadata.json",
        "files/review.json",
        "files/changed-files.json",
        "files/patch.diff",
    ];
    KINDS.contains(&row.kind.as_str()) || PATHS.contains(&row.path.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_that_changed_after_it_was_hashed_is_not_read_as_a_document() {
        let bundle = tempfile::tempdir().unwrap();
        let dir = Dir::open(bundle.path()).unwrap();
        let mut session = Session::new(&dir, Json::Null, Vec::new());
        std::fs::write(bundle.path().join("review.json"), "{}").unwrap();
        let hash = sha256(b"{}");
        session.hashes.insert("review.json".to_owned(), hash);
        assert_eq!(session.document("review.json"), Some(b"{}".to_vec()));
        std::fs::write(bundle.path().join("review.json"), "[]").unwrap();
        assert_eq!(session.document("review.json"), None);
    }
}
