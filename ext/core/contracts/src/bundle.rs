//! `manifest.json` of an artifact bundle, and the violations that the verifier reports.

use crate::{Sha256Hex, string_enum};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Digest algorithm; SHA-256 is the only one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DigestAlgorithm {
    /// SHA-256.
    #[default]
    Sha256,
}

/// A digest with the name of its algorithm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDigest {
    /// Digest algorithm, always `sha256`.
    pub algorithm: DigestAlgorithm,
    /// Digest in lower-case hex digits.
    pub value: Sha256Hex,
}

impl FileDigest {
    /// Wraps a SHA-256 digest.
    #[must_use]
    pub const fn sha256(value: Sha256Hex) -> Self {
        Self {
            algorithm: DigestAlgorithm::Sha256,
            value,
        }
    }
}

/// Digest over the content of a bundle; the bundle id contains it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentDigest {
    /// Digest algorithm, always `sha256`.
    pub algorithm: DigestAlgorithm,
    /// Paths of the files that the digest covers, in hashing order.
    pub inputs: Vec<String>,
    /// Digest in lower-case hex digits.
    pub value: Sha256Hex,
}

/// Software versions of the environment in which a run executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeEnvironment {
    /// Environment kind, always `wordpress`.
    pub kind: String,
    /// WordPress version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// PHP version in the guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub php_version: Option<String>,
}

/// The guest of the run that produced the bundle: its backend, software versions and state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeInfo {
    /// Id of the run.
    pub id: String,
    /// Backend: `native`, or `browser` if the changes come from a browser.
    pub backend: String,
    /// Software versions in the guest.
    pub environment: RuntimeEnvironment,
    /// RFC 3339 timestamp of the guest's creation, UTC, with milliseconds.
    pub created_at: String,
    /// State of the guest: `created` or `destroyed`.
    pub status: String,
}

/// Entry of one bundle file in the manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestFile {
    /// Path relative to the bundle directory.
    pub path: String,
    /// Kind of file, e.g. `patch`.
    pub kind: String,
    /// Media type of the file.
    pub content_type: String,
    /// Digest of the file's bytes. The entry of `manifest.json` itself has the digest of the
    /// manifest text in which this value is 64 zeros.
    pub sha256: FileDigest,
    /// Note about values that were redacted from the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redaction: Option<Map<String, Value>>,
}

string_enum! {
    /// Where the changes of a bundle come from, if not from a sandbox of the host that signed it.
    pub enum BundleOrigin {
        /// A browser uploaded the new contents. The host computed the changes from them and from
        /// its own baseline, but did not see the code run.
        Browser = "browser",
    }
}

/// Bundle manifest: ASCII text without empty JSON objects, with at most 2,000 file entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Bundle id: `artifact-bundle-sha256-` and the content digest.
    pub id: String,
    /// Content digest that the bundle id contains.
    pub content_digest: ContentDigest,
    /// RFC 3339 timestamp of the bundle's creation, UTC, with milliseconds.
    pub created_at: String,
    /// The guest of the run that produced the bundle: its backend, software versions and state.
    pub runtime: RuntimeInfo,
    /// Where the changes come from; absent for changes of a sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<BundleOrigin>,
    /// Files of the bundle. Their order matters because the manifest's own digest covers it.
    pub files: Vec<ManifestFile>,
}

/// Kinds of violation that the bundle verifier reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ViolationCode {
    /// The bundle has no manifest.
    MissingManifest,
    /// The manifest is unreadable or not strict JSON (duplicate keys are errors).
    MalformedManifest,
    /// A manifest field is missing or has the wrong type.
    InvalidManifestShape,
    /// A path is not normalised or points outside the bundle.
    InvalidPath,
    /// A file that the manifest lists is missing or not a regular file.
    MissingFile,
    /// A file in the bundle is not in the manifest.
    OrphanedFile,
    /// The content digest, or the digest in a document that lists bundle files, differs from the
    /// digest that the verifier computed.
    DigestMismatch,
    /// A manifest entry has no usable hash.
    MissingFileHash,
    /// A file's bytes do not match its hash.
    FileHashMismatch,
    /// The id of the bundle, or of a document that lists bundle files, does not match its digest.
    BundleIdMismatch,
    /// A document of the bundle is malformed, or refers to a file that is not in the manifest.
    MalformedReference,
    /// A document states a digest, id or changed file that differs from the one in the bundle, e.g.
    /// `review.json` lists a file that did not change.
    ReviewEvidenceMismatch,
    /// A file of the bundle is reached through a symbolic link or lies on another file system, or a
    /// viewer URL in the manifest is not public.
    UnsafeFile,
    /// A file has more than one hard link.
    Hardlink,
    /// A recipe declared a schema for the contents of a file that it stored; the verifier cannot
    /// check contents against such a schema.
    PayloadSchemaViolation,
    /// The attestation's signature, subjects or predicate do not match the bundle.
    AttestationInvalid,
}

/// One violation found by the bundle verifier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Violation {
    /// Kind of the violation.
    pub code: ViolationCode,
    /// Manifest field or file with the violation.
    pub path: String,
    /// Description of the violation, one sentence.
    pub message: String,
    /// Path of the affected file, when `path` names a manifest field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Additional facts about the violation; the names of the members depend on its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Map<String, Value>>,
}

impl std::fmt::Display for Violation {
    /// Writes path and message; many messages can be understood only with the path.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}
