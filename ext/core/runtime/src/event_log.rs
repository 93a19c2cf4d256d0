//! Reads the journal of a run after a given sequence number, without loading the whole file.
//!
//! Lines are ordered by sequence number, so a binary search finds the line at which to start. A
//! last line without line feed is not an event yet, because the writer has not finished it. A line
//! that is not a valid event is skipped.

use crate::document::DocumentError;
use serde::Deserialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use wp_codebox_contracts::LifecycleEvent;

/// Maximum length of an event line in bytes.
const LONGEST: u64 = 16 * 1024 * 1024;
/// The binary search stops when the remaining part of the journal has at most this many bytes. That
/// part is then read line by line.
const SPAN: u64 = 64 * 1024;

/// Events that follow a given sequence number.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPage {
    /// The events, in order of their sequence numbers.
    pub events: Vec<LifecycleEvent>,
    /// Sequence number of the last event in `events`; if `events` is empty, the sequence number
    /// that the caller gave.
    pub cursor: u64,
    /// Whether the journal already contains events after those in `events`.
    pub more: bool,
}

/// Limits of one page of events. At least one event is returned, even if this event alone exceeds a
/// limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimits {
    /// Maximum number of events in the page.
    pub count: usize,
    /// Maximum total length of the events' journal lines, in bytes.
    pub bytes: u64,
}

#[derive(Deserialize)]
struct Sequence {
    seq: u64,
}

/// Reads the events after the sequence number `after` from `events.jsonl` in a run directory.
/// Returns no events if the file does not exist yet.
pub fn read_events(run_dir: &Path, after: u64, limits: PageLimits) -> io::Result<EventPage> {
    let mut page = EventPage {
        events: Vec::new(),
        cursor: after,
        more: false,
    };
    let Some(mut log) = Log::open(run_dir)? else {
        return Ok(page);
    };
    let mut at = log.first_after(after)?;
    let mut bytes = 0;
    while let Some(line) = log.line_from(at)? {
        at = line.end;
        let Ok(event) = serde_json::from_slice::<LifecycleEvent>(&line.bytes) else {
            continue;
        };
        if event.seq <= page.cursor {
            continue;
        }
        bytes += line.bytes.len() as u64;
        let full = page.events.len() >= limits.count || bytes > limits.bytes;
        if full && !page.events.is_empty() {
            page.more = true;
            break;
        }
        page.cursor = event.seq;
        page.events.push(event);
    }
    Ok(page)
}

/// Returns the sequence number of the last event, 0 if there is none.
pub fn last_event(run_dir: &Path) -> io::Result<u64> {
    let Some(mut log) = Log::open(run_dir)? else {
        return Ok(0);
    };
    let mut back = SPAN;
    loop {
        let mut at = log.length.saturating_sub(back);
        let from_start = at == 0;
        let mut last = None;
        while let Some(line) = log.line_from(at)? {
            at = line.end;
            last = line.sequence().or(last);
        }
        match last {
            Some(seq) => return Ok(seq),
            None if from_start || back > 2 * LONGEST => return Ok(0),
            None => back *= 4,
        }
    }
}

/// Returns the events in the last [`SPAN`] bytes of the journal. If these bytes contain no complete
/// event, reads a longer part, so at least the last event is returned unless its line exceeds the
/// maximum length.
pub(crate) fn last_events(run_dir: &Path) -> io::Result<Vec<LifecycleEvent>> {
    let Some(mut log) = Log::open(run_dir)? else {
        return Ok(Vec::new());
    };
    let mut back = SPAN;
    loop {
        let mut at = log.length.saturating_sub(back);
        let from_start = at == 0;
        let mut events = Vec::new();
        while let Some(line) = log.line_from(at)? {
            at = line.end;
            events.extend(serde_json::from_slice(&line.bytes));
        }
        if !events.is_empty() || from_start || back > 2 * LONGEST {
            return Ok(events);
        }
        back *= 4;
    }
}

/// Converts an error of reading the journal.
pub(crate) fn unreadable(source: io::Error) -> DocumentError {
    let name = "events.jsonl";
    DocumentError::Unreadable { name, source }
}

/// Writes the journal of a run, if it has one, to the disk.
pub(crate) fn sync(run_dir: &Path) -> io::Result<()> {
    match File::open(run_dir.join("events.jsonl")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        opened => opened?.sync_all(),
    }
}

/// A complete line of the journal.
struct Line {
    bytes: Vec<u8>,
    /// Position in the file at which the next line starts.
    end: u64,
}

impl Line {
    fn sequence(&self) -> Option<u64> {
        serde_json::from_slice::<Sequence>(&self.bytes)
            .ok()
            .map(|line| line.seq)
    }
}

/// The journal of a run. Events appended after it was opened are not read.
struct Log {
    file: BufReader<File>,
    length: u64,
    at: u64,
}

impl Log {
    fn open(run_dir: &Path) -> io::Result<Option<Self>> {
        let file = match File::open(run_dir.join("events.jsonl")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let length = file.metadata()?.len();
        Ok(Some(Self {
            file: BufReader::new(file),
            length,
            at: 0,
        }))
    }

    /// Returns the first complete line that starts at position `place` of the file or later.
    fn line_from(&mut self, place: u64) -> io::Result<Option<Line>> {
        // Reads from one byte earlier. If that byte is a line feed, a line starts at `place`; if
        // not, `place` is inside a line.
        let start = place.saturating_sub(1);
        if self.at != start {
            self.file.seek(SeekFrom::Start(start))?;
            self.at = start;
        }
        if place > 0 && self.pass_line()?.is_none() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let most = LONGEST.min(self.length.saturating_sub(self.at));
        let read = self
            .file
            .by_ref()
            .take(most)
            .read_until(b'\n', &mut bytes)?;
        self.at += read as u64;
        Ok((bytes.last() == Some(&b'\n')).then_some(Line {
            bytes,
            end: self.at,
        }))
    }

    /// Skips the rest of the current line. Returns `None` if the line has no line feed.
    fn pass_line(&mut self) -> io::Result<Option<()>> {
        while self.at < self.length {
            let buffer = self.file.fill_buf()?;
            if buffer.is_empty() {
                return Ok(None);
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(buffer.len(), |at| at + 1);
            self.file.consume(used);
            self.at += used as u64;
            if end.is_some() {
                return Ok(Some(()));
            }
        }
        Ok(None)
    }

    /// Returns a position in the file from which the caller reads line by line. Every event with a
    /// sequence number above `after` starts at this position or later. Events with a number up to
    /// `after` may follow the position too, but none starts more than [`SPAN`] bytes after it.
    fn first_after(&mut self, after: u64) -> io::Result<u64> {
        if after == 0 {
            return Ok(0);
        }
        // Loop invariant: every event that starts before `low` has a sequence number of at most
        // `after`.
        let (mut low, mut high) = (0, self.length);
        while high.saturating_sub(low) > SPAN {
            let middle = low + (high - low) / 2;
            match self.event_from(middle, high)? {
                Some((seq, end)) if seq <= after => low = end,
                Some(_) | None => high = middle,
            }
        }
        Ok(low)
    }

    /// Returns the sequence number of the first event that starts at `place` or later but before
    /// `before`, and the position of the line after that event.
    fn event_from(&mut self, mut place: u64, before: u64) -> io::Result<Option<(u64, u64)>> {
        while place < before {
            let Some(line) = self.line_from(place)? else {
                return Ok(None);
            };
            if line.end.saturating_sub(line.bytes.len() as u64) >= before {
                return Ok(None);
            }
            if let Some(seq) = line.sequence() {
                return Ok(Some((seq, line.end)));
            }
            place = line.end;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
