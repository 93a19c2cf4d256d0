//! The DSSE envelope of a bundle: creation and verification.
//!
//! Invariants: the signature covers the payload type and the payload bytes (DSSE PAE). The
//! subjects of the statement are all files that the manifest lists, except the manifest and the
//! envelope, with the hashes of the bytes that were read. The predicate repeats identity, runtime
//! and file list of the manifest. It also contains a hash of the whole manifest, computed without
//! the two `files` entries that describe the manifest and the envelope, so that no part of the
//! manifest can change unnoticed. Earlier versions omitted that hash; their signatures remain valid
//! with [`SignatureCoverage::Files`]. The envelope contains its public key, but only the caller's
//! list of keys decides whether that key is trusted.
//!
//! An envelope has one signature, or two over the same statement: that of the host that made the
//! bundle, and after it that of a host that verified the bundle and took it over
//! ([`countersigned`]). Both must be valid. The second signature changes only the envelope and the
//! two hashes in the manifest that depend on it, so the first one stays valid.
//!
//! The statement of a bundle from a browser has a predicate type of its own and the predicate
//! member `origin`, which must equal the manifest's `origin`. A signature with a trusted key then
//! gives the status [`SignatureStatus::BrowserOrigin`] or [`SignatureStatus::BrowserOriginKnown`],
//! so code that requires [`SignatureStatus::SignedByThisHost`] or
//! [`SignatureStatus::SignedByKnown`] refuses the bundle.

use super::key::HostKey;
use super::public_key::{PublicKey, TrustedKeys};
use crate::canonical::{CanonicalError, OverLimit, canonical_json};
use crate::digest::{attested_manifest_digest, file_list_digest, is_of};
use crate::json::Json;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use wp_codebox_contracts::{BundleOrigin, CodedError, IsolationReport, Sha256Hex, schema_id};

/// Path of the envelope in a bundle.
pub(crate) const ATTESTATION_PATH: &str = "files/attestation.dsse.json";
pub(crate) const MANIFEST_PATH: &str = "manifest.json";
/// Paths of the two files whose hashes in the manifest depend on the signature.
const SIGNATURE_DEPENDENT: [&str; 2] = [MANIFEST_PATH, ATTESTATION_PATH];
/// Name of the predicate member with the SHA-256 of the manifest. The hash is computed without the
/// `files` entries of [`SIGNATURE_DEPENDENT`].
const MANIFEST_SHA256: &str = "manifestSha256";
/// Name of the member, in predicate and manifest, that states where the changes come from.
const ORIGIN: &str = "origin";
const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// Maximum number of signatures of an envelope: of the host that made the bundle, and of the host
/// that took it over.
const MAX_SIGNATURES: usize = 2;

/// Verdict on the signature of a bundle, from the point of view of this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignatureStatus {
    /// A valid signature with this host's key.
    SignedByThisHost,
    /// A valid signature with a key that the site's settings list.
    SignedByKnown,
    /// A valid signature with this host's key on contents that a browser uploaded. This host did
    /// not see their code run.
    BrowserOrigin,
    /// As [`SignatureStatus::BrowserOrigin`], with a key that the site's settings list.
    BrowserOriginKnown,
    /// The signature is valid, but the key is neither this host's nor in the site's settings.
    SignedByUnknown,
    /// The bundle has no attestation.
    Unsigned,
    /// The bundle has an attestation that is malformed or does not match the bundle's files.
    Invalid,
}

/// Part of the bundle that a valid signature covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignatureCoverage {
    /// Every file and the whole manifest.
    Manifest,
    /// Every file, and identity, runtime and file list of the manifest. Other manifest members,
    /// e.g. `cases`, may have been added later. Earlier versions signed with this coverage.
    Files,
}

/// Status, signer and coverage of a bundle's signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SignatureReport {
    /// Whether there is a signature, whether it is valid, and whether its key is trusted.
    pub status: SignatureStatus,
    /// SHA-256 of the public key by which `status` was decided: the host's own key, otherwise a
    /// listed one, otherwise the first key in the envelope. Only for a valid signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_id: Option<Sha256Hex>,
    /// Part of the bundle that the signature covers; only for a valid signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<SignatureCoverage>,
    /// Where the changes come from, as the signer states it; only for a valid signature. Absent for
    /// changes of a sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<BundleOrigin>,
}

impl SignatureReport {
    /// Creates the report for a bundle without a valid signature.
    pub(crate) const fn without_signer(status: SignatureStatus) -> Self {
        Self {
            status,
            key_id: None,
            coverage: None,
            origin: None,
        }
    }
}

/// Reason why an envelope is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(ArtifactVerificationFailed)]
pub enum AttestationError {
    /// The bytes are not a DSSE envelope with one or two signatures.
    #[error(
        "the attestation is not a DSSE envelope with one or two signatures: its part {field} is missing or wrong; discard the bundle"
    )]
    Envelope {
        /// Member of the envelope that is missing or malformed; `json` if the bytes are not JSON.
        field: &'static str,
    },
    /// The signature is not a valid signature of the payload with the key that the envelope names.
    #[error("the attestation's signature does not match its content; discard the bundle")]
    Signature,
    /// The payload is not a statement of the expected shape.
    #[error(
        "the attestation's statement has the wrong shape: its part {field} is missing or wrong; discard the bundle"
    )]
    Statement {
        /// Member of the statement that is missing or malformed.
        field: &'static str,
    },
    /// The subjects of the statement are not the files of the bundle.
    #[error(
        "the files that the attestation signs differ from the bundle's files, first at {path:?}; discard the bundle"
    )]
    Subjects {
        /// First path that is only in the list of subjects, is only in the bundle, or has different
        /// hashes in the two.
        path: String,
    },
    /// A member of the statement's predicate differs from the same member of the manifest.
    #[error(
        "the manifest's member {field} differs from the one that the attestation signs; discard the bundle"
    )]
    Predicate {
        /// Name of the member that differs.
        field: &'static str,
    },
}

/// Returns the bytes that a DSSE signature covers. They contain the type of the payload, so a
/// signature over one kind of document is none over another kind.
pub(super) fn pre_authentication_encoding(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!(
        "DSSEv1 {} {payload_type} {} ",
        payload_type.len(),
        payload.len()
    )
    .into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

/// Builds one row of `signatures`.
pub(super) fn signature(key: &HostKey, payload_type: &str, payload: &[u8]) -> Value {
    let public = key.public_half();
    json!({
        "keyid": public.key_id(),
        "sig": BASE64.encode(key.sign(&pre_authentication_encoding(payload_type, payload))),
        "publicKey": public.to_base64(),
    })
}

/// Builds the predicate of the signed statement, except the hash of the manifest.
fn predicate(manifest: &Json) -> Result<Vec<(&'static str, Json)>, CanonicalError> {
    let files = manifest.get("files").and_then(Json::as_array);
    let list = file_list_digest(files.unwrap_or_default(), OverLimit::Refuse)?;
    let member = |key| manifest.get(key).cloned().unwrap_or(Json::Null);
    Ok(vec![
        ("id", member("id")),
        ("contentDigest", member("contentDigest")),
        ("createdAt", member("createdAt")),
        ("runtime", member("runtime")),
        ("fileListSha256", Json::String(list.as_str().into())),
    ])
}

/// Signs a bundle. `manifest` must list every file, also the manifest and the envelope; the hashes
/// of these two are ignored. `hashes` has the hash of each listed file except these two.
pub(crate) fn make_envelope(
    key: &HostKey,
    manifest: &Value,
    hashes: &BTreeMap<String, Sha256Hex>,
    isolation: &IsolationReport,
) -> Result<Value, CanonicalError> {
    let mut body = serde_json::Map::new();
    for (name, value) in predicate(&Json::from(manifest))? {
        body.insert(name.to_owned(), value.to_value());
    }
    let origin = match origin_in(&Json::from(manifest)) {
        Ok(origin) => origin,
        // The writer never states an unknown origin. If it did, the signature would
        // state the least trusted one.
        Err(()) => Some(BundleOrigin::Browser),
    };
    let whole = attested_manifest_digest(&Json::from(manifest), &SIGNATURE_DEPENDENT)?;
    body.insert(MANIFEST_SHA256.to_owned(), json!(whole));
    body.insert("isolation".to_owned(), json!(isolation));
    if let Some(origin) = origin {
        body.insert(ORIGIN.to_owned(), json!(origin));
    }
    let subjects: Vec<Value> = hashes
        .iter()
        .map(|(path, hash)| json!({"name": path, "digest": {"sha256": hash}}))
        .collect();
    let statement = json!({
        "_type": STATEMENT_TYPE,
        "subject": subjects,
        "predicateType": predicate_type(origin),
        "predicate": body,
    });
    let payload = statement.to_string().into_bytes();
    Ok(json!({
        "payloadType": PAYLOAD_TYPE,
        "payload": BASE64.encode(&payload),
        "signatures": [signature(key, PAYLOAD_TYPE, &payload)],
    }))
}

/// Returns the envelope with the signature of `key` after the one that it has. An envelope that
/// `key` has signed is returned as it is.
///
/// # Errors
/// [`AttestationError`] if a signature of the envelope is not valid, or if two other hosts have
/// signed it already.
pub(crate) fn countersigned(bytes: &[u8], key: &HostKey) -> Result<Value, AttestationError> {
    let bad = |field| AttestationError::Envelope { field };
    let opened = opened(bytes, PAYLOAD_TYPE)?;
    let mut envelope: Value = serde_json::from_slice(bytes).map_err(|_| bad("json"))?;
    if opened.keys.contains(&key.public_half()) {
        return Ok(envelope);
    }
    let rows = envelope.get_mut("signatures").and_then(Value::as_array_mut);
    match rows {
        Some(rows) if rows.len() < MAX_SIGNATURES => {
            rows.push(signature(key, PAYLOAD_TYPE, &opened.payload));
            Ok(envelope)
        }
        Some(_) | None => Err(bad("signatures")),
    }
}

/// Verifies an envelope against its bundle. `hashes` has the hash of the bytes read from each
/// listed file except the manifest and the envelope.
pub(crate) fn check_envelope(
    bytes: &[u8],
    manifest: &Json,
    hashes: &BTreeMap<String, Sha256Hex>,
    trusted: &TrustedKeys,
) -> Result<SignatureReport, AttestationError> {
    let opened = opened(bytes, PAYLOAD_TYPE)?;
    let statement = Json::parse(&opened.payload)
        .map_err(|_| AttestationError::Statement { field: "payload" })?;
    let text = |key| statement.get(key).and_then(Json::as_str);
    if text("_type") != Some(STATEMENT_TYPE) {
        return Err(AttestationError::Statement { field: "_type" });
    }
    check_subjects(&statement, hashes)?;
    let stated = statement
        .get("predicate")
        .ok_or(AttestationError::Statement { field: "predicate" })?;
    let origin = check_origin(stated, manifest)?;
    if text("predicateType") != Some(predicate_type(origin)) {
        return Err(AttestationError::Statement {
            field: "predicateType",
        });
    }
    let wanted = predicate(manifest).map_err(|_| AttestationError::Predicate { field: "files" })?;
    for (field, value) in wanted {
        let canonical = |v: &Json| canonical_json(v, OverLimit::Refuse).ok();
        let same = stated.get(field).and_then(canonical) == canonical(&value);
        if !same || canonical(&value).is_none() {
            return Err(AttestationError::Predicate { field });
        }
    }
    let coverage = check_manifest(stated, manifest)?;
    if origin.is_some() && coverage != SignatureCoverage::Manifest {
        return Err(AttestationError::Predicate {
            field: MANIFEST_SHA256,
        });
    }
    let own = opened.keys.iter().find(|key| trusted.host.contains(key));
    let is_known = |key: &&PublicKey| trusted.known.contains(&key.key_id());
    let known = opened.keys.iter().find(is_known);
    let status = match (own.is_some(), known.is_some(), origin) {
        (true, _, None) => SignatureStatus::SignedByThisHost,
        (true, _, Some(BundleOrigin::Browser)) => SignatureStatus::BrowserOrigin,
        (false, true, None) => SignatureStatus::SignedByKnown,
        (false, true, Some(BundleOrigin::Browser)) => SignatureStatus::BrowserOriginKnown,
        (false, false, _) => SignatureStatus::SignedByUnknown,
    };
    Ok(SignatureReport {
        status,
        key_id: own.or(known).or(opened.keys.first()).map(PublicKey::key_id),
        coverage: Some(coverage),
        origin,
    })
}

const fn predicate_type(origin: Option<BundleOrigin>) -> &'static str {
    match origin {
        None => schema_id::BUNDLE_ATTESTATION_PREDICATE,
        Some(BundleOrigin::Browser) => schema_id::BROWSER_BUNDLE_ATTESTATION_PREDICATE,
    }
}

/// Reads the member `origin` of the predicate or of the manifest; fails for an unknown value.
fn origin_in(object: &Json) -> Result<Option<BundleOrigin>, ()> {
    match object.get(ORIGIN) {
        None => Ok(None),
        Some(value) => {
            let text = value.as_str();
            let mut all = BundleOrigin::ALL.iter();
            let known = all.find(|origin| Some(origin.as_str()) == text);
            known.copied().map(Some).ok_or(())
        }
    }
}

/// Returns the origin in the predicate. The manifest must state the same one, so that a reader of
/// the manifest alone sees it too.
fn check_origin(stated: &Json, manifest: &Json) -> Result<Option<BundleOrigin>, AttestationError> {
    match (origin_in(stated), origin_in(manifest)) {
        (Ok(signed), Ok(shown)) if signed == shown => Ok(signed),
        _ => Err(AttestationError::Predicate { field: ORIGIN }),
    }
}

/// Compares the manifest's hash in the predicate with the manifest. A predicate without this hash
/// gives [`SignatureCoverage::Files`].
fn check_manifest(stated: &Json, manifest: &Json) -> Result<SignatureCoverage, AttestationError> {
    let Some(value) = stated.get(MANIFEST_SHA256) else {
        return Ok(SignatureCoverage::Files);
    };
    let made = attested_manifest_digest(manifest, &SIGNATURE_DEPENDENT).ok();
    let same = made.is_some_and(|made| value.as_str() == Some(made.as_str()));
    // The manifest hash omits the `files` entries of manifest and envelope. The signed file list
    // covers path, kind and content type of both, and other checks compare their hashes with the
    // bytes. Only unknown members could be added to these entries unnoticed, so they are refused.
    let rows = manifest.get("files").and_then(Json::as_array);
    let bare = rows
        .unwrap_or_default()
        .iter()
        .filter(|row| is_of(row, &SIGNATURE_DEPENDENT))
        .all(|row| {
            has_only(row, &["path", "kind", "contentType", "sha256"])
                && row
                    .get("sha256")
                    .is_none_or(|digest| has_only(digest, &["algorithm", "value"]))
        });
    if same && bare {
        Ok(SignatureCoverage::Manifest)
    } else {
        Err(AttestationError::Predicate {
            field: MANIFEST_SHA256,
        })
    }
}

fn has_only(object: &Json, keys: &[&str]) -> bool {
    match object {
        Json::Object(members) => members
            .iter()
            .all(|(key, _)| key.as_str().is_some_and(|key| keys.contains(&key))),
        _ => false,
    }
}

/// Payload of an envelope and the keys that signed it, in the order of its signatures.
pub(super) struct Opened {
    pub payload: Vec<u8>,
    pub keys: Vec<PublicKey>,
}

/// Verifies every signature of an envelope with the public key beside it. The caller decides
/// whether it trusts the keys.
pub(super) fn opened(bytes: &[u8], payload_type: &str) -> Result<Opened, AttestationError> {
    let bad = |field| AttestationError::Envelope { field };
    let envelope = Json::parse(bytes).map_err(|_| bad("json"))?;
    if envelope.get("payloadType").and_then(Json::as_str) != Some(payload_type) {
        return Err(bad("payloadType"));
    }
    let decoded = |value: Option<&Json>| {
        value
            .and_then(Json::as_str)
            .and_then(|text| BASE64.decode(text).ok())
    };
    let payload = decoded(envelope.get("payload")).ok_or(bad("payload"))?;
    let rows = envelope.get("signatures").and_then(Json::as_array);
    let rows = rows.filter(|rows| (1..=MAX_SIGNATURES).contains(&rows.len()));
    let mut keys: Vec<PublicKey> = Vec::new();
    for signature in rows.ok_or(bad("signatures"))? {
        let key = signature
            .get("publicKey")
            .and_then(Json::as_str)
            .and_then(|text| PublicKey::from_base64(text).ok())
            .ok_or(bad("publicKey"))?;
        if signature.get("keyid").and_then(Json::as_str) != Some(key.key_id().as_str()) {
            return Err(bad("keyid"));
        }
        let made = decoded(signature.get("sig")).ok_or(bad("sig"))?;
        if !key.verifies(&pre_authentication_encoding(payload_type, &payload), &made) {
            return Err(AttestationError::Signature);
        }
        // Two signatures with one key would show two signers where there is one.
        if keys.contains(&key) {
            return Err(bad("signatures"));
        }
        keys.push(key);
    }
    Ok(Opened { payload, keys })
}

fn check_subjects(
    statement: &Json,
    hashes: &BTreeMap<String, Sha256Hex>,
) -> Result<(), AttestationError> {
    let shape = AttestationError::Statement { field: "subject" };
    let subjects = statement
        .get("subject")
        .and_then(Json::as_array)
        .ok_or(shape.clone())?;
    let mut stated = BTreeMap::new();
    for subject in subjects {
        let name = subject.get("name").and_then(Json::as_str);
        let hash = subject
            .get("digest")
            .and_then(|d| d.get("sha256"))
            .and_then(Json::as_str);
        let (Some(name), Some(hash)) = (name, hash) else {
            return Err(shape);
        };
        if stated.insert(name, hash).is_some() {
            return Err(shape);
        }
    }
    let differing = hashes
        .iter()
        .find(|(path, hash)| stated.get(path.as_str()) != Some(&hash.as_str()))
        .map(|(path, _)| path.as_str())
        .or_else(|| stated.keys().find(|p| !hashes.contains_key(**p)).copied());
    match differing {
        None => Ok(()),
        Some(path) => Err(AttestationError::Subjects {
            path: path.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests;
