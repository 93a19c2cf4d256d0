//! The signed anchor of an audit log: number of records and hash of the last one.
//!
//! A hash chain alone cannot reveal that its last records were removed. The anchor is stored in
//! `anchors/<site>.json`, apart from the log, and every append returns it so that the caller can
//! store it elsewhere. Invariants: the anchor is replaced while the log is locked and after the
//! record is on disk, so after a crash the log may have one record more than the anchor and never
//! fewer. A problem found by an append is repeated in every later anchor.

use super::chain::Tail;
use super::error::{AuditError, io};
use crate::attestation::{HostKey, KeyError, PublicKey};
use crate::dirfd::{Dir, ReadOutcome, write_all};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rustix::fs::{self, AtFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use wp_codebox_contracts::{Sha256Hex, SiteId};

const DIRECTORY: &str = "anchors";
/// Maximum size of the anchor file in bytes.
const MAX_ANCHOR: u64 = 16 * 1024;

/// Number of records and last hash of an audit log at one time, signed with the host key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditAnchor {
    /// Site that the log belongs to.
    site: SiteId,
    /// Sequence number of the last record, i.e. the number of records.
    seq: u64,
    /// Hash of the last record when the anchor was signed.
    head: Sha256Hex,
    /// Problem in the log, e.g. removed records, that this or an earlier append found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// Id of the host key that signed the anchor.
    key_id: Sha256Hex,
    /// Ed25519 signature over the other members, in base64.
    signature: String,
}

/// How a log contradicts its signed anchor (number of records and last hash), or why the anchor is
/// unusable.
#[derive(Debug, thiserror::Error)]
enum Mismatch {
    #[error("{count} record{} removed from the end of the audit log", if *.count == 1 { " was" } else { "s were" })]
    Removed { count: u64 },
    #[error(
        "record {seq} of the audit log was changed: its hash is not the one in the log's signed anchor in anchors/ of the state directory"
    )]
    Replaced { seq: u64 },
    #[error(
        "the last {count} records of the audit log are newer than the signed anchor (record number and hash) in anchors/: another program wrote the records, or replaced the anchor"
    )]
    Unanchored { count: u64 },
    #[error(
        "the signed anchor (number and hash of the last record) of the audit log is missing in anchors/ of the state directory"
    )]
    Missing,
    #[error(
        "the anchor (number and hash of the last record) of the audit log has no valid signature of this host"
    )]
    Unsigned,
}

/// Number of records in a log and the hashes of some of them. `AuditLog::read` collects the hashes
/// of the records that anchors name, `AuditLog::append` those of the last two records.
#[derive(Debug)]
pub(super) struct Extent {
    /// Number of records in the log.
    pub total: u64,
    /// Hashes of known records by sequence number.
    pub hashes: BTreeMap<u64, Sha256Hex>,
}

/// Location of the anchor file of a site.
#[derive(Debug)]
pub(super) struct AnchorFile {
    state: Dir,
    directory: Dir,
    site: SiteId,
}

/// The anchors with which a log is compared: the one in the anchor file, and the newest ones that
/// the caller stored for this host.
#[derive(Debug)]
pub(super) struct Anchors {
    /// Keys of this host; empty if it has none yet.
    keys: Vec<PublicKey>,
    site: SiteId,
    /// Anchor in the anchor file. `None`: no file exists. `Some(None)`: the file has no valid
    /// anchor.
    file: Option<Option<AuditAnchor>>,
    /// Anchors that the caller stored and that a key of this host signed, at most one for each key.
    /// `None`: malformed.
    stored: Vec<Option<AuditAnchor>>,
}

impl AnchorFile {
    pub(super) fn open(state_dir: &Dir, site: &SiteId) -> Result<Self, Errno> {
        Ok(Self {
            state: state_dir.dir(b".")?,
            directory: state_dir.private_dir(DIRECTORY)?,
            site: site.clone(),
        })
    }

    fn name(&self) -> String {
        format!("{}.json", self.site)
    }

    /// Returns the signing key, which is created on first use.
    pub(super) fn key(&self) -> Result<HostKey, AuditError> {
        Ok(HostKey::load_or_create(&self.state)?)
    }

    /// Reads the anchor file. `stored_anchors` has anchors by key id; anchors of other hosts
    /// belong to other logs and are ignored.
    pub(super) fn read(&self, stored_anchors: &Map<String, Value>) -> Result<Anchors, AuditError> {
        let key = match HostKey::load(&self.state) {
            Ok(key) => Some(key),
            Err(KeyError::Missing) => None,
            Err(error) => return Err(error.into()),
        };
        let file = match self.directory.read(self.name().as_bytes(), MAX_ANCHOR) {
            Ok((ReadOutcome::Bytes(bytes), _)) => Some(serde_json::from_slice(&bytes).ok()),
            Ok((ReadOutcome::TooLarge, _)) | Err(Errno::LOOP | Errno::INVAL) => Some(None),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(io("read", error)),
        };
        let keys = key.as_ref().map(HostKey::public_keys).unwrap_or_default();
        let stored = keys
            .iter()
            .filter_map(|key| stored_anchors.get(key.key_id().as_str()))
            .map(|anchor| serde_json::from_value(anchor.clone()).ok())
            .collect();
        Ok(Anchors {
            keys,
            site: self.site.clone(),
            file,
            stored,
        })
    }

    /// Replaces the anchor file.
    pub(super) fn write(&self, anchor: &AuditAnchor) -> Result<(), Errno> {
        let (name, temporary) = (self.name(), format!(".{}", self.name()));
        // A writer that died may have left this file. The lock on the log excludes other writers.
        match fs::unlinkat(&self.directory, temporary.as_str(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
        let file = self.directory.create(temporary.as_bytes())?;
        let bytes = serde_json::to_vec(anchor).map_err(|_| Errno::INVAL)?;
        write_all(&file, &bytes)?;
        fs::fsync(&file)?;
        fs::renameat(
            &self.directory,
            temporary.as_str(),
            &self.directory,
            name.as_str(),
        )
    }

    /// Syncs the directory, which makes the rename durable.
    pub(super) fn sync(&self) -> Result<(), Errno> {
        fs::fsync(&self.directory)
    }

    /// Signs the anchor in the file with the present key of the host. An anchor without a valid
    /// signature stays as it is.
    pub(super) fn sign_again(&self) -> Result<(), AuditError> {
        let anchors = self.read(&Map::new())?;
        let valid = |anchor: &AuditAnchor| anchors.signed(anchor);
        let Some(anchor) = anchors
            .file
            .as_ref()
            .and_then(|a| a.as_ref().filter(|a| valid(a)))
        else {
            return Ok(());
        };
        let tail = Tail {
            seq: anchor.seq,
            hash: anchor.head.clone(),
        };
        let signed = self.sign(&self.key()?, &tail, anchor.problem.clone());
        let written = self.write(&signed).and_then(|()| self.sync());
        written.map_err(|e| io("written", e))
    }

    /// Creates the signed anchor of a log that ends with `tail`.
    pub(super) fn sign(&self, key: &HostKey, tail: &Tail, problem: Option<String>) -> AuditAnchor {
        let mut anchor = AuditAnchor {
            site: self.site.clone(),
            seq: tail.seq,
            head: tail.hash.clone(),
            problem,
            key_id: key.public_half().key_id(),
            signature: String::new(),
        };
        anchor.signature = BASE64.encode(key.sign(&anchor.message()));
        anchor
    }
}

impl AuditAnchor {
    /// Returns the bytes that the signature covers. Only the last part is free text, so two
    /// different anchors never give the same bytes.
    fn message(&self) -> Vec<u8> {
        let problem = self.problem.as_deref().unwrap_or_default();
        format!(
            "wp-codebox audit anchor v1\n{}\n{}\n{}\n{problem}",
            self.site, self.seq, self.head
        )
        .into_bytes()
    }

    /// Returns how the log contradicts this anchor; `None` if it does not.
    fn mismatch(&self, log: &Extent) -> Option<Mismatch> {
        match log.hashes.get(&self.seq) {
            Some(hash) if *hash != self.head => Some(Mismatch::Replaced { seq: self.seq }),
            None if self.seq > log.total => Some(Mismatch::Removed {
                count: self.seq - log.total,
            }),
            _ => None,
        }
    }
}

impl Anchors {
    /// Returns the sequence numbers in the anchors. [`Extent::hashes`] must have the hashes of
    /// these records.
    pub(super) fn points(&self) -> Vec<u64> {
        self.file
            .iter()
            .chain(&self.stored)
            .flatten()
            .map(|anchor| anchor.seq)
            .collect()
    }

    /// Returns whether the anchor file exists.
    pub(super) const fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Describes a problem of the log, e.g. removed records, that this comparison or an earlier
    /// append found; `None` if there is none.
    pub(super) fn problem(&self, log: &Extent) -> Option<String> {
        let file = match &self.file {
            // One record without an anchor file is accepted: the process may have died between
            // writing the first record and its anchor.
            None => (log.total > 1).then(|| Mismatch::Missing.to_string()),
            Some(found) => self.judge(found.as_ref(), log, |anchor| {
                let count = log.total.saturating_sub(anchor.seq);
                (count > 1).then_some(Mismatch::Unanchored { count })
            }),
        };
        let mut stored = self.stored.iter();
        file.or_else(|| stored.find_map(|found| self.judge(found.as_ref(), log, |_| None)))
    }

    fn judge(
        &self,
        found: Option<&AuditAnchor>,
        log: &Extent,
        more: impl Fn(&AuditAnchor) -> Option<Mismatch>,
    ) -> Option<String> {
        let Some(anchor) = found.filter(|anchor| self.signed(anchor)) else {
            return Some(Mismatch::Unsigned.to_string());
        };
        anchor.problem.clone().or_else(|| {
            let mismatch = anchor.mismatch(log).or_else(|| more(anchor));
            mismatch.map(|m| m.to_string())
        })
    }

    fn signed(&self, anchor: &AuditAnchor) -> bool {
        let signature = BASE64.decode(&anchor.signature).unwrap_or_default();
        let verifies = |key: &PublicKey| key.verifies(&anchor.message(), &signature);
        anchor.site == self.site && self.keys.iter().any(verifies)
    }
}
