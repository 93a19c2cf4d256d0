//! `manifest.json` of a bundle and the verifier's vocabulary.

use crate::Sha256Hex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The only digest algorithm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DigestAlgorithm {
    /// SHA-256.
    #[default]
    Sha256,
}

/// `{algorithm, value}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDigest {
    /// Always sha256.
    pub algorithm: DigestAlgorithm,
    /// Hex.
    pub value: Sha256Hex,
}

impl FileDigest {
    /// A SHA-256.
    #[must_use]
    pub const fn sha256(value: Sha256Hex) -> Self {
        Self {
            algorithm: DigestAlgorithm::Sha256,
            value,
        }
    }
}

/// What the bundle's id is computed from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentDigest {
    /// Always sha256.
    pub algorithm: DigestAlgorithm,
    /// Paths whose bytes take part, in order.
    pub inputs: Vec<String>,
    /// Hex.
    pub value: Sha256Hex,
}

/// Which environment a runtime offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeEnvironment {
    /// `wordpress`.
    pub kind: String,
    /// WordPress version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// PHP version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub php_version: Option<String>,
}

/// The runtime that made the bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeInfo {
    /// The run id.
    pub id: String,
    /// `native`.
    pub backend: String,
    /// Environment.
    pub environment: RuntimeEnvironment,
    /// RFC 3339, UTC, milliseconds.
    pub created_at: String,
    /// `created` or `destroyed`.
    pub status: String,
}

/// One file of the bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestFile {
    /// Path below the bundle directory.
    pub path: String,
    /// What it is, e.g. `patch`.
    pub kind: String,
    /// Media type.
    pub content_type: String,
    /// Hash of the bytes; for `manifest.json` the self hash.
    pub sha256: FileDigest,
    /// Redaction note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redaction: Option<Map<String, Value>>,
}

/// The manifest. ASCII, without empty objects, at most 2,000 entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// `artifact-bundle-sha256-` and the content digest.
    pub id: String,
    /// Identity.
    pub content_digest: ContentDigest,
    /// RFC 3339, UTC, milliseconds.
    pub created_at: String,
    /// The runtime.
    pub runtime: RuntimeInfo,
    /// Files; the order is part of the self hash.
    pub files: Vec<ManifestFile>,
}

/// What can be wrong with a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ViolationCode {
    /// No manifest.
    MissingManifest,
    /// Not strict JSON (duplicate keys included), or not readable.
    MalformedManifest,
    /// A field is missing or of the wrong type.
    InvalidManifestShape,
    /// A path leaves the bundle or is not normalised.
    InvalidPath,
    /// A listed file is missing or not a regular file.
    MissingFile,
    /// A file is not listed.
    OrphanedFile,
    /// The content digest, or that of a reference document, differs.
    DigestMismatch,
    /// A file has no usable hash.
    MissingFileHash,
    /// A file's bytes differ from its hash.
    FileHashMismatch,
    /// The id does not belong to the digest.
    BundleIdMismatch,
    /// A reference names an unlisted file or is malformed.
    MalformedReference,
    /// review.json contradicts the files.
    ReviewEvidenceMismatch,
    /// A file is reached outside the bundle, or a URL is not public.
    UnsafeFile,
    /// A file has more than one link.
    Hardlink,
    /// A typed artifact does not match its own schema.
    PayloadSchemaViolation,
    /// The attestation's signature, subjects or predicate do not fit.
    AttestationInvalid,
}

/// One thing wrong with a bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Violation {
    /// What kind.
    pub code: ViolationCode,
    /// Field or file it concerns.
    pub path: String,
    /// One sentence.
    pub message: String,
    /// The file, when `path` names a field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Further detail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Map<String, Value>>,
}
