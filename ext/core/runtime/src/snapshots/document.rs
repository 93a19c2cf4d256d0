//! `snapshot.json`, the document that describes a snapshot, and the verification of the snapshot's
//! layers against the digests in it.

use super::error::{SnapshotError, io};
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use wp_codebox_artifacts::{
    CanonicalError, OverLimit, SnapshotEntry, canonical_value, sha256, verify_layer,
};
use wp_codebox_contracts::{SandboxSnapshot, Sha256Hex, schema_id};

/// Name of the file that describes a snapshot.
pub(super) const DOCUMENT: &str = "snapshot.json";
/// Maximum size of a snapshot's `snapshot.json`, in bytes.
const LARGEST_DOCUMENT: u64 = 1024 * 1024;
/// Maximum size of a layer's list of entries, in bytes; enough for half a million entries.
const LARGEST_LIST: u64 = 512 * 1024 * 1024;

/// Returns the name of the file with a layer's list of entries.
pub(super) fn list_name(layer: &str) -> String {
    format!("{layer}.jsonl")
}

/// Reads `snapshot.json` of a snapshot and verifies its digest.
pub(super) fn document(path: &Path, id: &str) -> Result<SandboxSnapshot, SnapshotError> {
    let invalid = |why: &str| SnapshotError::Invalid {
        id: id.to_owned(),
        why: why.to_owned(),
    };
    let bytes = read(&path.join(DOCUMENT), LARGEST_DOCUMENT).map_err(|error| match error {
        SnapshotError::Io { source, .. } if source.kind() == ErrorKind::NotFound => {
            invalid("its snapshot.json is missing")
        }
        error => error,
    })?;
    #[derive(serde::Deserialize)]
    struct Stated {
        schema: String,
    }
    let malformed = |e: serde_json::Error| invalid(&format!("its snapshot.json is invalid: {e}"));
    // The schema comes first: the other members of a newer document may be unknown.
    let Stated { schema } = serde_json::from_slice(&bytes).map_err(malformed)?;
    if schema != schema_id::SANDBOX_SNAPSHOT {
        let base = schema_id::SANDBOX_SNAPSHOT.trim_end_matches(|c: char| c.is_ascii_digit());
        let version = schema
            .strip_prefix(base)
            .and_then(|v| v.parse::<u32>().ok());
        return Err(match version {
            Some(_) => SnapshotError::Newer {
                id: id.to_owned(),
                schema,
            },
            None => invalid("its snapshot.json has an unknown schema"),
        });
    }
    let snapshot: SandboxSnapshot = serde_json::from_slice(&bytes).map_err(malformed)?;
    if snapshot.id != id {
        return Err(invalid("its snapshot.json has the id of another snapshot"));
    }
    if digest(&snapshot).ok().as_ref() != Some(&snapshot.digest) {
        return Err(invalid(
            "its snapshot.json does not have the digest that it states",
        ));
    }
    Ok(snapshot)
}

type Verified = (SandboxSnapshot, BTreeMap<String, OwnedFd>);

/// Verifies the document and all layers of a snapshot against their digests.
pub(super) fn verify(path: &Path, id: &str) -> Result<Verified, SnapshotError> {
    let snapshot = document(path, id)?;
    let invalid = |why: String| SnapshotError::Invalid {
        id: id.to_owned(),
        why,
    };
    let mut layers = BTreeMap::new();
    for layer in &snapshot.layers {
        let name = layer.name.as_str();
        // Document and digest may have been edited together, so even with a correct digest the name
        // of a layer could be a path that leads out of the snapshot.
        let plain = name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if name.is_empty() || !plain {
            return Err(invalid(format!("its layer name {name:?} is invalid")));
        }
        let bytes = read(&path.join(list_name(name)), LARGEST_LIST).map_err(|e| {
            invalid(format!(
                "the file list of its layer {name} cannot be read: {e}"
            ))
        })?;
        if sha256(&bytes) != layer.list_sha256 {
            return Err(invalid(format!(
                "the file list of its layer {name} was changed"
            )));
        }
        let entries = bytes
            .split(|b| *b == b'\n')
            .filter(|line| !line.is_empty())
            .map(serde_json::from_slice)
            .collect::<Result<Vec<SnapshotEntry>, _>>()
            .map_err(|e| invalid(format!("the file list of its layer {name} is invalid: {e}")))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path.join(name), flags, Mode::empty())
            .map_err(|e| invalid(format!("its layer {name} cannot be opened: {e}")))?;
        verify_layer(fd.as_fd(), &entries)
            .map_err(|e| invalid(format!("in its layer {name}, {e}")))?;
        layers.insert(name.to_owned(), fd);
    }
    Ok((snapshot, layers))
}

fn read(path: &Path, most: u64) -> Result<Vec<u8>, SnapshotError> {
    let failed = io("read a file of the snapshot");
    let mut options = fs::OpenOptions::new();
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = options.read(true).custom_flags(flags).open(path);
    let mut bytes = Vec::new();
    file.map_err(&failed)?
        .take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(&failed)?;
    if bytes.len() as u64 > most {
        return Err(failed(std::io::Error::other("the file is too large")));
    }
    Ok(bytes)
}

/// Returns the value of the document's member `digest`: SHA-256 over the schema id and all other
/// members.
pub(super) fn digest(snapshot: &SandboxSnapshot) -> Result<Sha256Hex, CanonicalError> {
    let mut value = serde_json::to_value(snapshot).unwrap_or_default();
    if let Some(members) = value.as_object_mut() {
        members.remove("digest");
    }
    let text = canonical_value(&value, OverLimit::Refuse)?;
    Ok(sha256(
        format!("{}\n{text}", schema_id::SANDBOX_SNAPSHOT).as_bytes(),
    ))
}
