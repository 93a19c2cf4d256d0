//! Parser of server-sent events. Pure: bytes in, events out, independent of packet boundaries.
//!
//! Lines may end in LF, CR or CRLF; the blank after the colon is optional; comments and unknown
//! fields are skipped. The maximum length of a line and of an event bounds the memory.

use super::limits::LINE_BYTES;

/// One server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// Name of the event (`event:` field); empty when absent.
    pub name: String,
    /// Content of the event: its `data:` lines, joined by LF.
    pub data: String,
}

/// Error: a line or an event exceeds the maximum length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the model's response is longer than {LINE_BYTES} bytes")]
pub(super) struct EventTooLong;

/// Incremental parser of an event stream.
#[derive(Debug, Default)]
pub(super) struct EventReader {
    line: Vec<u8>,
    place: Place,
    name: String,
    data: Option<String>,
    lines: u64,
}

/// Where the last parsed byte was, to recognize line ends that are split over two reads.
#[derive(Debug, Default, PartialEq, Eq)]
enum Place {
    /// Inside a line, or after LF.
    #[default]
    Line,
    /// After CR; a following LF belongs to the same line end.
    AfterReturn,
}

impl EventReader {
    /// Parses bytes and appends complete events to `events`.
    pub(super) fn push(
        &mut self,
        mut bytes: &[u8],
        events: &mut Vec<Event>,
    ) -> Result<(), EventTooLong> {
        if self.place == Place::AfterReturn && !bytes.is_empty() {
            self.place = Place::Line;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|b| matches!(b, b'\n' | b'\r')) {
            self.extend(&bytes[..end])?;
            let return_ended = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if return_ended {
                match bytes.split_first() {
                    Some((b'\n', rest)) => bytes = rest,
                    Some(_) => {}
                    None => self.place = Place::AfterReturn,
                }
            }
            self.line_ended(events)?;
        }
        self.extend(bytes)
    }

    /// Ends the stream. Accepts a last event without its terminating empty line.
    pub(super) fn finish(&mut self, events: &mut Vec<Event>) -> Result<(), EventTooLong> {
        if !self.line.is_empty() {
            self.line_ended(events)?;
        }
        self.dispatch(events);
        Ok(())
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), EventTooLong> {
        if self.line.len() + bytes.len() > LINE_BYTES {
            return Err(EventTooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn line_ended(&mut self, events: &mut Vec<Event>) -> Result<(), EventTooLong> {
        let line = std::mem::take(&mut self.line);
        let mut text = String::from_utf8_lossy(&line);
        if self.lines == 0
            && let Some(rest) = text.strip_prefix('\u{feff}')
        {
            text = rest.to_owned().into();
        }
        self.lines += 1;
        if text.is_empty() {
            self.dispatch(events);
            return Ok(());
        }
        let (field, value) = text.split_once(':').unwrap_or((&text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => match &mut self.data {
                None => self.data = Some(value.to_owned()),
                Some(data) if data.len() + value.len() < LINE_BYTES => {
                    data.push('\n');
                    data.push_str(value);
                }
                Some(_) => return Err(EventTooLong),
            },
            // Skips comments, `id`, `retry` and unknown fields.
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, events: &mut Vec<Event>) {
        let name = std::mem::take(&mut self.name);
        if let Some(data) = self.data.take() {
            events.push(Event { name, data });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<Event> {
        let (mut reader, mut events) = (EventReader::default(), Vec::new());
        for piece in pieces {
            reader.push(piece, &mut events).unwrap();
        }
        reader.finish(&mut events).unwrap();
        events
    }

    fn event(name: &str, data: &str) -> Event {
        Event {
            name: name.to_owned(),
            data: data.to_owned(),
        }
    }

    #[test]
    fn all_sse_line_ends_and_field_forms_are_parsed() {
        let stream = "\u{feff}data: one\n\n: a comment\n\ndata:two\r\n\r\nevent: name\rdata: a\rdata:  b\r\rid: 7\nretry: 5\nnonsense\n\ndata\n\nevent: lost\n\ndata: last";
        assert_eq!(
            read(&[stream.as_bytes()]),
            [
                event("", "one"),
                event("", "two"),
                event("name", "a\n b"),
                event("", ""),
                event("", "last"),
            ]
        );
    }

    #[test]
    fn sse_parser_is_independent_of_chunk_boundaries() {
        let stream = "event: a\r\ndata: gr\u{fc}n \u{1f600}\r\n\r\ndata:x\rdata:y\r\r: c\n\ndata: {\"k\":1}\n\n\r\ndata: z\r\n".as_bytes();
        let whole = read(&[stream]);
        assert_eq!(whole.len(), 4, "{whole:?}");
        for first in 0..=stream.len() {
            for second in first..=stream.len() {
                let pieces = [&stream[..first], &stream[first..second], &stream[second..]];
                assert_eq!(read(&pieces), whole, "cut at {first} and {second}");
            }
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(read(&bytes), whole);
    }

    #[test]
    fn sse_line_or_event_above_its_size_limit_is_an_error() {
        let (mut reader, mut events) = (EventReader::default(), Vec::new());
        let half = vec![b'x'; LINE_BYTES / 2];
        reader.push(&half, &mut events).unwrap();
        reader.push(&half, &mut events).unwrap();
        assert_eq!(reader.push(b"x", &mut events), Err(EventTooLong));

        let mut reader = EventReader::default();
        let line = [b"data: ", half.as_slice(), b"\n"].concat();
        reader.push(&line, &mut events).unwrap();
        assert_eq!(reader.push(&line, &mut events), Err(EventTooLong));
    }
}
