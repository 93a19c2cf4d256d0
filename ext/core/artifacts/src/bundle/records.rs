//! Bundle files with one record per line (events, commands, observations) and the two files in
//! `logs/`.
//!
//! Invariants: text is redacted before it is shortened. Output that arrived in pieces is redacted
//! as a whole, so a secret split between two pieces is found. Cuts are at character boundaries
//! and are marked.

use super::ends::text_ends;
use super::inputs::ExecutionRecord;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use wp_codebox_contracts::{EventType, LifecycleEvent};
use wp_codebox_policy::Redactor;

/// Maximum size of one command argument in a bundle, in bytes.
const MAX_ARGUMENT: usize = 1024 * 1024;
/// Maximum total size of all standard outputs and standard errors in `commands.jsonl`, in bytes.
const MAX_OUTPUT: usize = 16 * 1024 * 1024;
/// Bytes of each standard output or error that are stored even if [`MAX_OUTPUT`] is used up.
const MIN_STREAM: usize = 1024;
/// Maximum number of lines in `commands.jsonl`. Of more commands, the first 999 and the last one
/// are stored.
const MAX_COMMANDS: usize = 1000;
const CUT: &str = "\n[cut here]";

/// Redacts texts and counts the texts it changed.
pub(crate) struct Scrubber<'r> {
    redactor: &'r Redactor,
    changed: Cell<u64>,
}

impl<'r> Scrubber<'r> {
    pub(crate) const fn new(redactor: &'r Redactor) -> Self {
        Self {
            redactor,
            changed: Cell::new(0),
        }
    }

    pub(super) fn changed(&self) -> u64 {
        self.changed.get()
    }

    fn note(&self) {
        self.changed.set(self.changed.get() + 1);
    }

    pub(super) fn text(&self, text: &str) -> String {
        let clean = self.redactor.redact(text);
        if matches!(clean, std::borrow::Cow::Owned(_)) {
            self.note();
        }
        clean.into_owned()
    }

    /// Redacts every string and key in a value.
    pub(super) fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => Value::Object(self.map(members)),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    pub(crate) fn map(&self, members: &Map<String, Value>) -> Map<String, Value> {
        members
            .iter()
            .map(|(key, value)| (self.text(key), self.value(value)))
            .collect()
    }
}

/// Serialises one JSON document per line; returns no bytes for no records.
pub(crate) fn lines<T: serde::Serialize>(records: &[T]) -> Vec<u8> {
    let mut out = Vec::new();
    for record in records {
        // These types have only string keys, so serialisation cannot fail.
        if let Ok(line) = serde_json::to_vec(record) {
            out.extend_from_slice(&line);
            out.push(b'\n');
        }
    }
    out
}

/// Returns the journal's events with secrets in their data redacted.
pub(super) fn events(events: &[LifecycleEvent], scrub: &Scrubber<'_>) -> Vec<LifecycleEvent> {
    let mut clean: Vec<LifecycleEvent> = events.to_vec();
    let mut streams: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    for (index, event) in events.iter().enumerate() {
        if event.kind == EventType::CommandOutput {
            // `shown`, the form for a terminal, is derived from `text` or `base64`, which the
            // bundle contains anyway.
            clean[index].data.remove("shown");
            let id = event.execution_id.as_ref().map(ToString::to_string);
            let stream = event.data.get("stream").and_then(Value::as_str);
            let key = (
                id.unwrap_or_default(),
                stream.unwrap_or_default().to_owned(),
            );
            streams.entry(key).or_default().push(index);
        } else if let Some(event) = clean.get_mut(index) {
            event.data = scrub.map(&event.data);
        }
    }
    for pieces in streams.values() {
        let whole: Vec<u8> = pieces.iter().flat_map(|i| output_of(&events[*i])).collect();
        let Cow::Owned(redacted) = scrub.redactor.redact_bytes(&whole) else {
            continue;
        };
        scrub.note();
        for (position, index) in pieces.iter().enumerate() {
            let data = &mut clean[*index].data;
            data.remove("text");
            data.remove("base64");
            let bytes = if position == 0 { &redacted[..] } else { b"" };
            match std::str::from_utf8(bytes) {
                Ok(text) => data.insert("text".to_owned(), text.into()),
                Err(_) => data.insert("base64".to_owned(), BASE64.encode(bytes).into()),
            };
            data.insert("merged".to_owned(), true.into());
        }
    }
    clean
}

fn output_of(event: &LifecycleEvent) -> Vec<u8> {
    let member = |key| event.data.get(key).and_then(Value::as_str);
    match (member("text"), member("base64")) {
        (Some(text), _) => text.as_bytes().to_vec(),
        (None, Some(encoded)) => BASE64.decode(encoded).unwrap_or_default(),
        (None, None) => Vec::new(),
    }
}

/// Returns the executed commands for `commands.jsonl`: with output redacted and shortened, and
/// arguments redacted.
pub(super) fn commands(records: &[ExecutionRecord], scrub: &Scrubber<'_>) -> Vec<ExecutionRecord> {
    let mut left = MAX_OUTPUT;
    let skip = MAX_COMMANDS - 1..records.len().saturating_sub(1).max(MAX_COMMANDS - 1);
    records
        .iter()
        .enumerate()
        .filter(|(index, _)| !skip.contains(index))
        .map(|(_, record)| {
            let mut truncated = record.output_truncated;
            let mut bounded = |text: &str| {
                let clean = scrub.text(text);
                let ends = text_ends(&clean, left.max(MIN_STREAM), char::len_utf8);
                truncated |= ends.is_some();
                let kept = ends.unwrap_or(clean);
                left = left.saturating_sub(kept.len());
                kept
            };
            let (stdout, stderr) = (bounded(&record.stdout), bounded(&record.stderr));
            ExecutionRecord {
                stdout,
                stderr,
                output_truncated: truncated,
                args: record
                    .args
                    .iter()
                    .map(|a| cut(&scrub.text(a), MAX_ARGUMENT))
                    .collect(),
                command: scrub.text(&record.command),
                ..record.clone()
            }
        })
        .collect()
}

/// Shortens a text to at most `max` bytes plus a mark, at a character boundary.
fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let end = (0..=max).rev().find(|at| text.is_char_boundary(*at));
    format!("{}{CUT}", &text[..end.unwrap_or_default()])
}

/// Formats the events for `logs/runtime.log`, each as `[time] type {data}`, without output events.
pub(super) fn runtime_log(events: &[LifecycleEvent]) -> String {
    let mut log = String::new();
    for event in events.iter().filter(|e| e.kind != EventType::CommandOutput) {
        let kind = serde_json::to_value(event.kind).unwrap_or_default();
        let mut data = event.data.clone();
        if let Some(id) = &event.execution_id {
            data.insert("executionId".to_owned(), id.as_str().into());
        }
        log.push_str(&format!(
            "[{}] {}",
            event.timestamp,
            kind.as_str().unwrap_or_default()
        ));
        if !data.is_empty() {
            log.push_str(&format!(" {}", Value::Object(data)));
        }
        log.push('\n');
    }
    log
}

/// Formats the executed commands for `logs/commands.log`, one block per command, separated by
/// `---`.
pub(super) fn commands_log(records: &[ExecutionRecord]) -> String {
    let blocks: Vec<String> = records
        .iter()
        .map(|record| {
            let exit = record
                .exit_code
                .map_or("killed".to_owned(), |c| c.to_string());
            format!(
                "[{}] {} {}\nexitCode={exit}\n{}{}",
                record.started_at,
                record.command,
                record.args.join(" "),
                record.stdout,
                record.stderr
            )
        })
        .collect();
    if blocks.is_empty() {
        String::new()
    } else {
        format!("{}\n", blocks.join("\n---\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wp_codebox_contracts::ExecutionId;

    fn output(seq: u64, data: Value) -> LifecycleEvent {
        LifecycleEvent {
            id: format!("evt-{seq}"),
            seq,
            kind: EventType::CommandOutput,
            timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
            execution_id: Some(ExecutionId::new("exec-1").unwrap()),
            data: data.as_object().unwrap().clone(),
        }
    }

    #[test]
    fn secret_split_between_output_pieces_is_redacted() {
        let redactor = Redactor::new(&["hunter2-hunter2".to_owned()]);
        let scrub = Scrubber::new(&redactor);
        let pieces = [
            output(1, json!({"stream": "stdout", "text": "key hunter2-"})),
            output(2, json!({"stream": "stderr", "text": "other"})),
            output(
                3,
                json!({"stream": "stdout", "base64": BASE64.encode("hunter2 end")}),
            ),
        ];
        let text = String::from_utf8(lines(&events(&pieces, &scrub))).unwrap();
        assert!(
            !text.contains("hunter2") && text.contains("REDACTED"),
            "{text}"
        );
        assert!(text.contains("other"));
        assert_eq!(scrub.changed(), 1);
        let harmless = [output(1, json!({"stream": "stdout", "text": "plain"}))];
        assert_eq!(events(&harmless, &scrub), harmless);
    }

    #[test]
    fn header_split_from_its_credential_between_output_pieces_is_redacted() {
        let redactor = Redactor::default();
        let scrub = Scrubber::new(&redactor);
        let pieces = [
            output(
                1,
                json!({"stream": "stdout", "text": "Authorization: Bearer "}),
            ),
            output(2, json!({"stream": "stdout", "text": "0123456789abcdef"})),
        ];
        let text = String::from_utf8(lines(&events(&pieces, &scrub))).unwrap();
        assert!(text.contains("Authorization: Bearer [REDACTED:"), "{text}");
        assert!(!text.contains("0123456789abcdef"), "{text}");
    }

    #[test]
    fn command_output_is_redacted_before_it_is_shortened_and_at_most_1000_commands_are_kept() {
        let redactor = Redactor::new(&["hunter2-hunter2".to_owned()]);
        let scrub = Scrubber::new(&redactor);
        let record = |stdout: String| ExecutionRecord {
            id: "exec-1".into(),
            command: "wordpress.run-php".into(),
            args: vec!["code=x".into()],
            exit_code: Some(0),
            stdout,
            stderr: String::new(),
            started_at: "a".into(),
            finished_at: "b".into(),
            phase: "workflow".into(),
            output_truncated: false,
        };
        // The secret spans the position of the cut.
        let head = MAX_OUTPUT - MAX_OUTPUT / 3;
        let long = format!(
            "{}hunter2-hunter2é{}",
            "x".repeat(head - 7),
            "y".repeat(head)
        );
        let rows = [record("z".repeat(2 * MIN_STREAM)), record(long)];
        let kept = commands(&[rows[1].clone(), rows[0].clone()], &scrub);
        assert!(!kept[0].stdout.contains("hunter2"));
        assert!(kept[0].stdout.starts_with('x') && kept[0].stdout.ends_with('y'));
        assert!(kept[0].stdout.contains(" bytes left out …]\n"));
        assert!(kept[0].output_truncated && kept[1].output_truncated);
        assert!(kept[0].stdout.len() <= MAX_OUTPUT + 50);
        assert!(kept[1].stdout.len() <= MIN_STREAM + 50);
        // Several megabytes are not shortened if they fit the total limit.
        let kept = commands(
            &[record("x".repeat(MAX_OUTPUT / 2)), rows[0].clone()],
            &scrub,
        );
        assert!(kept.iter().all(|row| !row.output_truncated));
        assert_eq!(kept[0].stdout.len(), MAX_OUTPUT / 2);
        let many: Vec<_> = (0..1500).map(|i| record(i.to_string())).collect();
        let kept = commands(&many, &scrub);
        assert_eq!(kept.len(), 1000);
        assert!(!kept[0].output_truncated);
        assert_eq!(
            (kept[998].stdout.as_str(), kept[999].stdout.as_str()),
            ("998", "1499")
        );
        assert_eq!(commands(&many[..1000], &scrub).len(), 1000);
        assert_eq!(commands_log(&[]), "");
    }
}
