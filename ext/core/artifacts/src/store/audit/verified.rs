//! Result of verifying a log, for further reads of the unchanged file.
//!
//! A verification hashes every record. While inode, size and times of the file stay the same, its
//! bytes are the verified ones, so a later read needs only the records that it returns. The result
//! is kept in the memory of this process and not in the state directory, where a process that can
//! change the log could forge the result. It is kept only for a log without a problem.

use super::anchor::Extent;
use super::entry::{AuditEntry, AuditWindow};
use super::error::{AuditError, MAX_LINE, io};
use crate::dirfd::read_pieces;
use crate::json::Json;
use rustix::fd::OwnedFd;
use rustix::fs::{self, SeekFrom, Stat};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wp_codebox_contracts::Sha256Hex;

/// Number of records from one remembered offset to the next.
const STEP: u64 = 256;
/// Minimum age of the last change of a log whose verification is remembered. File systems state
/// times in steps of up to two seconds, so a change in the same step would not change the time.
const SETTLED: Duration = Duration::from_secs(3);

/// What the kernel states about a file and changes with every write to it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Version {
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Version {
    fn of(stat: &Stat) -> Self {
        // The types of these members differ between architectures.
        #[allow(clippy::unnecessary_cast)]
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: stat.st_size as i64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }

    /// Returns whether the last change was long enough before `now`.
    fn is_settled(&self, now: SystemTime) -> bool {
        let seconds = u64::try_from(self.changed.0).unwrap_or(u64::MAX);
        let changed = UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        changed.is_some_and(|changed| now.duration_since(changed).is_ok_and(|age| age > SETTLED))
    }
}

/// Result of the last complete verification of a log by this process. The caller keeps it between
/// reads; a default value has none.
#[derive(Debug, Default)]
pub struct VerifiedLog {
    found: Option<Found>,
}

#[derive(Debug)]
struct Found {
    version: Version,
    total: u64,
    head: Sha256Hex,
    hashes: BTreeMap<u64, Sha256Hex>,
    offsets: Offsets,
}

impl VerifiedLog {
    /// Creates a value without a result.
    #[must_use]
    pub const fn new() -> Self {
        Self { found: None }
    }

    /// Returns whether the remembered result is for the present contents of the file, and contains
    /// the hashes of those records `points` (sequence numbers) that the log has.
    pub(super) fn fits(&self, file: &OwnedFd, points: &[u64]) -> Result<bool, AuditError> {
        let version = Version::of(&fs::fstat(file).map_err(|e| io("read", e))?);
        Ok(self.found.as_ref().is_some_and(|found| {
            let mut points = points.iter();
            found.version == version
                && points.all(|seq| *seq > found.total || found.hashes.contains_key(seq))
        }))
    }

    /// Returns number of records, head and hashes of the verified log, and the entries of `window`,
    /// which are read from the file.
    pub(super) fn page(
        &self,
        file: &OwnedFd,
        window: AuditWindow,
    ) -> Result<Option<(Extent, Sha256Hex, Vec<AuditEntry>)>, AuditError> {
        let Some(found) = &self.found else {
            return Ok(None);
        };
        let (first, count) = match window {
            AuditWindow::Newest(most) => {
                let count = found.total.min(most as u64);
                (found.total - count, count)
            }
            AuditWindow::After { seq, limit } => {
                let left = found.total.saturating_sub(seq);
                (seq, left.min(limit as u64))
            }
        };
        let entries = found.offsets.read(file, first, count)?;
        let extent = Extent {
            total: found.total,
            hashes: found.hashes.clone(),
        };
        Ok(Some((extent, found.head.clone(), entries)))
    }

    /// Remembers the result of a verification that found no problem and began at `now`, unless the
    /// log changed less than [`SETTLED`] before. Forgets the earlier result.
    pub(super) fn remember(
        &mut self,
        file: &OwnedFd,
        now: SystemTime,
        extent: &Extent,
        head: &Sha256Hex,
        offsets: Offsets,
    ) -> Result<(), AuditError> {
        let version = Version::of(&fs::fstat(file).map_err(|e| io("read", e))?);
        self.found = version.is_settled(now).then(|| Found {
            version,
            total: extent.total,
            head: head.clone(),
            hashes: extent.hashes.clone(),
            offsets,
        });
        Ok(())
    }

    /// Forgets the result.
    pub(super) fn forget(&mut self) {
        self.found = None;
    }
}

/// Offsets of every [`STEP`]th line of a log.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    lines: u64,
    /// Offset of the next line.
    next: u64,
    marks: Vec<u64>,
}

impl Offsets {
    /// Adds a line of `length` bytes including its line feed.
    pub(super) fn add(&mut self, length: usize) {
        if self.lines.is_multiple_of(STEP) {
            self.marks.push(self.next);
        }
        self.lines += 1;
        self.next += length as u64;
    }

    /// Reads `count` records after the first `skipped` ones.
    fn read(
        &self,
        file: &OwnedFd,
        skipped: u64,
        count: u64,
    ) -> Result<Vec<AuditEntry>, AuditError> {
        let failed = |e| io("read", e);
        let mark = usize::try_from(skipped / STEP).ok();
        let Some(begin) = mark.and_then(|mark| self.marks.get(mark)) else {
            return Ok(Vec::new());
        };
        fs::seek(file, SeekFrom::Start(*begin)).map_err(failed)?;
        let mut skip = skipped % STEP;
        let mut entries = Vec::new();
        each_line(file, |line| {
            if skip > 0 {
                skip -= 1;
            } else if (entries.len() as u64) < count {
                let record = Json::parse(line).ok().map(|record| record.to_value());
                if let Some(Value::Object(members)) = record {
                    entries.push(AuditEntry(members));
                }
            }
            match (entries.len() as u64) < count {
                true => Next::Line,
                false => Next::End,
            }
        })?;
        Ok(entries)
    }
}

/// Whether a reader of lines wants the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Line,
    End,
}

/// Calls `take` with each line from the present position of the file, without its line feed. A line
/// that is too long, or unfinished at the end of the file, is given as an empty one.
pub(super) fn each_line(
    file: &OwnedFd,
    mut take: impl FnMut(&[u8]) -> Next,
) -> Result<(), AuditError> {
    let mut pending = Vec::new();
    let mut is_ended = false;
    let read = read_pieces(file, |piece| {
        pending.extend_from_slice(piece);
        let mut begin = 0;
        while let Some(length) = pending[begin..].iter().position(|b| *b == b'\n') {
            if take(&pending[begin..begin + length]) == Next::End {
                is_ended = true;
                return Err(rustix::io::Errno::CANCELED);
            }
            begin += length + 1;
        }
        pending.drain(..begin);
        if pending.len() > MAX_LINE {
            take(b"");
            pending.clear();
        }
        Ok(())
    });
    match read {
        Err(_) if is_ended => return Ok(()),
        read => read.map_err(|e| io("read", e))?,
    }
    if !pending.is_empty() {
        take(b"");
    }
    Ok(())
}
