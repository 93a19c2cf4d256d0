//! Writing of bundles.
//!
//! Invariants: a bundle appears complete or not at all (temporary sibling, sync, rename). The
//! manifest is ASCII and within the limits of canonical JSON, so every implementation computes the
//! same hash for the manifest's own entry. Free text is redacted when the writer receives it; a
//! secret in the patch is an error, because the patch must not be edited. No host path is written.
//! Bundles that are written from equal inputs have equal bytes.

mod documents;
mod ends;
mod follow_up;
mod inputs;
mod mounts;
mod records;
mod references;
mod secrets;
mod staging;
mod writer;

use crate::attestation::HostKey;
use crate::canonical::CanonicalError;
use serde_json::Value;
use wp_codebox_contracts::{
    BundleId, BundleOrigin, ChangedFile, CodedError, ContentDigest, Sha256Hex,
};

pub use ends::{left_out, text_ends};
pub use inputs::{
    Approvable, ArtifactContent, ArtifactFile, BundleInputs, BundleMount, EpisodeFiles,
    EvidenceDocument, ExecutionRecord, FollowUpInputs, RenameMode,
};
pub(crate) use mounts::percent_encode;
pub(crate) use records::{Scrubber, lines};
pub use secrets::{SecretLocation, find_secret};
pub use staging::check_room;
pub(crate) use staging::{Staging, TEMPORARY_PREFIX, staging_prefix};
pub use writer::{write_bundle, write_bundle_as};

/// Key with which a bundle is signed.
#[derive(Debug, Clone, Copy)]
pub enum BundleSigner<'a> {
    /// No signature: the bundle verifies as `unsigned`.
    Unsigned,
    /// Signed with the key of this host.
    Host(&'a HostKey),
    /// Signed with the key of this host, with the statement that a browser uploaded the contents.
    HostForBrowser(&'a HostKey),
}

impl<'a> BundleSigner<'a> {
    /// Returns the key, and the origin that manifest and signed statement name.
    const fn parts(self) -> (Option<&'a HostKey>, Option<BundleOrigin>) {
        match self {
            Self::Unsigned => (None, None),
            Self::Host(key) => (Some(key), None),
            Self::HostForBrowser(key) => (Some(key), Some(BundleOrigin::Browser)),
        }
    }
}

/// Kind of crash after which a written bundle must still be complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A crash of the host: the bundle is synced before its rename.
    Synced,
    /// A crash of the writing process only; the files are not synced.
    Unsynced,
}

/// Ids, digests and documents of a bundle that was written to disk.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenBundle {
    /// Bundle id, derived from the content digest.
    pub id: BundleId,
    /// Digest over the list of changed files and the patch.
    pub content_digest: ContentDigest,
    /// SHA-256 of the manifest file, which an approval names.
    pub manifest_sha256: Sha256Hex,
    /// Entries of `files/changed-files.json`, one for each changed path.
    pub changed_files: Vec<ChangedFile>,
    /// Content of `files/completion-outcome.json`, or null if the bundle has no such file.
    pub completion_outcome: Value,
    /// Content of `files/agent-result.json`, or null if the bundle has no such file.
    pub agent_result: Value,
    /// Content of `files/transcript.json`, or null if the bundle has no such file.
    pub transcript: Value,
    /// Sentences that tell the caller which content the bundle omits.
    pub notices: Vec<String>,
}

/// Reason why a bundle could not be written. The writer removes partial files.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(BundleWriteFailed)]
pub enum BundleError {
    /// The patch would contain a secret.
    #[error("{} contains a secret ({kind}); remove it and run again", place(path, *line))]
    #[code(SecretInPatch)]
    Secret {
        /// Path of the changed file, starting with the guest path of its mount.
        path: String,
        /// Line number in the file, counted from 1; 0 if the secret is in the path.
        line: u64,
        /// Kind of secret, e.g. `github-token`; never its value.
        kind: &'static str,
    },
    /// The disk is full, a disk quota is used up, or the file system accepts no file of this size.
    #[error(
        "the file system of the state directory is full or a disk quota is used up; free some space, then run again"
    )]
    NoSpace,
    /// Another I/O operation failed.
    #[error(
        "the file or directory {member} of the bundle could not be written: {source}; check owner and mode of the state directory"
    )]
    Io {
        /// Path of the bundle file that could not be written; `.` is the bundle's directory.
        member: String,
        /// Error number of the system call that failed.
        #[source]
        source: rustix::io::Errno,
    },
    /// The patch is larger than the limit up to which verifiers read it.
    #[error(
        "the patch has {bytes} bytes, but at most {limit} are allowed; let the agent change less, or exclude generated files"
    )]
    #[code(CaptureLimit)]
    PatchTooLarge {
        /// Size of the patch in bytes.
        bytes: u64,
        /// Maximum size of a patch in bytes.
        limit: u64,
    },
    /// A text that goes into the manifest is not ASCII.
    #[error(
        "the runtime's description must be ASCII: otherwise other implementations compute a different hash"
    )]
    NotAscii,
    /// A bundle of this run is stored already.
    #[error("a bundle of this run is stored already; discard that bundle first")]
    Exists,
    /// A document exceeds the limits of canonical JSON, so it has no digest.
    #[error(
        "the bundle's document {member} exceeds a limit of canonical JSON: {source}; let the run record less"
    )]
    Canonical {
        /// Path of the document in the bundle.
        member: String,
        /// Limit of canonical JSON that the document exceeds.
        #[source]
        source: CanonicalError,
    },
}

/// Returns where a secret was found: in a line of the file, or for line 0 in its path.
fn place(path: &str, line: u64) -> String {
    match line {
        0 => format!("the path {path:?}"),
        line => format!("{path:?} line {line}"),
    }
}
