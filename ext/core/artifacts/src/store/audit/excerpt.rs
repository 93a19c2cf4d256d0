//! Finds the newest records of the audit log about given runs, or of given operations.
//!
//! The search does not verify the hash chain, so that listing bundles does not hash the whole log.
//! It reads at most the last [`SCANNED`] bytes of the file, which bounds its time.

use super::error::{MAX_LINE, io};
use super::{AuditEntry, AuditError, AuditLog, lock};
use crate::dirfd::read_pieces;
use crate::json::Json;
use rustix::fs::{self, FlockOperation, OFlags, SeekFrom};
use rustix::io::Errno;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Bytes at the end of the log that are searched.
const SCANNED: u64 = 64 * 1024 * 1024;
/// Members of a record that can contain a run id. If a request failed before its bundle was found,
/// `artifact_id` is the id that the caller gave, which may be a run id.
const NAMES: [&str; 2] = ["run_id", "artifact_id"];

/// Maps the `event` of a record to the operation to which the record belongs. An operation can have
/// two events, one for its start and one for its end.
pub type AuditOperations = BTreeMap<String, String>;

/// Records that a search selects.
enum Selection<'a> {
    /// Records that name one of the runs.
    Runs(&'a BTreeSet<String>),
    /// Records of the operations with a sequence number lower than the second value. The start of
    /// an operation is left out if a later record is its end.
    Operations(&'a AuditOperations, u64),
}

/// Result of a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditExcerpt {
    /// The newest selected records, oldest first.
    #[serde(rename = "records")]
    pub entries: Vec<AuditEntry>,
    /// Whether the whole log was searched and `entries` has every selected record.
    pub complete: bool,
    /// Time in RFC 3339; `entries` has all selected records that are later, and may lack earlier
    /// ones. So no record is missing for a run that began later. `None` if nothing was left out, or
    /// if the searched part of the log has no record with a time.
    pub since: Option<String>,
}

impl AuditLog {
    /// Returns the newest `most` records that name one of `runs`. Searches the end of the log.
    pub fn about(&self, runs: &BTreeSet<String>, most: usize) -> Result<AuditExcerpt, AuditError> {
        self.about_within(runs, most, SCANNED)
    }

    /// Returns the newest `most` records of these operations that have a sequence number lower than
    /// `before`. Searches the end of the log.
    pub fn of_operations(
        &self,
        operations: &AuditOperations,
        before: u64,
        most: usize,
    ) -> Result<AuditExcerpt, AuditError> {
        self.search(Selection::Operations(operations, before), most, SCANNED)
    }

    /// Returns the newest `most` records that name one of `runs`. Searches the last `scanned` bytes
    /// of the log.
    pub(super) fn about_within(
        &self,
        runs: &BTreeSet<String>,
        most: usize,
        scanned: u64,
    ) -> Result<AuditExcerpt, AuditError> {
        self.search(Selection::Runs(runs), most, scanned)
    }

    fn search(
        &self,
        selection: Selection<'_>,
        most: usize,
        scanned: u64,
    ) -> Result<AuditExcerpt, AuditError> {
        let mut excerpt = Excerpt {
            selection,
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
                // No record is this long, so the line is damaged and the rest of it is skipped.
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
    selection: Selection<'a>,
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
        // A search in the text skips most lines without parsing them.
        let Ok(text) = std::str::from_utf8(line) else {
            return;
        };
        if !self.selection.is_possible(text) {
            return;
        }
        let Some(Value::Object(members)) = Json::parse(line).ok().map(|r| r.to_value()) else {
            return;
        };
        let entry = AuditEntry(members);
        if let Selection::Operations(operations, _) = &self.selection
            && let Some(operation) = operations.get(member(&entry, "event"))
            && !is_start(&entry)
        {
            let same = |start: &AuditEntry| {
                is_start(start)
                    && operations.get(member(start, "event")) == Some(operation)
                    && run(start) == run(&entry)
            };
            // The end removes only the last start before it. An earlier start remains: its process
            // died, so it has no end.
            if let Some(start) = self.entries.iter().rposition(same) {
                self.entries.remove(start);
            }
        }
        if self.selection.has(&entry) {
            self.entries.push_back(entry);
            if self.entries.len() > self.most {
                let dropped = self.entries.pop_front();
                let time = dropped.as_ref().map(|entry| member(entry, "timestamp"));
                self.since = time.map(str::to_owned);
                self.complete = false;
            }
        }
    }

    fn end(self) -> AuditExcerpt {
        AuditExcerpt {
            entries: self.entries.into(),
            complete: self.complete,
            since: self.since,
        }
    }
}

impl Selection<'_> {
    /// Returns whether the line contains, at any level of the record, a member with a name and
    /// value that this selection looks for. Run ids and events contain no character that JSON
    /// escapes.
    fn is_possible(&self, line: &str) -> bool {
        let any = |name: &str, is_value: &dyn Fn(&str) -> bool| {
            let key = format!("\"{name}\":\"");
            line.match_indices(&key).any(|(at, _)| {
                let rest = &line[at + key.len()..];
                is_value(rest.split('"').next().unwrap_or_default())
            })
        };
        match self {
            Self::Runs(runs) => NAMES
                .iter()
                .any(|name| any(name, &|value| runs.contains(value))),
            Self::Operations(operations, _) => {
                any("event", &|value| operations.contains_key(value))
            }
        }
    }

    fn has(&self, entry: &AuditEntry) -> bool {
        match self {
            Self::Runs(runs) => NAMES.iter().any(|name| runs.contains(member(entry, name))),
            Self::Operations(operations, before) => {
                let number = entry.0.get("seq").and_then(Value::as_u64);
                operations.contains_key(member(entry, "event"))
                    && number.is_some_and(|number| number < *before)
            }
        }
    }
}

/// Returns a text member of a record; `""` if it has none.
fn member<'a>(entry: &'a AuditEntry, name: &str) -> &'a str {
    let value = entry.0.get(name).and_then(Value::as_str);
    value.unwrap_or_default()
}

fn run(entry: &AuditEntry) -> &str {
    match member(entry, "run_id") {
        "" => member(entry, "artifact_id"),
        run => run,
    }
}

fn is_start(entry: &AuditEntry) -> bool {
    member(entry, "status") == "started"
}
