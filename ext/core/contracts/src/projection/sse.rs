//! Server-sent events: the text of one frame (WHATWG HTML, "Server-sent events").
//!
//! The frame's `id` is the sequence number in the journal, so a client that reconnects with
//! `Last-Event-ID` continues after its last event. `data` is JSON on one line.

use super::{BusEvent, BusProjection, project_to_bus};
use crate::{CodedError, LifecycleEvent};

/// Error for a `Last-Event-ID` that is not a sequence number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
#[error("Last-Event-ID must be the id of an event of this stream, a whole number")]
#[code(InputInvalid)]
pub struct SseError;

/// One frame of a stream, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseFrame(String);

impl SseFrame {
    /// Formats a journal event; the name of the frame's event is the type of the journal event.
    #[must_use]
    pub fn of_event(event: &LifecycleEvent) -> Self {
        Self::frame(event.seq, event.kind.as_str(), &json(event))
    }

    /// Formats an event of the bus.
    #[must_use]
    pub fn of_bus(event: &BusEvent) -> Self {
        Self::frame(event.seq, event.kind.as_str(), &json(event))
    }

    /// Formats the bus event for a journal event. A journal event without a bus event becomes a
    /// frame with an id and no data: clients dispatch nothing and still advance their position.
    #[must_use]
    pub fn of_projection(event: &LifecycleEvent) -> Self {
        match project_to_bus(event) {
            BusProjection::Event(made) => Self::of_bus(&made),
            BusProjection::Nothing(_) => Self(format!("id: {}\n\n", event.seq)),
        }
    }

    /// Returns a comment frame that prevents timeouts of an idle connection.
    #[must_use]
    pub fn keep_alive() -> Self {
        Self(":\n\n".to_owned())
    }

    /// Returns a frame that sets the client's reconnection delay in milliseconds.
    #[must_use]
    pub fn retry(milliseconds: u32) -> Self {
        Self(format!("retry: {milliseconds}\n\n"))
    }

    /// Returns the text to send.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Formats one frame. `name` comes from a fixed table and contains no line break. `data` may
    /// contain line breaks; each of its lines gets its own `data:` prefix.
    fn frame(seq: u64, name: &str, data: &str) -> Self {
        let mut text = format!("id: {seq}\nevent: {name}\n");
        for line in data.replace("\r\n", "\n").split(['\n', '\r']) {
            text.push_str("data: ");
            text.push_str(line);
            text.push('\n');
        }
        text.push('\n');
        Self(text)
    }
}

/// Serialises an event to JSON, in which every line break is escaped. This cannot fail, because the
/// types of events have string keys only.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Parses a `Last-Event-ID` header; an empty header means 0, the beginning.
pub fn last_event_id(header: &str) -> Result<u64, SseError> {
    let text = header.trim_matches([' ', '\t']);
    if text.is_empty() {
        return Ok(0);
    }
    // `parse` alone would accept a sign.
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(SseError);
    }
    text.parse().map_err(|_| SseError)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventType;
    use serde_json::{Value, json};

    fn event(seq: u64, kind: EventType, data: Value) -> LifecycleEvent {
        let Value::Object(data) = data else { panic!() };
        LifecycleEvent {
            id: format!("evt-{seq}"),
            seq,
            kind,
            timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
            execution_id: None,
            data,
        }
    }

    /// Parses a stream as the HTML specification of server-sent events says. Returns the
    /// dispatched events as (id, event, data), and the last event id.
    fn client(stream: &str) -> (Vec<(String, String, String)>, String) {
        let (mut heard, mut last) = (Vec::new(), String::new());
        let (mut name, mut data) = (String::new(), Vec::new());
        for line in stream.replace("\r\n", "\n").split(['\n', '\r']) {
            if line.is_empty() {
                if !data.is_empty() {
                    heard.push((last.clone(), std::mem::take(&mut name), data.join("\n")));
                }
                name.clear();
                data.clear();
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "id" => value.clone_into(&mut last),
                "event" => value.clone_into(&mut name),
                "data" => data.push(value.to_owned()),
                _ => {}
            }
        }
        (heard, last)
    }

    #[test]
    fn sse_client_receives_every_event_unchanged() {
        let hostile = "a\nb\r\nc\rd\u{2028}\u{0}\n\ndata: forged\n\nid: 99\n\n:x é😀";
        let journal: Vec<LifecycleEvent> = EventType::ALL
            .iter()
            .zip(1..)
            .map(|(kind, seq)| event(seq, *kind, json!({"text": hostile, hostile: 1})))
            .collect();
        let stream: String = journal
            .iter()
            .flat_map(|event| [SseFrame::keep_alive(), SseFrame::of_event(event)])
            .map(|frame| frame.as_str().to_owned())
            .collect();
        let (heard, last) = client(&stream);
        assert_eq!(heard.len(), journal.len());
        assert_eq!(last, journal.len().to_string());
        for (event, (id, name, data)) in journal.iter().zip(heard) {
            assert_eq!(
                (id, name.as_str()),
                (event.seq.to_string(), event.kind.as_str())
            );
            assert_eq!(
                serde_json::from_str::<LifecycleEvent>(&data).unwrap(),
                *event
            );
        }
    }

    #[test]
    fn sse_data_with_line_breaks_is_one_message() {
        let frame = SseFrame::frame(3, "x", "a\r\nb\rc\n\nd: e");
        assert_eq!(
            frame.as_str(),
            "id: 3\nevent: x\ndata: a\ndata: b\ndata: c\ndata: \ndata: d: e\n\n"
        );
        let (heard, _) = client(frame.as_str());
        assert_eq!(
            heard,
            [("3".to_owned(), "x".to_owned(), "a\nb\nc\n\nd: e".to_owned())]
        );
    }

    #[test]
    fn journal_event_without_bus_event_only_advances_the_sse_last_event_id() {
        let journal = [
            event(
                4,
                EventType::CommandOutput,
                json!({"stream": "stdout", "base64": "/w=="}),
            ),
            event(5, EventType::Destroyed, json!({})),
        ];
        let stream: String = journal
            .iter()
            .map(|event| SseFrame::of_projection(event).as_str().to_owned())
            .collect();
        let (heard, last) = client(&stream);
        assert_eq!(last, "5");
        assert_eq!(heard.len(), 1);
        let (id, name, data) = &heard[0];
        assert_eq!((id.as_str(), name.as_str()), ("4", "RUNTIME_OUTPUT"));
        let made: BusEvent = serde_json::from_str(data).unwrap();
        assert_eq!(made.payload["base64"], "/w==");
    }

    #[test]
    fn last_event_id_header_is_empty_or_an_unsigned_decimal_number_and_else_an_error() {
        for (header, cursor) in [
            ("", Ok(0)),
            ("0", Ok(0)),
            (" 12 ", Ok(12)),
            ("18446744073709551615", Ok(u64::MAX)),
            ("18446744073709551616", Err(SseError)),
            ("-1", Err(SseError)),
            ("+1", Err(SseError)),
            ("evt-3", Err(SseError)),
            ("1\n2", Err(SseError)),
            ("1.0", Err(SseError)),
        ] {
            assert_eq!(last_event_id(header), cursor, "{header:?}");
        }
        assert_eq!(SseFrame::retry(1500).as_str(), "retry: 1500\n\n");
    }
}
