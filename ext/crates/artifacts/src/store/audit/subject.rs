//! Records of the audit log about some runs.
//!
//! The reader does not verify the hash chain: a list of bundles must not hash the whole log. It
//! starts at most [`SCANNED`] bytes before the end of the file, so its time has a bound.

use super::error::{MAX_LINE, io};
use super::{AuditEntry, AuditError, AuditLog, lock};
use crate::dirfd::read_pieces;
use crate::json::Json;
use rustix::fs::{self, FlockOperation, OFlags, SeekFrom};
use rustix::io::Errno;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeSet, VecDeque};

/// Bytes at the end of the log that are searched.
const SCANNED: u64 = 64 * 1024 * 1024;
/// Members that name a run. A record of a request that failed before its bundle was found has the
/// reference of the caller in `artifact_id`.
const NAMES: [&str; 2] = ["run_id", "artifact_id"];

/// Records about some runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditExcerpt {
    /// The newest of these records, oldest first.
    pub entries: Vec<AuditEntry>,
    /// Whether the log has no older record about these runs.
    pub complete: bool,
    /// Time of the first record that was searched, when older ones were not. A run that began later
    /// has no older record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

impl AuditLog {
    /// Returns the newest `most` records that name one of `runs`, from the end of the log.
    pub fn about(&self, runs: &BTreeSet<String>, most: usize) -> Result<AuditExcerpt, AuditError> {
        self.about_within(runs, most, SCANNED)
    }

    /// Searches the last `scanned` bytes of the log.
    pub(super) fn about_within(
        &self,
        runs: &BTreeSet<String>,
        most: usize,
        scanned: u64,
    ) -> Result<AuditExcerpt, AuditError> {
        let mut excerpt = Excerpt {
            runs,
            most,
            entries: VecDeque::new(),
            complete: true,
            since: None,
        };
        let file = match self.file(OFlags::RDONLY) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(excerpt.end()),
            Err(error) => return Err(io("opened", error)),
        };
        lock(&file, FlockOperation::LockShared)?;
        let fail = |e| io("read", e);
        let length = fs::seek(&file, SeekFrom::End(0)).map_err(fail)?;
        let from = length.saturating_sub(scanned);
        fs::seek(&file, SeekFrom::Start(from)).map_err(fail)?;
        excerpt.complete = from == 0;
        // The first line may have begun before `from`.
        let mut skip = from > 0;
        let mut pending = Vec::new();
        read_pieces(&file, |piece| {
            pending.extend_from_slice(piece);
            let mut begin = 0;
            while let Some(length) = pending[begin..].iter().position(|b| *b == b'\n') {
                if !std::mem::take(&mut skip) {
                    excerpt.take(&pending[begin..begin + length]);
                }
                begin += length + 1;
            }
            pending.drain(..begin);
            if pending.len() > MAX_LINE {
                // No record is this long; what follows up to the next line end belongs to it.
                pending.clear();
                skip = true;
            }
            Ok(())
        })
        .map_err(fail)?;
        Ok(excerpt.end())
    }
}

struct Excerpt<'a> {
    runs: &'a BTreeSet<String>,
    most: usize,
    entries: VecDeque<AuditEntry>,
    complete: bool,
    since: Option<String>,
}

impl Excerpt<'_> {
    fn take(&mut self, line: &[u8]) {
        if !self.complete && self.since.is_none() {
            let record = Json::parse(line).ok();
            let time = record.as_ref().and_then(|r| r.get("timestamp"));
            self.since = time.and_then(Json::as_str).map(str::to_owned);
        }
        // Most lines are about other runs; they are not parsed.
        let Ok(text) = std::str::from_utf8(line) else {
            return;
        };
        if !NAMES.iter().any(|name| self.mentions(text, name)) {
            return;
        }
        let Some(Value::Object(members)) = Json::parse(line).ok().map(|r| r.to_value()) else {
            return;
        };
        let named = |name: &&str| {
            let value = members.get(*name).and_then(Value::as_str);
            value.is_some_and(|run| self.runs.contains(run))
        };
        if NAMES.iter().any(named) {
            self.entries.push_back(AuditEntry(members));
            if self.entries.len() > self.most {
                let dropped = self.entries.pop_front();
                let time = dropped.as_ref().and_then(|entry| entry.0.get("timestamp"));
                self.since = time.and_then(Value::as_str).map(str::to_owned);
                self.complete = false;
            }
        }
    }

    /// Whether a member with this name anywhere in the line holds one of the runs. Ids of runs need
    /// no escapes in JSON.
    fn mentions(&self, line: &str, name: &str) -> bool {
        let key = format!("\"{name}\":\"");
        line.match_indices(&key).any(|(at, _)| {
            let rest = &line[at + key.len()..];
            let value = rest.split('"').next().unwrap_or_default();
            self.runs.contains(value)
        })
    }

    fn end(self) -> AuditExcerpt {
        AuditExcerpt {
            entries: self.entries.into(),
            complete: self.complete,
            since: self.since,
        }
    }
}
