//! Request and reply, and the conversion of secret values to and from bytes.

use super::error::SealError;
use crate::names::{NodeName, SubmitterName};
use crate::values::SecretValues;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wp_codebox_contracts::RunId;
use zeroize::Zeroizing;

pub(super) const REQUEST_SCHEMA: &str = "wp-codebox/cluster-secret-request/v1";
pub(super) const REPLY_SCHEMA: &str = "wp-codebox/cluster-secret-reply/v1";
/// Payload type of the signed request; no other document has it.
pub(super) const REQUEST_TYPE: &str = "application/vnd.wp-codebox.cluster-secret-request+json";
/// Maximum size of a reply in bytes: below the usual limit of a message, 1 MiB.
pub(super) const MAX_REPLY: u64 = 900 * 1024;

/// The signed request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    pub schema: String,
    pub submitter: SubmitterName,
    pub run: RunId,
    pub epoch: u64,
    pub node: NodeName,
    pub instance: String,
    /// X25519 public key of the asking node in base64, new for each request.
    pub key: String,
}

/// The reply.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reply {
    pub schema: String,
    /// X25519 public key of the broker in base64, new for each reply.
    pub key: String,
    /// Encrypted values in base64.
    pub sealed: String,
}

/// The secret values in the form in which they are serialised.
#[derive(Serialize)]
struct Plain<'v> {
    secrets: BTreeMap<&'v str, &'v str>,
    redact: Vec<&'v str>,
}

/// The secret values in the form in which they are deserialised.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Owned {
    secrets: BTreeMap<String, String>,
    redact: Vec<String>,
}

/// Returns the values as bytes. The buffer is large enough from the start, because a buffer that
/// grows leaves copies in memory.
pub(super) fn to_bytes(values: &SecretValues) -> Result<Zeroizing<Vec<u8>>, SealError> {
    let secrets = values.secrets.iter();
    let plain = Plain {
        secrets: secrets
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect(),
        redact: values.redact.iter().map(|value| value.as_str()).collect(),
    };
    let name_bytes: usize = plain.secrets.keys().map(|name| name.len()).sum();
    let value_bytes: usize = plain
        .secrets
        .values()
        .chain(&plain.redact)
        .map(|value| value.len() + 8)
        .sum();
    // JSON writes a byte as at most six. The cipher appends 16 bytes.
    let most = 6 * (name_bytes + value_bytes) + 8 * plain.secrets.len() + 128;
    let mut bytes = Zeroizing::new(Vec::with_capacity(most));
    serde_json::to_writer(&mut *bytes, &plain).map_err(|_| SealError::Cipher)?;
    Ok(bytes)
}

/// Reads values that [`to_bytes`] wrote.
pub(super) fn from_bytes(bytes: &[u8]) -> Result<SecretValues, SealError> {
    let owned: Owned =
        serde_json::from_slice(bytes).map_err(|_| SealError::Malformed { what: "reply" })?;
    let secrets = owned.secrets.into_iter();
    Ok(SecretValues {
        secrets: secrets
            .map(|(name, value)| (name, Zeroizing::new(value)))
            .collect(),
        redact: owned.redact.into_iter().map(Zeroizing::new).collect(),
    })
}
