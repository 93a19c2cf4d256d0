//! Creation of snapshots.

use super::document::{DOCUMENT, digest, list_name, verify};
use super::error::io;
use super::{SNAPSHOT_SEMANTICS, SnapshotError, SnapshotStore, UNFINISHED, lock};
use crate::now_rfc3339;
use rustix::fd::BorrowedFd;
use rustix::fs::{FlockOperation, Mode, OFlags};
use serde_json::{Map, Value};
use std::fs;
use std::io::{BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use wp_codebox_artifacts::{
    CaptureLimits, Durability, SnapshotEntry, remove_tree, sha256, snapshot_layer,
};
use wp_codebox_contracts::{
    RunId, SandboxSnapshot, Sha256Hex, SiteId, SnapshotLayer, SnapshotMount, SnapshotTemplate, hex,
    schema_id,
};

/// Data that describe a new snapshot. Its files are passed separately.
#[derive(Debug, Clone)]
pub struct SnapshotFacts {
    /// Name of the snapshot, which its creator chooses.
    pub name: String,
    /// User or program that requested the snapshot.
    pub actor: String,
    /// Id of the run that the sandbox belongs to.
    pub run_id: RunId,
    /// Site that the sandbox belongs to.
    pub site: SiteId,
    /// Prepared WordPress from which the guest was started. The snapshot contains only differences
    /// from it.
    pub template: SnapshotTemplate,
    /// Mounts of the sandbox, as the snapshot's document describes them.
    pub mounts: Vec<SnapshotMount>,
    /// Metadata that the caller attached to the snapshot.
    pub metadata: Map<String, Value>,
}

/// An overlay of the guest whose upper directory is copied into the snapshot.
#[derive(Debug, Clone)]
pub struct LayerSource<'f> {
    /// Name of the layer: `content` for `wp-content`, otherwise `mount-<index of the mount>`.
    pub name: String,
    /// Upper directory of the overlay, which contains the guest's changes.
    pub upper: BorrowedFd<'f>,
    /// Layer of the same name in the snapshot from which the guest was started; `None` if it was
    /// started without a snapshot.
    pub below: Option<BorrowedFd<'f>>,
}

impl SnapshotStore {
    /// Creates a snapshot of the overlays `sources`. Syncs it to disk if `durability` says so, then
    /// reads its files back and compares them with the digests of what was read from the guest. On
    /// an error, removes the files of the snapshot.
    pub fn keep(
        &self,
        facts: SnapshotFacts,
        sources: &[LayerSource<'_>],
        durability: Durability,
    ) -> Result<SandboxSnapshot, SnapshotError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.root)
            .map_err(io("create the directory of the snapshots"))?;
        let id = new_id()?;
        let unfinished = self.root.join(format!("{UNFINISHED}{id}"));
        let made = self.make(&unfinished, id, facts, sources, durability);
        if made.is_err() {
            // If this removal fails, a later garbage collection removes the directory, whose lock
            // `make` has released.
            let _ = remove_tree(&unfinished);
        }
        made
    }

    fn make(
        &self,
        at: &Path,
        id: String,
        facts: SnapshotFacts,
        sources: &[LayerSource<'_>],
        durability: Durability,
    ) -> Result<SandboxSnapshot, SnapshotError> {
        let make = io("make the snapshot's directory");
        fs::DirBuilder::new()
            .mode(0o700)
            .create(at)
            .map_err(&make)?;
        let lock = lock(at, FlockOperation::NonBlockingLockExclusive)?;
        let mut layers = Vec::new();
        for source in sources {
            layers.push(layer(at, source)?);
        }
        let SnapshotFacts {
            name,
            actor,
            run_id,
            site,
            template,
            mounts,
            metadata,
        } = facts;
        let mut snapshot = SandboxSnapshot {
            schema: schema_id::SANDBOX_SNAPSHOT.to_owned(),
            id: id.clone(),
            name,
            created_at: now_rfc3339(),
            actor,
            run_id,
            site,
            semantics: SNAPSHOT_SEMANTICS.to_owned(),
            template,
            mounts,
            total_bytes: layers.iter().map(|layer| layer.bytes).sum(),
            layers,
            metadata,
            digest: sha256(b""),
        };
        snapshot.digest =
            digest(&snapshot).map_err(|e| SnapshotError::Metadata { why: e.to_string() })?;
        let text = serde_json::to_vec_pretty(&snapshot)
            .map_err(|e| SnapshotError::Metadata { why: e.to_string() })?;
        write_file(&at.join(DOCUMENT), &text)?;
        let sync = io("sync the snapshot to disk");
        if durability == Durability::Synced {
            rustix::fs::syncfs(&lock).map_err(|e| sync(e.into()))?;
        }
        // Reads all files of the snapshot back and compares them with the digests in its lists.
        verify(at, &id)?;
        fs::rename(at, self.root.join(&id)).map_err(io("rename the snapshot to its final name"))?;
        if durability == Durability::Synced {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let root = rustix::fs::open(&self.root, flags, Mode::empty());
            root.and_then(rustix::fs::fsync)
                .map_err(|e| sync(e.into()))?;
        }
        Ok(snapshot)
    }
}

fn layer(at: &Path, source: &LayerSource<'_>) -> Result<SnapshotLayer, SnapshotError> {
    let make = io("make a layer of the snapshot");
    let path = at.join(&source.name);
    fs::DirBuilder::new()
        .mode(0o700)
        .create(&path)
        .map_err(&make)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let to = rustix::fs::open(&path, flags, Mode::empty()).map_err(|e| make(e.into()))?;
    let limits = CaptureLimits::TREE;
    let kept = snapshot_layer(source.upper, source.below, to.as_fd(), &limits)?;
    Ok(SnapshotLayer {
        name: source.name.clone(),
        entries: kept.entries.len() as u64,
        list_sha256: write_list(&at.join(list_name(&source.name)), &kept.entries)?,
        bytes: kept.bytes,
        left_out: kept.left_out.len() as u64,
    })
}

fn write_list(path: &Path, entries: &[SnapshotEntry]) -> Result<Sha256Hex, SnapshotError> {
    let mut bytes = Vec::new();
    for entry in entries {
        serde_json::to_writer(&mut bytes, entry)
            .map_err(|e| io("write a list of the snapshot")(e.into()))?;
        bytes.push(b'\n');
    }
    write_file(path, &bytes)?;
    Ok(sha256(&bytes))
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), SnapshotError> {
    let write = io("write a file of the snapshot");
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    let mut file = BufWriter::new(file.map_err(&write)?);
    file.write_all(bytes)
        .and_then(|()| file.flush())
        .map_err(&write)
}

fn new_id() -> Result<String, SnapshotError> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|e| io("get random numbers")(e.into()))?;
    Ok(format!("snap_{}", hex(&bytes)))
}
