//! Format of the object with a run's result: its first bytes and the signed head.

use super::error::ResultError;
use crate::names::{NodeName, SubmitterName};
use serde::{Deserialize, Serialize};
use std::io::Read;
use wp_codebox_contracts::{RunId, RunResult, Sha256Hex};

pub(super) const MAGIC: &[u8] = b"wp-codebox cluster result 1\n";
pub(super) const SCHEMA: &str = "wp-codebox/cluster-result/v1";
/// Payload type of the signed head; no other document has it.
pub(super) const PAYLOAD_TYPE: &str = "application/vnd.wp-codebox.cluster-result+json";
/// Maximum size of the signed head in bytes.
pub(super) const MAX_HEAD: usize = 64 * 1024 * 1024;
/// Maximum size of the bundle's archive in bytes, before compression.
pub(super) const MAX_ARCHIVE: u64 = 320 * 1024 * 1024;
/// Maximum size of the object in bytes.
pub(super) const MAX_OBJECT: u64 = MAX_ARCHIVE + MAX_HEAD as u64;

/// The signed head.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    pub schema: String,
    pub submitter: SubmitterName,
    pub run: RunId,
    pub epoch: u64,
    pub node: NodeName,
    pub task: Sha256Hex,
    pub result: RunResult,
}

/// Returns the bytes before the bundle's archive.
pub(super) fn beginning(envelope: &[u8]) -> Result<Vec<u8>, ResultError> {
    let length = u32::try_from(envelope.len()).ok();
    let length = length.filter(|_| envelope.len() <= MAX_HEAD);
    let length = length.ok_or_else(|| damaged("the node's answer is too large"))?;
    Ok([MAGIC, &length.to_le_bytes(), envelope].concat())
}

/// Reads the envelope with the head, and leaves the reader at the archive.
pub(super) fn envelope(input: &mut impl Read) -> Result<Vec<u8>, ResultError> {
    let mut exactly = |length: usize| {
        let mut bytes = vec![0; length];
        let read = input.read_exact(&mut bytes);
        read.map_err(|_| damaged("it ends too early"))
            .map(|()| bytes)
    };
    if exactly(MAGIC.len())? != MAGIC {
        return Err(damaged("it does not begin like a result"));
    }
    let length = <[u8; 4]>::try_from(exactly(4)?.as_slice()).unwrap_or_default();
    match usize::try_from(u32::from_le_bytes(length)) {
        Ok(length) if length <= MAX_HEAD => exactly(length),
        Ok(_) | Err(_) => Err(damaged("the node's answer is too large")),
    }
}

pub(super) fn damaged(detail: &str) -> ResultError {
    ResultError::Damaged {
        detail: detail.to_owned(),
    }
}
