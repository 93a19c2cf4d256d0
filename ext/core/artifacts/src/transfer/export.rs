//! Export of a bundle as a tar archive. Equal bundles give equal archives.

use crate::dirfd::{Dir, ReadOutcome};
use crate::verify::{Verification, VerifyOptions, verify_bundle};
use rustix::io::Errno;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::io::Write;
use tar::{Builder, EntryType, Header};
use wp_codebox_contracts::{CodedError, ErrorBody, Sha256Hex};

use super::members::MAX_TOTAL;

/// Reason why a bundle could not be exported.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(detail = Self::detail)]
pub enum ArchiveError {
    /// The bundle does not verify, so an import would refuse the archive.
    #[error(
        "the bundle is not valid (the first violation: {first}), so no host would import it; run the task again"
    )]
    #[code(ArtifactVerificationFailed)]
    Invalid {
        /// Path and description of the first violation.
        first: String,
        /// Result of verifying the bundle, with all violations.
        verification: Box<Verification>,
    },
    /// A file of the bundle changed or disappeared during the export.
    #[error(
        "the bundle's file {member} changed while the archive was written; export the bundle again"
    )]
    #[code(ArtifactChanged)]
    Changed {
        /// Path of the changed file in the bundle.
        member: String,
    },
    /// The archive exceeds the caller's limit, or one file exceeds the limit of imports.
    #[error(
        "the archive or a file in it exceeds the limit of {most} bytes; if the request set this limit, export to a file instead"
    )]
    #[code(ArtifactTooLarge)]
    TooLarge {
        /// The exceeded limit in bytes.
        most: u64,
    },
    /// The archive could not be written, or a file of the bundle could not be read.
    #[error(
        "the export could not read the bundle or write the archive: {source}; check permissions of both and free space for the archive"
    )]
    #[code(ArtifactExportFailed)]
    Write {
        /// I/O error of the failed write or read.
        #[source]
        source: std::io::Error,
    },
}

impl ArchiveError {
    fn detail(&self, body: ErrorBody) -> ErrorBody {
        match self {
            Self::Invalid { verification, .. } => {
                body.with("violations", json!(verification.violations))
            }
            _ => body,
        }
    }
}

/// Length and hash of an exported archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArchiveReport {
    /// Length of the archive in bytes.
    pub bytes: u64,
    /// SHA-256 of the archive; equal for equal bundles.
    pub sha256: Sha256Hex,
}

/// Verifies a bundle and writes an archive of it with at most `most` bytes. The files in the
/// archive are sorted, in a directory named after the bundle id, with mode 0644, owner 0 and time
/// 0.
pub fn write_archive(
    bundle: &Dir,
    options: &VerifyOptions,
    most: u64,
    out: impl Write,
) -> Result<ArchiveReport, ArchiveError> {
    let verification = verify_bundle(bundle, options);
    if let Some(first) = verification.violations.first() {
        return Err(ArchiveError::Invalid {
            first: first.to_string(),
            verification: Box::new(verification),
        });
    }
    let manifest = verification.manifest.unwrap_or_default();
    let top = manifest["id"].as_str().unwrap_or("bundle").to_owned();
    let mut members: Vec<&str> = manifest["files"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|file| file["path"].as_str())
        .collect();
    members.sort_unstable();
    let mut builder = Builder::new(Counting {
        out,
        most,
        written: 0,
        hash: Sha256::new(),
    });
    for member in members {
        let bytes = read(bundle, member, &manifest)?;
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        builder
            .append_data(&mut header, format!("{top}/{member}"), bytes.as_slice())
            .map_err(|source| failed(source, most))?;
    }
    let done = builder
        .into_inner()
        .map_err(|source| failed(source, most))?;
    Ok(ArchiveReport {
        bytes: done.written,
        sha256: Sha256Hex::from_bytes(&done.hash.finalize().into()),
    })
}

/// Returns the content of a file of the bundle if it has the hash in the verified manifest. The
/// hash in the manifest's own entry is not the hash of its bytes, so `manifest.json` is not
/// compared here; an import verifies it.
fn read(bundle: &Dir, member: &str, manifest: &Value) -> Result<Vec<u8>, ArchiveError> {
    let changed = || ArchiveError::Changed {
        member: member.to_owned(),
    };
    let bytes = match bundle.read(member.as_bytes(), MAX_TOTAL) {
        Ok((ReadOutcome::Bytes(bytes), _)) => bytes,
        Ok((ReadOutcome::TooLarge, _)) => {
            return Err(ArchiveError::TooLarge { most: MAX_TOTAL });
        }
        Err(Errno::NOENT | Errno::AGAIN) => return Err(changed()),
        Err(error) => {
            return Err(ArchiveError::Write {
                source: error.into(),
            });
        }
    };
    let stated = manifest["files"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|file| file["path"] == member)
        .and_then(|file| file["sha256"]["value"].as_str());
    if member == crate::attestation::MANIFEST_PATH
        || stated == Some(crate::digest::sha256(&bytes).as_str())
    {
        Ok(bytes)
    } else {
        Err(changed())
    }
}

fn failed(source: std::io::Error, most: u64) -> ArchiveError {
    match source.kind() {
        std::io::ErrorKind::FileTooLarge => ArchiveError::TooLarge { most },
        _ => ArchiveError::Write { source },
    }
}

/// Writer that counts and hashes the bytes and fails beyond the limit.
struct Counting<W> {
    out: W,
    most: u64,
    written: u64,
    hash: Sha256,
}

impl<W: Write> Write for Counting<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.written.saturating_add(bytes.len() as u64) > self.most {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        let count = self.out.write(bytes)?;
        self.hash.update(bytes.get(..count).unwrap_or_default());
        self.written += count as u64;
        Ok(count)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
