//! The audit log: append-only, hash-chained, one JSON object per line.
//!
//! `hash = sha256(previous + "\n" + canonical JSON of the record without hash)`, where the record
//! carries `seq` and `previous`. Invariants: writers are serialised by a lock; a line is
//! written whole or taken back; an unfinished last line, whose writer never heard of success, is
//! removed by the next one. A cut-off tail shows only against a head kept elsewhere.

use crate::beneath::{Dir, read_pieces, write_all};
use crate::bundle::Scrubber;
use crate::canonical::{CanonicalError, OverLimit, canonical_json, canonical_value};
use crate::digest::sha256;
use crate::json::Json;
use rustix::fd::OwnedFd;
use rustix::fs::{self, FileType, FlockOperation, Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use wp_codebox_contracts::{ErrorBody, ErrorCode, Sha256Hex, SiteId};
use wp_codebox_policy::Redactor;

const FILE: &str = "audit.jsonl";
/// Longest line.
const MAX_LINE: usize = 1024 * 1024;

/// Why the audit log failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// It could not be read or written.
    #[error("the audit log could not be {step}; check owner and free space of the state directory")]
    Io {
        /// `opened`, `locked`, `read` or `written`.
        step: &'static str,
        /// The cause.
        #[source]
        source: Errno,
    },
    /// Its last line is no record.
    #[error(
        "the last line of audit.jsonl is damaged; keep the file for inspection and move it away to start a new chain"
    )]
    Damaged,
    /// The record is too large.
    #[error("an audit record may have {MAX_LINE} bytes at most")]
    TooLarge,
    /// The record has no canonical form.
    #[error("the audit record has no canonical form")]
    Canonical(#[from] CanonicalError),
}

impl AuditError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Io { .. } | Self::Damaged | Self::TooLarge | Self::Canonical(_) => {
                ErrorCode::AuditFailed
            }
        }
    }
    /// As it crosses a border.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        ErrorBody::new(self.code(), self.to_string())
    }
}

const fn io(step: &'static str, source: Errno) -> AuditError {
    AuditError::Io { step, source }
}

/// One line: the record with `seq`, `timestamp`, `previous` and `hash`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct AuditEntry(pub Map<String, Value>);

/// Which entries a reading keeps. The chain is checked from its beginning whatever is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditWindow {
    /// The newest so many.
    Newest(usize),
    /// Entries whose `seq` is greater, at most so many.
    After {
        /// Sequence number.
        seq: u64,
        /// How many.
        limit: usize,
    },
}

/// What reading the log found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditReading {
    /// Whether the whole chain holds.
    pub valid: bool,
    /// The entries asked for, oldest first.
    pub entries: Vec<AuditEntry>,
    /// Lines of the log.
    pub total: u64,
    /// Line, from 1, where the chain breaks first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken_at: Option<u64>,
    /// Hash of the last entry; 64 zeros for an empty log.
    pub head: Sha256Hex,
}

/// The append-only, hash-chained audit log of a site.
#[derive(Debug)]
pub struct AuditLog {
    site: Dir,
}

/// Where the chain stands.
struct Tail {
    seq: u64,
    hash: Sha256Hex,
}

impl AuditLog {
    /// Opens the site's log; the site's directory is made (0700) when missing.
    pub fn open(state_dir: &Dir, site: &SiteId) -> Result<Self, AuditError> {
        let site = super::site_dir(state_dir, site).map_err(|e| io("opened", e))?;
        Ok(Self { site })
    }

    /// Appends one record, redacted, and answers it as written. `timestamp`: RFC 3339, UTC.
    /// `seq`, `timestamp`, `previous` and `hash` of the record itself are replaced.
    pub fn append(
        &self,
        record: &Map<String, Value>,
        timestamp: &str,
        redactor: &Redactor,
    ) -> Result<AuditEntry, AuditError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND;
        let file = self.file(flags).map_err(|e| io("opened", e))?;
        lock(&file, FlockOperation::LockExclusive)?;
        let (tail, end) = tail(&file)?;
        let mut entry = Map::new();
        entry.insert("seq".to_owned(), (tail.seq + 1).into());
        entry.insert("timestamp".to_owned(), timestamp.into());
        entry.insert("previous".to_owned(), tail.hash.as_str().into());
        for (key, value) in Scrubber::new(redactor).map(record) {
            if key != "hash" && !entry.contains_key(&key) {
                entry.insert(key, value);
            }
        }
        let body = Value::Object(entry.clone());
        let hash = link(&tail.hash, &canonical_value(&body, OverLimit::Refuse)?);
        entry.insert("hash".to_owned(), hash.as_str().into());
        let mut line = Value::Object(entry.clone()).to_string().into_bytes();
        line.push(b'\n');
        if line.len() > MAX_LINE {
            return Err(AuditError::TooLarge);
        }
        let written = write_all(&file, &line).and_then(|()| fs::fdatasync(&file));
        if let Err(error) = written {
            // Half a line must not stay; if even this fails, the next writer removes it.
            let _ = fs::ftruncate(&file, end);
            return Err(io("written", error));
        }
        Ok(AuditEntry(entry))
    }

    /// Reads and checks the whole chain, keeping the entries of a window.
    pub fn read(&self, window: AuditWindow) -> Result<AuditReading, AuditError> {
        let mut reading = Reading {
            line: 0,
            tail: start(),
            broken_at: None,
            entries: VecDeque::new(),
            window,
        };
        match self.file(OFlags::RDONLY) {
            Ok(file) => {
                lock(&file, FlockOperation::LockShared)?;
                let mut pending = Vec::new();
                read_pieces(&file, |piece| {
                    pending.extend_from_slice(piece);
                    while let Some(end) = pending.iter().position(|b| *b == b'\n') {
                        let line: Vec<u8> = pending.drain(..=end).collect();
                        reading.take(&line[..end]);
                    }
                    if pending.len() > MAX_LINE {
                        reading.take(b"");
                        pending.clear();
                    }
                    Ok(())
                })
                .map_err(|e| io("read", e))?;
                if !pending.is_empty() {
                    reading.take(b"");
                }
            }
            Err(Errno::NOENT) => {}
            Err(error) => return Err(io("opened", error)),
        }
        Ok(AuditReading {
            valid: reading.broken_at.is_none(),
            entries: reading.entries.into(),
            total: reading.line,
            broken_at: reading.broken_at,
            head: reading.tail.hash,
        })
    }

    fn file(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = fs::openat(&self.site, FILE, flags, Mode::from_raw_mode(0o600))?;
        let kind = FileType::from_raw_mode(fs::fstat(&file)?.st_mode);
        if kind == FileType::RegularFile {
            Ok(file)
        } else {
            Err(Errno::INVAL)
        }
    }
}

fn lock(file: &OwnedFd, operation: FlockOperation) -> Result<(), AuditError> {
    loop {
        match fs::flock(file, operation) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(io("locked", error)),
        }
    }
}

fn start() -> Tail {
    Tail {
        seq: 0,
        hash: Sha256Hex::zero(),
    }
}

fn link(previous: &Sha256Hex, canonical: &str) -> Sha256Hex {
    sha256(format!("{previous}\n{canonical}").as_bytes())
}

/// The last record, and the length of the log without an unfinished line.
fn tail(file: &OwnedFd) -> Result<(Tail, u64), AuditError> {
    let fail = |e| io("read", e);
    let length = fs::seek(file, SeekFrom::End(0)).map_err(fail)?;
    let from = length.saturating_sub(2 * MAX_LINE as u64);
    fs::seek(file, SeekFrom::Start(from)).map_err(fail)?;
    let mut bytes = Vec::new();
    read_pieces(file, |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    })
    .map_err(fail)?;
    let Some(last) = bytes.iter().rposition(|b| *b == b'\n') else {
        if from > 0 {
            return Err(AuditError::Damaged);
        }
        fs::ftruncate(file, 0).map_err(|e| io("written", e))?;
        return Ok((start(), 0));
    };
    let end = from + last as u64 + 1;
    if end < length {
        fs::ftruncate(file, end).map_err(|e| io("written", e))?;
    }
    let begin = bytes[..last]
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    let record = Json::parse(&bytes[begin..last]).map_err(|_| AuditError::Damaged)?;
    let hash = record.get("hash").and_then(Json::as_str);
    let seq = record.get("seq").and_then(Json::as_f64);
    match (hash.and_then(|h| Sha256Hex::new(h).ok()), seq) {
        (Some(hash), Some(seq)) if seq >= 1.0 => Ok((
            Tail {
                seq: seq as u64,
                hash,
            },
            end,
        )),
        _ => Err(AuditError::Damaged),
    }
}

/// The chain as far as it was read.
struct Reading {
    line: u64,
    tail: Tail,
    broken_at: Option<u64>,
    entries: VecDeque<AuditEntry>,
    window: AuditWindow,
}

impl Reading {
    fn take(&mut self, line: &[u8]) {
        self.line += 1;
        let record = Json::parse(line).ok();
        let holds = record.as_ref().and_then(|r| self.next(r));
        match holds {
            Some(tail) => self.tail = tail,
            None => {
                self.broken_at.get_or_insert(self.line);
                // Later lines are judged by what this one claims, to name one break only.
                if let Some(claimed) = record.as_ref().and_then(claim) {
                    self.tail = claimed;
                }
            }
        }
        if let Some(Value::Object(members)) = record.map(|r| r.to_value()) {
            self.keep(members);
        }
    }

    fn keep(&mut self, members: Map<String, Value>) {
        match self.window {
            AuditWindow::Newest(most) => {
                self.entries.push_back(AuditEntry(members));
                if self.entries.len() > most {
                    self.entries.pop_front();
                }
            }
            AuditWindow::After { seq, limit } => {
                // A damaged record without a number is shown where it stands.
                let number = members.get("seq").and_then(Value::as_u64);
                if number.unwrap_or(self.line) > seq && self.entries.len() < limit {
                    self.entries.push_back(AuditEntry(members));
                }
            }
        }
    }

    /// The new end of the chain, if the record continues it.
    fn next(&self, record: &Json) -> Option<Tail> {
        let claimed = claim(record)?;
        let previous = record.get("previous").and_then(Json::as_str)?;
        let body: Vec<_> = record
            .as_object()?
            .iter()
            .filter(|(key, _)| key.as_str() != Some("hash"))
            .cloned()
            .collect();
        let text = canonical_json(&Json::Object(body), OverLimit::Refuse).ok()?;
        let holds = claimed.seq == self.tail.seq + 1
            && previous == self.tail.hash.as_str()
            && claimed.hash == link(&self.tail.hash, &text);
        holds.then_some(claimed)
    }
}

fn claim(record: &Json) -> Option<Tail> {
    let hash = Sha256Hex::new(record.get("hash")?.as_str()?).ok()?;
    let seq = record.get("seq")?.as_f64().filter(|s| *s >= 1.0)?;
    Some(Tail {
        seq: seq as u64,
        hash,
    })
}

#[cfg(test)]
mod tests;
