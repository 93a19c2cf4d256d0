//! Verifies bundles: all rules of the public bundle format
//! (docs/decisions/05-bundle-with-canonical-digests.md), and the signature.
//!
//! Invariants: all violations are reported, not only the first. Documents are parsed strictly.
//! Files are opened beneath the bundle without following links and hashed while they are read;
//! later rules use the same bytes. The amount of data read is limited. A bundle may be identified
//! by the content digest of this crate, or by the digest over its list of files, which other
//! implementations use.

mod cases;
mod episode;
mod evidence;
mod files;
mod paths;
mod runtime_refs;
pub(crate) mod shape;
mod typed;
mod wasi;

use crate::attestation::{
    ATTESTATION_PATH, MANIFEST_PATH, SignatureReport, SignatureStatus, TrustedKeys, check_envelope,
};
use crate::digest::{MAX_DOCUMENT, content_digest, sha256};
use crate::dirfd::{Dir, ReadOutcome};
use crate::json::Json;
pub(crate) use files::Documents;
use files::Session;
use rustix::io::Errno;
use serde::Serialize;
use serde_json::Value;
use wp_codebox_contracts::{ContentDigest, Sha256Hex, Violation, ViolationCode, schema_id};

/// What a caller trusts when it verifies a bundle.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// Keys by which a signature counts as trusted.
    pub trusted: TrustedKeys,
}

/// Result of verifying a bundle: a document `wp-codebox/artifact-bundle-verification/v1`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// Schema id of this document.
    pub schema: &'static str,
    /// Always `.`, because the verifier receives an open directory without a path. A caller that
    /// displays the result inserts the path.
    pub bundle_directory: String,
    /// True if the bundle violates no rule.
    pub valid: bool,
    /// All rules that the bundle violates, with the file concerned.
    pub violations: Vec<Violation>,
    /// The bundle's manifest, if it has all required members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Value>,
    /// Status, signer and coverage of the bundle's signature.
    pub signature: SignatureReport,
    /// SHA-256 of the manifest file; `None` if it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest_sha256: Option<Sha256Hex>,
}

/// A verification together with the documents it read, for further use by the caller.
pub(crate) struct Verified {
    pub verification: Verification,
    pub documents: Documents,
}

/// Verifies a bundle directory.
#[must_use]
pub fn verify_bundle(bundle: &Dir, options: &VerifyOptions) -> Verification {
    verify_keeping(bundle, options).verification
}

pub(crate) fn verify_keeping(bundle: &Dir, options: &VerifyOptions) -> Verified {
    let mut verification = Verification {
        schema: schema_id::BUNDLE_VERIFICATION,
        bundle_directory: ".".to_owned(),
        valid: false,
        violations: Vec::new(),
        manifest: None,
        signature: SignatureReport::without_signer(SignatureStatus::Unsigned),
        manifest_sha256: None,
    };
    let mut documents = Documents::new();
    match manifest_of(bundle) {
        Err(failure) => {
            let (hash, violation) = *failure;
            verification.manifest_sha256 = hash;
            verification.violations.push(violation);
        }
        Ok((bytes, manifest)) => {
            verification.manifest_sha256 = Some(sha256(&bytes));
            verification.manifest = Some(manifest.to_value());
            let mut session = Session::new(bundle, manifest, bytes);
            session.check_files();
            session.check_identity();
            evidence::check_metadata(&mut session);
            evidence::check_review(&mut session);
            episode::check(&mut session);
            runtime_refs::check(&mut session);
            typed::check(&mut session);
            wasi::check(&mut session);
            cases::check(&mut session);
            verification.signature = attestation(&mut session, &options.trusted);
            verification.violations = session.violations;
            documents = session.cached;
        }
    }
    verification.valid = verification.violations.is_empty();
    Verified {
        verification,
        documents,
    }
}

/// SHA-256 of the manifest if it could be read, and the violation that prevents its use.
type ManifestFailure = Box<(Option<Sha256Hex>, Violation)>;

fn manifest_of(bundle: &Dir) -> Result<(Vec<u8>, Json), ManifestFailure> {
    let violation = |code, message: &str| Violation {
        code,
        path: MANIFEST_PATH.to_owned(),
        message: message.to_owned(),
        file: None,
        details: None,
    };
    let bytes = match bundle.read(MANIFEST_PATH.as_bytes(), MAX_DOCUMENT) {
        Ok((ReadOutcome::Bytes(bytes), _)) => bytes,
        Ok((ReadOutcome::TooLarge, _)) => {
            let message = "manifest.json is too large to be read";
            return Err(Box::new((
                None,
                violation(ViolationCode::MalformedManifest, message),
            )));
        }
        Err(Errno::NOENT) => {
            let message = "manifest.json is missing";
            return Err(Box::new((
                None,
                violation(ViolationCode::MissingManifest, message),
            )));
        }
        Err(_) => {
            let message = "manifest.json is not a readable regular file";
            return Err(Box::new((
                None,
                violation(ViolationCode::MalformedManifest, message),
            )));
        }
    };
    let hash = Some(sha256(&bytes));
    let manifest = Json::parse(&bytes).map_err(|error| {
        let message = format!("manifest.json cannot be read: {error}");
        Box::new((
            hash.clone(),
            violation(ViolationCode::MalformedManifest, &message),
        ))
    })?;
    match shape::manifest(&manifest) {
        Ok(()) => Ok((bytes, manifest)),
        Err(field) => {
            let message = format!(
                "manifest.json is not a valid manifest: its part {field} is missing or wrong"
            );
            let code = ViolationCode::InvalidManifestShape;
            Err(Box::new((hash, violation(code, &message))))
        }
    }
}

fn attestation(session: &mut Session<'_>, trusted: &TrustedKeys) -> SignatureReport {
    if !session.is_listed(ATTESTATION_PATH) {
        return SignatureReport::without_signer(SignatureStatus::Unsigned);
    }
    let hashes = session
        .hashes
        .iter()
        .filter(|(path, _)| !matches!(path.as_str(), MANIFEST_PATH | ATTESTATION_PATH))
        .map(|(path, hash)| (path.clone(), hash.clone()))
        .collect();
    let judged = match session.document(ATTESTATION_PATH) {
        Some(bytes) => check_envelope(&bytes, &session.manifest, &hashes, trusted)
            .map_err(|error| error.to_string()),
        None => Err("the attestation cannot be read".to_owned()),
    };
    judged.unwrap_or_else(|message| {
        let code = ViolationCode::AttestationInvalid;
        session.add(code, ATTESTATION_PATH, Some(ATTESTATION_PATH), message);
        SignatureReport::without_signer(SignatureStatus::Invalid)
    })
}

/// Returns the content digest (version 1) over the files `inputs` of a directory, in this order.
pub fn directory_content_digest(bundle: &Dir, inputs: &[String]) -> Result<ContentDigest, Errno> {
    let mut contents = Vec::with_capacity(inputs.len());
    for input in inputs {
        match bundle.read(input.as_bytes(), MAX_DOCUMENT)? {
            (ReadOutcome::Bytes(bytes), _) => contents.push(bytes),
            (ReadOutcome::TooLarge, _) => return Err(Errno::FBIG),
        }
    }
    let pairs: Vec<(&str, &[u8])> = inputs
        .iter()
        .map(String::as_str)
        .zip(contents.iter().map(Vec::as_slice))
        .collect();
    Ok(content_digest(&pairs))
}
