//! Packs the result of a run on its node.

use super::error::ResultError;
use super::format::{Head, MAX_ARCHIVE, PAYLOAD_TYPE, SCHEMA, beginning, damaged};
use crate::names::{NodeName, RunKey};
use crate::record::End;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;
use wp_codebox_artifacts::{Dir, HostKey, VerifyOptions, sign_document, write_archive};
use wp_codebox_contracts::{Outcome, RunArtifacts, RunResult, Sha256Hex};

/// The claim under which a node ran a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Key of the run.
    pub key: RunKey,
    /// Epoch of the claim.
    pub epoch: u64,
    /// The node.
    pub node: NodeName,
    /// Digest of the task document.
    pub task: Sha256Hex,
}

/// A packed result in an unnamed temporary file.
#[derive(Debug)]
pub struct PackedResult {
    /// The object; the file position is at its beginning.
    pub file: File,
    /// SHA-256 of the object.
    pub sha256: Sha256Hex,
    /// Size of the object in bytes.
    pub bytes: u64,
    outcome: Outcome,
}

impl PackedResult {
    /// Returns the end of the run for its record.
    #[must_use]
    pub fn end(&self) -> End {
        End::Result {
            outcome: self.outcome,
            sha256: self.sha256.clone(),
            bytes: self.bytes,
        }
    }
}

/// Packs the node's answer and the run's bundle. `key` is the key that signed the bundle. Paths of the
/// node are left out.
///
/// # Errors
/// [`ResultError::Archive`] if the bundle is not valid, [`ResultError::Damaged`] for a result without
/// a bundle: the run then ends with an error in its record, because nothing would prove the result.
pub fn pack_result(
    claim: &Claim,
    result: &RunResult,
    bundle: &Dir,
    key: &HostKey,
    temporary: &Path,
) -> Result<PackedResult, ResultError> {
    let failed = |step| move |source| ResultError::Temporary { step, source };
    let mut result = result.clone();
    let Some(RunArtifacts { path, .. }) = &mut result.artifacts else {
        return Err(damaged("the run has no bundle"));
    };
    ".".clone_into(path);
    let outcome = result.outcome;
    let head = Head {
        schema: SCHEMA.to_owned(),
        submitter: claim.key.submitter.clone(),
        run: claim.key.run.clone(),
        epoch: claim.epoch,
        node: claim.node.clone(),
        task: claim.task.clone(),
        result,
    };
    let payload = serde_json::to_vec(&head).map_err(|e| damaged(&e.to_string()))?;
    let envelope = sign_document(key, PAYLOAD_TYPE, &payload);
    let file = tempfile::tempfile_in(temporary).map_err(failed("created"))?;
    let mut out = Hashed {
        file,
        hash: Sha256::new(),
        bytes: 0,
    };
    out.write_all(&beginning(&envelope)?)
        .map_err(failed("written"))?;
    let mut archive = GzEncoder::new(out, Compression::fast());
    write_archive(bundle, &VerifyOptions::default(), MAX_ARCHIVE, &mut archive)?;
    let mut out = archive.finish().map_err(failed("written"))?;
    out.file.rewind().map_err(failed("read"))?;
    Ok(PackedResult {
        file: out.file,
        sha256: Sha256Hex::from_bytes(&out.hash.finalize().into()),
        bytes: out.bytes,
        outcome,
    })
}

/// A file that counts and hashes what is written.
struct Hashed {
    file: File,
    hash: Sha256,
    bytes: u64,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.hash.update(bytes.get(..count).unwrap_or_default());
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}
