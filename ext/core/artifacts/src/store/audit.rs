//! The audit log: append-only, hash-chained, one JSON object per line.
//!
//! `hash = sha256(previous + "\n" + canonical JSON of the record without hash)`; the record
//! contains `seq` and `previous`.
//! Invariants: a file lock makes writers wait for each other. A line is written completely or
//! removed again. If a writer dies and leaves an unfinished last line, it has not reported success,
//! and the next writer removes the line. A signed anchor (number of records and hash of the last
//! one) shows if records were removed from the end.

mod anchor;
mod chain;
mod entry;
mod error;
mod excerpt;
mod verified;

use crate::bundle::Scrubber;
use crate::canonical::{OverLimit, canonical_json, canonical_value};
use crate::dirfd::{Dir, read_pieces, write_all};
use crate::json::Json;
use rustix::fd::OwnedFd;
use rustix::fs::{self, FileType, FlockOperation, Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, VecDeque};
use std::time::SystemTime;
use wp_codebox_contracts::{Sha256Hex, SiteId};
use wp_codebox_policy::Redactor;

pub use anchor::AuditAnchor;
use anchor::{AnchorFile, Anchors, Extent};
use chain::{Tail, claim, link, start};
pub use entry::{AuditEntry, AuditWindow};
pub use error::AuditError;
use error::{MAX_LINE, io};
pub use excerpt::{AuditExcerpt, AuditOperations};
pub use verified::VerifiedLog;
use verified::{Next, Offsets, each_line};

const FILE: &str = "audit.jsonl";

/// A record that was appended, and the signed anchor (number of records and last hash) of the log
/// after it.
#[derive(Debug, Clone, PartialEq)]
pub struct Appended {
    /// The record as written, with its sequence number, time and hashes.
    pub entry: AuditEntry,
    /// Signed number of records and last hash of the log after this record. The caller stores it
    /// outside the state directory, under the id of the signing key, and passes it to later reads,
    /// which then detect removed records.
    pub anchor: AuditAnchor,
}

/// Entries of the log, and whether its chain is valid.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditReading {
    /// Whether every record continues the hash chain and the log contradicts no signed anchor
    /// (number of records and last hash at an earlier time).
    pub valid: bool,
    /// The entries that the caller asked for, oldest first.
    pub entries: Vec<AuditEntry>,
    /// Number of lines in the log.
    pub total: u64,
    /// Number of the first line that breaks the chain, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken_at: Option<u64>,
    /// Why the log is not valid, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Hash of the last record; 64 zeros for an empty log.
    pub head: Sha256Hex,
}

/// The append-only, hash-chained audit log of a site.
#[derive(Debug)]
pub struct AuditLog {
    site: Dir,
    anchor: AnchorFile,
}

impl AuditLog {
    /// Opens the log of the site. Creates the site's directory with mode 0700 if it is missing.
    pub fn open(state_dir: &Dir, site: &SiteId) -> Result<Self, AuditError> {
        let opened = |e| io("opened", e);
        Ok(Self {
            site: super::site_dir(state_dir, site).map_err(opened)?,
            anchor: AnchorFile::open(state_dir, site).map_err(opened)?,
        })
    }

    /// Redacts and appends one record and returns it as written. `timestamp` is in RFC 3339,
    /// UTC. Members `seq`, `timestamp`, `previous` and `hash` of the given record are replaced.
    /// `stored_anchors` maps the id of a host key to the newest [`Appended::anchor`] that the
    /// caller has of that key.
    pub fn append(
        &self,
        record: &Map<String, Value>,
        timestamp: &str,
        redactor: &Redactor,
        stored_anchors: &Map<String, Value>,
    ) -> Result<Appended, AuditError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND;
        let file = self.file(flags).map_err(|e| io("opened", e))?;
        lock(&file, FlockOperation::LockExclusive)?;
        // Loaded after the log is locked: a rotation replaces the key first and then waits for this
        // lock, so the anchor has the new signature in the end.
        let key = self.anchor.key()?;
        let Ending { tail, before, end } = ending(&file)?;
        let mut hashes = BTreeMap::from([(tail.seq, tail.hash.clone())]);
        hashes.extend(before.map(|hash| (tail.seq - 1, hash)));
        let total = tail.seq;
        let problem = self
            .anchor
            .read(stored_anchors)?
            .problem(&Extent { total, hashes });
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
        let seq = tail.seq + 1;
        let anchor = self.anchor.sign(&key, &Tail { seq, hash }, problem);
        let written = write_all(&file, &line)
            .and_then(|()| fs::fdatasync(&file))
            .and_then(|()| self.anchor.write(&anchor));
        if let Err(error) = written {
            // A record without its anchor must not remain. If the truncation fails too, the next
            // writer removes a partial line; a complete line remains.
            let _ = fs::ftruncate(&file, end);
            return Err(io("written", error));
        }
        self.anchor.sync().map_err(|e| io("written", e))?;
        let entry = AuditEntry(entry);
        Ok(Appended { entry, anchor })
    }

    /// Signs the anchor of the log with the present key of the host, after a rotation of the key.
    /// What the anchor states stays: a log that contradicts it still does.
    pub fn sign_anchor_again(&self) -> Result<(), AuditError> {
        match self.file(OFlags::RDONLY) {
            Ok(file) => {
                lock(&file, FlockOperation::LockExclusive)?;
                self.anchor.sign_again()
            }
            // The log was removed. The anchor tells so, as long as its signature is valid.
            Err(Errno::NOENT) => self.anchor.sign_again(),
            Err(error) => Err(io("opened", error)),
        }
    }

    /// Reads and verifies the whole chain and returns the selected entries. `stored_anchors` maps
    /// the id of a host key to the newest [`Appended::anchor`] that the caller has of that key.
    pub fn read(
        &self,
        window: AuditWindow,
        stored_anchors: &Map<String, Value>,
    ) -> Result<AuditReading, AuditError> {
        let now = SystemTime::now();
        self.read_again(window, stored_anchors, &mut VerifiedLog::default(), now)
    }

    /// Like [`Self::read`], but verifies the chain only if `verified` has no result for the present
    /// contents of the file. The log is compared with the anchors each time.
    pub fn read_again(
        &self,
        window: AuditWindow,
        stored_anchors: &Map<String, Value>,
        verified: &mut VerifiedLog,
        now: SystemTime,
    ) -> Result<AuditReading, AuditError> {
        let (log, anchors) = self.open_to_read(stored_anchors)?;
        if let Some(file) = &log
            && verified.fits(file, &anchors.points())?
            && let Some((extent, head, entries)) = verified.page(file, window)?
        {
            let problem = anchors.problem(&extent);
            return Ok(AuditReading {
                valid: problem.is_none(),
                entries,
                total: extent.total,
                broken_at: None,
                problem,
                head,
            });
        }
        verified.forget();
        let mut offsets = Offsets::default();
        let mut reading = Reading {
            line: 0,
            tail: start(),
            broken_at: None,
            entries: VecDeque::new(),
            window,
            points: anchors.points(),
            hashes: BTreeMap::new(),
        };
        if let Some(file) = &log {
            each_line(file, |line| {
                offsets.add(line.len() + 1);
                reading.take(line);
                Next::Line
            })?;
        }
        let extent = Extent {
            total: reading.line,
            hashes: reading.hashes,
        };
        let problem = match reading.broken_at {
            Some(line) => Some(format!(
                "record {line} or an earlier one was changed, moved or removed"
            )),
            None => anchors.problem(&extent),
        };
        if let (Some(file), None) = (&log, &problem) {
            verified.remember(file, now, &extent, &reading.tail.hash, offsets)?;
        }
        Ok(AuditReading {
            valid: problem.is_none(),
            entries: reading.entries.into(),
            total: extent.total,
            broken_at: reading.broken_at,
            problem,
            head: reading.tail.hash,
        })
    }

    /// Opens and locks the log and reads its anchors.
    fn open_to_read(
        &self,
        stored_anchors: &Map<String, Value>,
    ) -> Result<(Option<OwnedFd>, Anchors), AuditError> {
        let mut again = true;
        loop {
            let file = match self.file(OFlags::RDONLY) {
                Ok(file) => Some(file),
                Err(Errno::NOENT) => None,
                Err(error) => return Err(io("opened", error)),
            };
            if let Some(file) = &file {
                lock(file, FlockOperation::LockShared)?;
            }
            let anchors = self.anchor.read(stored_anchors)?;
            // The log was missing, but its anchor exists now: the first append may have created
            // both after the attempt to open the log. A log that was removed is still missing in
            // the second attempt.
            if file.is_none() && anchors.has_file() && again {
                again = false;
                continue;
            }
            return Ok((file, anchors));
        }
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

/// The last record of the log and the end of its line.
struct Ending {
    tail: Tail,
    /// Hash of the record before the last one.
    before: Option<Sha256Hex>,
    /// Length of the file without an unfinished last line.
    end: u64,
}

fn ending(file: &OwnedFd) -> Result<Ending, AuditError> {
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
        return Ok(Ending {
            tail: start(),
            before: None,
            end: 0,
        });
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
    let before = record.get("previous").and_then(Json::as_str);
    Ok(Ending {
        tail: claim(&record).ok_or(AuditError::Damaged)?,
        before: before.and_then(|hash| Sha256Hex::new(hash).ok()),
        end,
    })
}

/// State of a reader that verifies the chain line by line.
struct Reading {
    line: u64,
    tail: Tail,
    broken_at: Option<u64>,
    entries: VecDeque<AuditEntry>,
    window: AuditWindow,
    /// Sequence numbers that the anchors state. The reader collects the hashes of these records to
    /// compare them with the anchors.
    points: Vec<u64>,
    hashes: BTreeMap<u64, Sha256Hex>,
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
                // Continues with the number and hash that this record states, so that a single
                // break is reported once and not for every later record.
                if let Some(claimed) = record.as_ref().and_then(claim) {
                    self.tail = claimed;
                }
            }
        }
        if self.points.contains(&self.tail.seq) {
            self.hashes.insert(self.tail.seq, self.tail.hash.clone());
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
                // A damaged record without a sequence number is selected by its line number.
                let number = members.get("seq").and_then(Value::as_u64);
                if number.unwrap_or(self.line) > seq && self.entries.len() < limit {
                    self.entries.push_back(AuditEntry(members));
                }
            }
        }
    }

    /// Returns number and hash of the record if it correctly continues the chain.
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

#[cfg(test)]
mod tests;
