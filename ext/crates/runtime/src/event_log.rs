//! Reading the journal of a run, by a cursor, without holding it in memory.
//!
//! Lines are in the order of their sequence numbers, so the place of a cursor is searched
//! for by halves. A line without its end is not an event yet; one that is no event is
//! passed over.

use serde::Deserialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use wp_codebox_contracts::LifecycleEvent;

/// Longest line that is an event, bytes.
const LONGEST: u64 = 16 * 1024 * 1024;
/// A span this small is read from its beginning.
const SPAN: u64 = 64 * 1024;

/// Events after a cursor.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPage {
    /// In order, whole.
    pub events: Vec<LifecycleEvent>,
    /// Sequence number of the last one, or the cursor that was given.
    pub cursor: u64,
    /// Whether there are further ones already.
    pub more: bool,
}

/// How large a page may be. The first event is always in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimits {
    /// Events.
    pub count: usize,
    /// Bytes of their lines together.
    pub bytes: u64,
}

#[derive(Deserialize)]
struct Sequence {
    seq: u64,
}

/// A page of `events.jsonl` in a run directory; empty when there is none yet.
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

/// Sequence number of the last event, 0 when there is none.
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

/// Events of the last span of the journal; at least the last one, unless that is longer than
/// an event may be.
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

/// A whole line.
struct Line {
    bytes: Vec<u8>,
    /// Where the next one begins.
    end: u64,
}

impl Line {
    fn sequence(&self) -> Option<u64> {
        serde_json::from_slice::<Sequence>(&self.bytes)
            .ok()
            .map(|line| line.seq)
    }
}

/// The journal as long as it was when it was opened.
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

    /// The first whole line that begins at or after a place.
    fn line_from(&mut self, place: u64) -> io::Result<Option<Line>> {
        // From the byte before: it is the end of a line, or this is the middle of one.
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

    /// Reads past the end of the line that is here.
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

    /// A place from which on reading meets every event after `after`, and few before.
    fn first_after(&mut self, after: u64) -> io::Result<u64> {
        if after == 0 {
            return Ok(0);
        }
        // Every event that begins before `low` is at or before the cursor.
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

    /// The first event that begins in a span: its number and where the next line begins.
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
