//! Writing of bundles.
//!
//! Invariants: a bundle appears complete or not at all (temporary sibling, sync, rename). The
//! manifest is ASCII and small enough that every implementation computes the same self hash. Free
//! text is redacted when the writer receives it; a secret in the patch is an error and never
//! edited. No host path is written. Equal inputs give equal bytes.

mod documents;
mod ends;
mod inputs;
mod mounts;
mod records;
mod references;
mod risky_paths;
mod secrets;
mod staging;
mod writer;

use crate::attestation::HostKey;
use crate::canonical::CanonicalError;
use serde_json::Value;
use wp_codebox_contracts::{BundleId, ChangedFile, ContentDigest, ErrorBody, ErrorCode, Sha256Hex};

pub use ends::{left_out, text_ends};
pub use inputs::{
    Approvable, ArtifactContent, ArtifactFile, BundleInputs, BundleMount, EpisodeFiles,
    EvidenceDocument, ExecutionRecord, RenameMode,
};
pub(crate) use records::{Scrubber, lines};
pub use secrets::{SecretLocation, find_secret};
pub(crate) use staging::{Staging, TEMPORARY_PREFIX, staging_prefix};
pub use writer::{write_bundle, write_bundle_as};

/// Signer of the bundle.
#[derive(Debug, Clone, Copy)]
pub enum BundleSigner<'a> {
    /// No signature: the bundle verifies as `unsigned`.
    Unsigned,
    /// Signed with the key of this host.
    Host(&'a HostKey),
}

/// Crash that a written bundle must survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A crash of the host: the bundle is synced before its rename.
    Synced,
    /// A crash of the writing process only.
    Unsynced,
}

/// A bundle written to disk.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenBundle {
    /// Id of the bundle.
    pub id: BundleId,
    /// Content digest, which identifies the bundle.
    pub content_digest: ContentDigest,
    /// SHA-256 of the manifest file, which an approval names.
    pub manifest_sha256: Sha256Hex,
    /// Entries of `files/changed-files.json`.
    pub changed_files: Vec<ChangedFile>,
    /// `files/completion-outcome.json`, or null.
    pub completion_outcome: Value,
    /// `files/agent-result.json`, or null.
    pub agent_result: Value,
    /// `files/transcript.json`, or null.
    pub transcript: Value,
    /// Sentences that describe omitted content.
    pub notices: Vec<String>,
}

/// Reason why a bundle could not be written. The writer removes partial files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// The patch contains a known secret.
    #[error("{path:?} line {line} contains a secret ({kind}); remove it and run again")]
    Secret {
        /// Path with the declared mount target.
        path: String,
        /// Line number in the file, counted from 1.
        line: u64,
        /// Kind of secret; never its value.
        kind: &'static str,
    },
    /// The disk is full.
    #[error("the disk is full; free some space, then run again")]
    NoSpace,
    /// Another I/O operation failed.
    #[error("{member} could not be written")]
    Io {
        /// Path of the member in the bundle.
        member: String,
        /// Error of the failed operation.
        #[source]
        source: rustix::io::Errno,
    },
    /// The patch is larger than verifiers accept.
    #[error(
        "the patch has {bytes} bytes, but a bundle may have at most {limit}; let the agent change less, or exclude generated files"
    )]
    PatchTooLarge {
        /// Size of the patch in bytes.
        bytes: u64,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// A text for the manifest is not ASCII.
    #[error(
        "the runtime's description must be ASCII: otherwise other implementations compute a different hash"
    )]
    NotAscii,
    /// A bundle of this run exists already.
    #[error("a bundle of this run exists already")]
    Exists,
    /// A document has no canonical form.
    #[error("{member} is too large for canonical JSON")]
    Canonical {
        /// Path of the member in the bundle.
        member: String,
        /// Error of the failed operation.
        #[source]
        source: CanonicalError,
    },
}

impl BundleError {
    /// Returns the stable error code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Secret { .. } => ErrorCode::SecretInPatch,
            Self::PatchTooLarge { .. } => ErrorCode::CaptureLimit,
            Self::NoSpace
            | Self::Io { .. }
            | Self::NotAscii
            | Self::Exists
            | Self::Canonical { .. } => ErrorCode::BundleWriteFailed,
        }
    }
    /// Returns the error as the body sent to callers.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        ErrorBody::new(self.code(), self.to_string())
    }
}
