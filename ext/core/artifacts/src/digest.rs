//! The digests of a bundle, and the exact bytes that each covers.
//!
//! Every digest is SHA-256 over a line that names its kind, followed by the data, as other
//! implementations of the format compute it (docs/decisions/05-bundle-with-canonical-digests.md).
//! The caller decides with [`OverLimit`] how values beyond the limits of canonical JSON are
//! treated.

use crate::canonical::{CanonicalError, OverLimit, canonical_json};
use crate::dirfd::read_pieces;
use crate::json::Json;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::io::{ErrorKind, Read};
use wp_codebox_contracts::{ContentDigest, DigestAlgorithm, Sha256Hex};

/// The two files whose bytes give the id of a bundle that this crate writes.
pub const CONTENT_INPUTS: [&str; 2] = ["files/changed-files.json", "files/patch.diff"];
/// Maximum size of a bundle document that is read into memory, in bytes.
pub(crate) const MAX_DOCUMENT: u64 = 64 * 1024 * 1024;
const CONTENT_PREFIX: &str = "wp-codebox/artifact-content/v1\n";
const FILE_LIST_PREFIX: &str = "wp-codebox/artifact-manifest-file-list/v1\n";
const ATTESTED_PREFIX: &str = "wp-codebox/artifact-manifest-attested/v1\n";
const SELF_PREFIX: &str = "wp-codebox/artifact-manifest-self/v1\n";
const REFERENCE_PREFIX: &str = "wp-codebox/runtime-reference-manifest/v1\n";
const REPLAY_PREFIX: &str = "wp-codebox/runtime-replay-reference-index/v1\n";
const EPISODE_PREFIX: &str = "wp-codebox/runtime-episode-trace/v1\n";

/// Returns the SHA-256 of a byte string.
#[must_use]
pub fn sha256(bytes: &[u8]) -> Sha256Hex {
    Sha256Hex::from_bytes(&Sha256::digest(bytes).into())
}

/// Returns the SHA-256 of an open file from its current position on.
pub fn sha256_of_file(fd: &OwnedFd) -> Result<Sha256Hex, Errno> {
    let mut hasher = Sha256::new();
    read_pieces(fd, |piece| {
        hasher.update(piece);
        Ok(())
    })?;
    Ok(Sha256Hex::from_bytes(&hasher.finalize().into()))
}

/// Returns the SHA-256 of everything a reader provides.
pub(crate) fn sha256_of(mut content: impl Read) -> std::io::Result<Sha256Hex> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match content.read(&mut buffer) {
            Ok(0) => return Ok(Sha256Hex::from_bytes(&hasher.finalize().into())),
            Ok(count) => hasher.update(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the SHA-256 of a line that names the kind of digest, followed by the value as canonical
/// JSON.
fn prefixed(prefix: &str, value: &Json, over: OverLimit) -> Result<Sha256Hex, CanonicalError> {
    let text = canonical_json(value, over)?;
    let hasher = Sha256::new().chain_update(prefix).chain_update(text);
    Ok(Sha256Hex::from_bytes(&hasher.finalize().into()))
}

/// Returns the content digest (version 1) over pairs of path and content, in the given order.
#[must_use]
pub fn content_digest(inputs: &[(&str, &[u8])]) -> ContentDigest {
    let mut hasher = Sha256::new();
    hasher.update(CONTENT_PREFIX);
    for (index, (path, bytes)) in inputs.iter().enumerate() {
        if index > 0 {
            hasher.update("\n");
        }
        hasher.update(path);
        hasher.update("\n");
        hasher.update(bytes);
    }
    ContentDigest {
        algorithm: DigestAlgorithm::Sha256,
        inputs: inputs.iter().map(|(path, _)| (*path).to_owned()).collect(),
        value: Sha256Hex::from_bytes(&hasher.finalize().into()),
    }
}

/// Returns the digest over a manifest's list of files without their hashes. Another public
/// implementation of the format derives bundle ids from this digest. This crate verifies such ids
/// and signs the digest, but derives the ids of its own bundles from the content digest.
pub fn file_list_digest(files: &[Json], over: OverLimit) -> Result<Sha256Hex, CanonicalError> {
    const KEPT: [&str; 6] = [
        "path",
        "kind",
        "contentType",
        "redaction",
        "provenance",
        "viewer",
    ];
    let rows = files.iter().map(|file| pick(file, &KEPT)).collect();
    prefixed(FILE_LIST_PREFIX, &Json::Array(rows), over)
}

/// Returns the hash of the manifest that the signed statement contains. The caller names in
/// `without` the files of the signature and of the manifest itself: their entries are left out,
/// because their hashes depend on the signature. The hash covers everything else, also unknown
/// keys.
pub(crate) fn attested_manifest_digest(
    manifest: &Json,
    without: &[&str],
) -> Result<Sha256Hex, CanonicalError> {
    let copy = with_files(manifest, |entries| {
        entries.retain(|entry| !is_of(entry, without));
    });
    prefixed(ATTESTED_PREFIX, &copy, OverLimit::Refuse)
}

/// Returns a copy of the manifest with a modified file list.
fn with_files(manifest: &Json, change: impl Fn(&mut Vec<Json>)) -> Json {
    let mut copy = manifest.clone();
    if let Json::Object(members) = &mut copy {
        for (key, files) in members {
            if let (Some("files"), Json::Array(entries)) = (key.as_str(), files) {
                change(entries);
            }
        }
    }
    copy
}

/// Returns whether a manifest entry describes one of the files `paths`.
pub(crate) fn is_of(entry: &Json, paths: &[&str]) -> bool {
    let path = entry.get("path").and_then(Json::as_str);
    path.is_some_and(|path| paths.contains(&path))
}

/// Returns the hash of a manifest in which zeros replace the hash in the manifest's own entry.
pub fn manifest_self_hash(
    manifest: &Json,
    manifest_path: &str,
    over: OverLimit,
) -> Result<Sha256Hex, CanonicalError> {
    let copy = with_files(manifest, |entries| {
        let own = entries
            .iter_mut()
            .filter(|entry| is_of(entry, &[manifest_path]));
        own.for_each(blank_hash);
    });
    prefixed(SELF_PREFIX, &copy, over)
}

fn blank_hash(entry: &mut Json) {
    let zero = Json::Object(vec![
        ("algorithm".into(), Json::String("sha256".into())),
        (
            "value".into(),
            Json::String(Sha256Hex::zero().as_str().into()),
        ),
    ]);
    if let Json::Object(members) = entry {
        match members
            .iter_mut()
            .find(|(k, _)| k.as_str() == Some("sha256"))
        {
            Some((_, value)) => *value = zero,
            None => members.push(("sha256".into(), zero)),
        }
    }
}

/// Computes `digest.value` of a runtime reference manifest
/// (`files/runtime-reference-manifest.json`).
pub fn reference_manifest_digest(
    document: &Json,
    over: OverLimit,
) -> Result<Sha256Hex, CanonicalError> {
    const KEPT: [&str; 8] = [
        "schema",
        "version",
        "runtime",
        "artifactBundle",
        "files",
        "trace",
        "events",
        "snapshots",
    ];
    prefixed(REFERENCE_PREFIX, &pick(document, &KEPT), over)
}

/// Computes `digest.value` of a replay reference index (`files/runtime-replay-index.json`).
pub fn replay_index_digest(document: &Json, over: OverLimit) -> Result<Sha256Hex, CanonicalError> {
    const KEPT: [&str; 9] = [
        "schema",
        "version",
        "runtime",
        "artifactBundle",
        "references",
        "actions",
        "observations",
        "snapshots",
        "replay",
    ];
    prefixed(REPLAY_PREFIX, &pick(document, &KEPT), over)
}

/// Returns the digest of one part of an episode trace.
pub(crate) fn episode_digest(payload: &Json, over: OverLimit) -> Result<Sha256Hex, CanonicalError> {
    prefixed(EPISODE_PREFIX, payload, over)
}

/// Returns a copy of the object that contains only the named members, as far as they exist.
pub(crate) fn pick(object: &Json, keys: &[&str]) -> Json {
    Json::Object(
        keys.iter()
            .filter_map(|key| object.get(key).map(|value| ((*key).into(), value.clone())))
            .collect(),
    )
}
