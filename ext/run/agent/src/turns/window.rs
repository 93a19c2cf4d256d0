//! Estimates how much of the context window a conversation uses, and shortens it. Pure functions
//! without I/O.
//!
//! A turn is a response of the model and all messages before the next response. Conversations are
//! cut only between turns, so that every call keeps its result.

use crate::{Message, ToolCall, ToolSpec};
use serde_json::{Map, Value};

/// Number of most recent turns that are not shortened as long as they fit into the context window.
pub(super) const KEEP: usize = 4;
/// Number of bytes that a shortened tool result or argument keeps.
const HEAD: usize = 240;
/// Maximum length in bytes of a text that is not shortened, because that would save little.
const SHORT: usize = 480;
/// Estimated bytes per message in addition to its text.
const FRAME: usize = 24;

/// Size limits of the model's context window, and the ratio of tokens to bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    context: u64,
    limit: u64,
    /// Token count and byte count of the last request whose tokens the provider counted; 1 and 4
    /// before the first count.
    last: (u64, u64),
}

impl Window {
    /// Creates a window of `context` tokens with `output` tokens reserved for the response.
    pub(super) fn new(context: u64, output: u64) -> Self {
        let room = context.saturating_sub(output).max(context / 4);
        Self {
            context,
            limit: room.min(context / 4 * 3).max(1),
            last: (1, 4),
        }
    }

    /// Returns the number of tokens above which the conversation is shortened.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns the maximum number of tokens of a request.
    pub(super) fn most(&self) -> u64 {
        (self.context / 10 * 9).max(self.limit)
    }

    /// Estimates how many tokens `bytes` bytes contain, from the tokens per byte of the last
    /// request whose tokens the provider counted. Before the first count, the estimate is a quarter
    /// of the bytes.
    pub(super) fn tokens(&self, bytes: usize) -> u64 {
        let (tokens, of) = self.last;
        let bytes = u128::try_from(bytes).unwrap_or(u128::MAX);
        let estimate = bytes * u128::from(tokens) / u128::from(of);
        let bounds = (bytes / 8, bytes.div_ceil(2));
        u64::try_from(estimate.clamp(bounds.0, bounds.1)).unwrap_or(u64::MAX)
    }

    /// Records how many tokens the provider counted for a request of `bytes` bytes.
    pub(super) fn learn(&mut self, bytes: usize, tokens: u64) {
        if tokens > 0 && bytes > 0 {
            self.last = (tokens, bytes as u64);
        }
    }

    /// Records that the provider rejected a request of `bytes` bytes as too long.
    pub(super) fn too_long(&mut self, bytes: usize) {
        let tokens = self.tokens(bytes);
        self.limit = (self.limit.min(tokens) / 4 * 3).max(1);
        self.context = self.context.min(tokens);
    }
}

fn value_bytes(arguments: &Result<Map<String, Value>, String>) -> usize {
    match arguments {
        Ok(map) => serde_json::to_string(map).map_or(0, |text| text.len()),
        Err(why) => why.len(),
    }
}

/// Returns about how many bytes a message takes in a request.
fn message_bytes(message: &Message) -> usize {
    FRAME
        + match message {
            Message::User(text) => text.len(),
            Message::Assistant { text, calls } => {
                let calls = calls.iter();
                text.len()
                    + calls
                        .map(|c| FRAME + c.name.len() + value_bytes(&c.arguments))
                        .sum::<usize>()
            }
            Message::Tool { text, .. } => text.len(),
        }
}

/// Returns about how many bytes all messages take in a request.
pub(super) fn bytes(messages: &[Message]) -> usize {
    messages.iter().map(message_bytes).sum()
}

/// Returns how many bytes of a request are not messages: system prompt and tool descriptions.
pub(super) fn fixed_bytes(system: &str, tools: &[ToolSpec]) -> usize {
    let tool =
        |t: &ToolSpec| FRAME + t.name.len() + t.description.len() + t.parameters.to_string().len();
    system.len() + tools.iter().map(tool).sum::<usize>()
}

/// Returns the index of the message with which the last `turns` turns begin; the number of messages
/// when `turns` is 0.
pub(super) fn last_turns(messages: &[Message], turns: usize) -> usize {
    let starts: Vec<usize> = messages
        .iter()
        .enumerate()
        .filter(|(_, m)| matches!(m, Message::Assistant { .. }))
        .map(|(index, _)| index)
        .collect();
    match turns {
        0 => messages.len(),
        _ => starts
            .len()
            .checked_sub(turns)
            .and_then(|n| starts.get(n))
            .or(starts.first())
            .copied()
            .unwrap_or(messages.len()),
    }
}

/// Shortens tool results and arguments, except in the last `turns` turns.
pub(super) fn shorten(messages: &mut [Message], turns: usize) {
    let end = last_turns(messages, turns);
    for message in &mut messages[..end] {
        match message {
            Message::User(_) => {}
            Message::Assistant { calls, .. } => calls.iter_mut().for_each(shorten_call),
            Message::Tool { text, .. } => shorten_text(text),
        }
    }
}

fn shorten_call(call: &mut ToolCall) {
    if let Ok(arguments) = &mut call.arguments {
        arguments.values_mut().for_each(shorten_value);
    }
}

fn shorten_value(value: &mut Value) {
    match value {
        Value::String(text) => shorten_text(text),
        Value::Array(items) => items.iter_mut().for_each(shorten_value),
        Value::Object(members) => members.values_mut().for_each(shorten_value),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn shorten_text(text: &mut String) {
    if text.len() > SHORT {
        let cut = text.len() - head(text, HEAD).len();
        *text = format!(
            "{}\n[{cut} bytes were left out to keep this conversation short]",
            head(text, HEAD)
        );
    }
}

/// Returns the first bytes of a text, cut at a character boundary.
pub(super) fn head(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns the beginning of a text and a note that says how many bytes are omitted.
pub(super) fn bounded(text: &str, bytes: usize) -> String {
    let kept = head(text, bytes);
    if kept.len() == text.len() {
        return text.to_owned();
    }
    format!("{kept}\n[{} more bytes]", text.len() - kept.len())
}

/// Replaces the oldest turns by a note with their number, so that all messages together take at
/// most `bytes_left` bytes.
pub(super) fn drop_oldest(messages: &[Message], bytes_left: usize) -> Vec<Message> {
    let turns = messages
        .iter()
        .filter(|m| matches!(m, Message::Assistant { .. }))
        .count();
    let first = last_turns(messages, turns);
    (0..=turns)
        .rev()
        .map(|keep| {
            let mut kept = messages[..first].to_vec();
            if keep < turns {
                kept.push(Message::User(format!(
                    "[{} earlier turns were left out here]",
                    turns - keep
                )));
            }
            kept.extend_from_slice(&messages[last_turns(messages, keep)..]);
            kept
        })
        .find(|kept| bytes(kept) <= bytes_left)
        .unwrap_or_else(|| messages[..first].to_vec())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::ToolStatus;
    use serde_json::json;

    pub(crate) fn turn(id: &str, argument: &str, answer: &str) -> Vec<Message> {
        let arguments = json!({"content": argument}).as_object().cloned().unwrap();
        vec![
            Message::Assistant {
                text: "I look".to_owned(),
                calls: vec![ToolCall {
                    id: id.to_owned(),
                    name: "t".to_owned(),
                    arguments: Ok(arguments),
                }],
            },
            Message::Tool {
                call_id: id.to_owned(),
                text: answer.to_owned(),
                status: ToolStatus::Ok,
            },
        ]
    }

    /// Returns whether every call is followed by its result and every result has its call.
    pub(crate) fn pairs_are_whole(messages: &[Message]) -> bool {
        let mut open: Vec<&str> = Vec::new();
        for message in messages {
            match message {
                Message::Assistant { calls, .. } => {
                    if !open.is_empty() {
                        return false;
                    }
                    open.extend(calls.iter().map(|c| c.id.as_str()));
                }
                Message::Tool { call_id, .. } => {
                    let Some(at) = open.iter().position(|id| id == call_id) else {
                        return false;
                    };
                    open.remove(at);
                }
                Message::User(_) if !open.is_empty() => return false,
                Message::User(_) => {}
            }
        }
        open.is_empty()
    }

    fn conversation(turns: usize, size: usize) -> Vec<Message> {
        let mut messages = vec![Message::User("task".to_owned())];
        for n in 0..turns {
            messages.extend(turn(&n.to_string(), &"w".repeat(size), &"r".repeat(size)));
            if n % 3 == 0 {
                messages.push(Message::User("note".to_owned()));
            }
        }
        messages
    }

    #[test]
    fn old_turns_are_shortened_and_the_last_ones_stay_unchanged() {
        let mut messages = conversation(10, 5_000);
        let before = messages.clone();
        shorten(&mut messages, 4);
        let kept = last_turns(&before, 4);
        assert_eq!(messages[kept..], before[kept..]);
        assert!(bytes(&messages[..kept]) < 10_000, "{}", bytes(&messages));
        assert!(pairs_are_whole(&messages));
        // Shortening again changes nothing.
        let once = messages.clone();
        shorten(&mut messages, 4);
        assert_eq!(messages, once);
    }

    #[test]
    fn dropped_turns_never_separate_a_call_from_its_result() {
        let messages = conversation(9, 100);
        for turns in 0..12 {
            let cut = last_turns(&messages, turns);
            assert!(pairs_are_whole(&messages[cut..]), "{turns}");
            assert!(pairs_are_whole(&messages[..cut]), "{turns}");
        }
        for limit in (0..bytes(&messages) + 100).step_by(97) {
            let kept = drop_oldest(&messages, limit);
            assert!(pairs_are_whole(&kept), "{limit}");
            assert_eq!(kept[0], messages[0]);
        }
        assert_eq!(drop_oldest(&messages, usize::MAX), messages);
    }

    #[test]
    fn token_estimate_follows_the_providers_counts_within_bounds_and_a_refusal_lowers_the_limit() {
        let mut window = Window::new(8_000, 1_000);
        assert_eq!((window.limit(), window.tokens(4_000)), (6_000, 1_000));
        window.learn(4_000, 1_500);
        assert_eq!(window.tokens(8_000), 3_000);
        window.learn(4_000, 1_000_000);
        assert_eq!(window.tokens(8_000), 4_000);
        window.learn(4_000, 1);
        assert_eq!(window.tokens(8_000), 1_000);
        window.too_long(8_000);
        assert!(window.limit() < 1_000);
    }

    #[test]
    fn shortened_tool_output_ends_at_a_character_boundary() {
        let mut messages = conversation(6, 10);
        if let Message::Tool { text, .. } = &mut messages[2] {
            *text = "é".repeat(1_000);
        }
        shorten(&mut messages, 1);
        let Message::Tool { text, .. } = &messages[2] else {
            panic!("moved")
        };
        assert!(text.starts_with("éé") && text.contains("bytes were left out"));
    }
}
