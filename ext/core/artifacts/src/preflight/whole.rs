//! The whole change of a bundle that this host made: contents of each file before and after it.
//!
//! Invariants: the bundle verifies, is signed with this host's key, and its review permits the
//! approval of its change. Every document that is read has the hash in the signed manifest.

use super::error::{Conflict, PreflightError};
use super::{Preflight, PreflightRequest, accepted, base, check_approvable, member, reduced};
use crate::attestation::{PublicKey, TrustedKeys};
use crate::capture::MountChanges;
use crate::changed_files::{raw_relative, read_changed_files};
use crate::digest::{CONTENT_INPUTS, MAX_DOCUMENT, sha256};
use crate::dirfd::{Dir, ReadOutcome};
use crate::verify::{VerifyOptions, verify_keeping};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use wp_codebox_contracts::{ChangedFile, ErrorCode, GuestPath};

/// A verified bundle of this host with its whole change.
#[derive(Debug)]
pub struct WholeBundle {
    preflight: Preflight,
    directory: Dir,
}

/// Verifies a bundle and reads its whole change. `host` has the public keys of this host; a bundle
/// with another signature or none is refused, and so is one whose change may not be approved. A
/// bundle without changes is accepted.
pub fn whole_bundle(directory: Dir, host: Vec<PublicKey>) -> Result<WholeBundle, PreflightError> {
    let trusted = TrustedKeys {
        host,
        known: Vec::new(),
    };
    let options = VerifyOptions {
        trusted: trusted.clone(),
    };
    let verified = verify_keeping(&directory, &options);
    let request = PreflightRequest {
        trusted,
        ..PreflightRequest::default()
    };
    let manifest = accepted(&verified.verification, &request)?;
    let files = read_changed_files(member(&verified.documents, CONTENT_INPUTS[0])?)?.files;
    match check_approvable(&verified.documents) {
        // The review of a run without changes forbids an approval and states no code, for which
        // `check_approvable` returns this code. Such a bundle is accepted here.
        Err(PreflightError::NotApprovable {
            code: ErrorCode::ApprovedFilesInvalid,
            ..
        }) if files.is_empty() => {}
        result => result?,
    }
    let mut approved: Vec<&ChangedFile> = files.iter().collect();
    approved.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(WholeBundle {
        preflight: reduced(verified, manifest, &approved)?,
        directory,
    })
}

impl WholeBundle {
    /// Returns ids, changed files and patches of the bundle, as for an apply of all files.
    #[must_use]
    pub const fn preflight(&self) -> &Preflight {
        &self.preflight
    }

    /// Reads a file of the bundle, e.g. `files/transcript.json`. Returns `None` if the bundle has
    /// no such file. A file whose contents no longer have the hash in the manifest is an error.
    pub fn document(&self, member: &str) -> Result<Option<Vec<u8>>, PreflightError> {
        let Some(stated) = self.stated_hash(member) else {
            return Ok(None);
        };
        match self.directory.read(member.as_bytes(), MAX_DOCUMENT) {
            Ok((ReadOutcome::Bytes(bytes), _)) if sha256(&bytes).as_str() == stated => {
                Ok(Some(bytes))
            }
            Ok(_) | Err(_) => Err(PreflightError::Changed),
        }
    }

    /// Returns the hash that the manifest states for a file of the bundle.
    fn stated_hash(&self, member: &str) -> Option<&str> {
        let manifest = self.preflight.verification.manifest.as_ref()?;
        let rows = manifest.get("files")?.as_array()?;
        let row = rows
            .iter()
            .find(|row| row.get("path").and_then(Value::as_str) == Some(member))?;
        row.get("sha256")?.get("value")?.as_str()
    }

    /// Returns the changes of each mount, keyed by its guest path. `targets` are the host
    /// directories of the mounts. If files in them differ from their state before the bundle's run,
    /// returns [`PreflightError::Conflict`], which lists them.
    pub fn changes(
        &self,
        targets: &BTreeMap<String, PathBuf>,
    ) -> Result<BTreeMap<GuestPath, MountChanges>, PreflightError> {
        let files = &self.preflight.changed_files;
        base::check(&files.iter().collect::<Vec<_>>(), files, targets)?;
        let mut changes = BTreeMap::new();
        let mut conflicts = Vec::new();
        for patch in &self.preflight.mount_patches {
            let target = &patch.mount_target;
            let Some(directory) = targets.get(target.as_str()) else {
                return Err(PreflightError::NoDirectory {
                    mount: target.to_string(),
                });
            };
            let found = self.preflight.changes(patch, directory)?;
            conflicts.extend(other_modes(files, patch.mount_index, &found));
            changes.insert(target.clone(), found);
        }
        match conflicts.first() {
            None => Ok(changes),
            Some(first) => Err(PreflightError::Conflict {
                count: conflicts.len(),
                first: first.path.clone(),
                conflicts,
            }),
        }
    }
}

/// Returns the files whose executable bit differs from the state before the run. Files with other
/// contents were refused before.
fn other_modes(files: &[ChangedFile], mount: usize, found: &MountChanges) -> Vec<Conflict> {
    let differs = |file: &&ChangedFile| {
        let path = raw_relative(file);
        // The entries are sorted by path.
        let entry = found
            .entries
            .binary_search_by(|entry| entry.path.cmp(&path));
        let entry = entry.ok().and_then(|at| found.entries.get(at));
        let mode = entry.and_then(|entry| Some(entry.change.before()?.git_mode()));
        file.before_mode.is_some() && mode.is_some() && mode != file.before_mode.as_deref()
    };
    let files = files.iter().filter(|file| file.mount_index == mount);
    let differing = files.filter(differs);
    differing
        .map(|file| Conflict {
            path: file.path.clone(),
            reason: "another mode",
        })
        .collect()
}
