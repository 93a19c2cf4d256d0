//! Writing bundles.
//!
//! Invariants: a bundle appears whole or not at all (temporary sibling, sync, rename); the manifest
//! is ASCII and small enough that every implementation computes its self hash; free
//! text is redacted as it comes in, and a secret in the patch is an error, never an edit;
//! no host path is written; the same inputs give the same bytes.

mod documents;
mod ends;
mod inputs;
mod mounts;
mod place;
mod records;
mod references;
mod risky_paths;
mod secrets;
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
pub(crate) use place::{Staging, TEMPORARY_PREFIX, staging_prefix};
pub(crate) use records::{Scrubber, lines};
pub use secrets::{SecretLocation, find_secret};
pub use writer::{write_bundle, write_bundle_as};

/// Who signs.
#[derive(Debug, Clone, Copy)]
pub enum BundleSigner<'a> {
    /// Nobody: the bundle verifies as `unsigned`.
    Unsigned,
    /// This host.
    Host(&'a HostKey),
}

/// What a bundle outlives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The host: it is synced before it gets its name.
    Synced,
    /// The process that wrote it, no more.
    Unsynced,
}

/// A bundle on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenBundle {
    /// Its id.
    pub id: BundleId,
    /// Identity.
    pub content_digest: ContentDigest,
    /// sha256 of the manifest file: what an approval binds.
    pub manifest_sha256: Sha256Hex,
    /// Entries of `files/changed-files.json`.
    pub changed_files: Vec<ChangedFile>,
    /// `files/completion-outcome.json`, null when there is none.
    pub completion_outcome: Value,
    /// `files/agent-result.json`, null when there is none.
    pub agent_result: Value,
    /// `files/transcript.json`, null when there is none.
    pub transcript: Value,
    /// Sentences about what was left out.
    pub notices: Vec<String>,
}

/// Why a bundle could not be written. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// A known secret stands in the patch.
    #[error("{path:?} line {line} contains a secret ({kind}); remove it and run again")]
    Secret {
        /// Declared-target path.
        path: String,
        /// Line of the file, from 1.
        line: u64,
        /// Kind of secret, never its value.
        kind: &'static str,
    },
    /// The disk is full.
    #[error("the disk is full; free some space, then run again")]
    NoSpace,
    /// Another I/O failure.
    #[error("{member} could not be written")]
    Io {
        /// Member of the bundle.
        member: String,
        /// The cause.
        #[source]
        source: rustix::io::Errno,
    },
    /// The patch is larger than a verifier reads.
    #[error(
        "the patch has {bytes} bytes, but a bundle carries {limit} at most; let the agent change less, or exclude generated files"
    )]
    PatchTooLarge {
        /// How many it has.
        bytes: u64,
        /// The bound.
        limit: u64,
    },
    /// A text that goes into the manifest is not ASCII.
    #[error(
        "the runtime's description must be ASCII, or other implementations compute another self hash"
    )]
    NotAscii,
    /// The bundle exists already.
    #[error("a bundle of this run exists already")]
    Exists,
    /// A document has no canonical form.
    #[error("{member} is too large for canonical JSON")]
    Canonical {
        /// Member of the bundle.
        member: String,
        /// The cause.
        #[source]
        source: CanonicalError,
    },
}

impl BundleError {
    /// The stable code.
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
    /// As it crosses a border.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        ErrorBody::new(self.code(), self.to_string())
    }
}
