//! Collects the pieces of a streamed response until it is complete.

use super::events::EventTooLong;
use super::limits::{ANSWER_BYTES, ARGUMENT_BYTES, CALLS, NAME_CHARS};
use super::refusal::Refusal;
use crate::{Reply, StopReason, TokenUsage, ToolCall};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Limit that a response exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum AssemblyError {
    #[error("the model's response has more than {CALLS} tool calls")]
    Calls,
    #[error(
        "the model's response has a tool call with arguments of more than {ARGUMENT_BYTES} bytes"
    )]
    Arguments,
    #[error("the model's response calls a tool with a name of more than {NAME_CHARS} characters")]
    Name,
}

/// How much of a response has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Progress {
    /// The response is incomplete.
    More,
    /// The model has finished; token counts may follow.
    Stopped,
    /// The response is complete, and no token counts follow.
    Finished,
}

/// Reason why a response cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum AnswerError {
    /// The response ended early; the client retries.
    #[error("the model's response ended before it was complete")]
    Truncated,
    /// The response is an error of the provider.
    #[error(
        "the model's provider sent an error instead of a response; read the reported status and reason"
    )]
    Refused(Refusal),
    #[error("the model's response contains invalid JSON (line {line}, column {column})")]
    Json { line: usize, column: usize },
    #[error("{0}")]
    Shape(&'static str),
    #[error("the model's response is longer than {ANSWER_BYTES} bytes")]
    TooLong,
    #[error("{0}")]
    Assembly(#[from] AssemblyError),
    #[error("{0}")]
    Event(#[from] EventTooLong),
}

impl AnswerError {
    /// Parses one JSON text.
    pub(super) fn json(text: &str) -> Result<Value, Self> {
        serde_json::from_str(text).map_err(|error| Self::Json {
            line: error.line(),
            column: error.column(),
        })
    }
}

/// Response of the model, as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    text: String,
    calls: Vec<Call>,
    model: String,
    usage: Option<TokenUsage>,
    stop: Option<StopReason>,
}

/// Tool call of the model, as far as it has arrived.
#[derive(Debug, Default)]
struct Call {
    /// Index with which the provider marks the pieces of this call, if it sends one.
    place: Option<u64>,
    id: String,
    name: String,
    /// Arguments as unparsed JSON text.
    arguments: String,
    /// Opaque data that the provider attached to the call; the next request must return it
    /// unchanged.
    extra: Option<Value>,
}

/// Part of a tool call from one event of the stream.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct CallPiece<'a> {
    pub place: Option<u64>,
    pub id: &'a str,
    pub name: &'a str,
    pub arguments: &'a str,
    pub extra: Option<&'a Value>,
}

/// Data that the client keeps between the requests of a conversation.
#[derive(Debug, Default)]
pub(super) struct ConversationState {
    /// Number of call ids generated so far. It is part of the next generated id, so that every
    /// generated id is unique in the conversation.
    made_up: u64,
    /// Opaque values that the provider attached to tool calls, by call id, e.g. a signature of the
    /// model's reasoning. The provider refuses later requests that do not repeat them.
    extras: BTreeMap<String, Value>,
}

impl ConversationState {
    fn new_id(&mut self) -> String {
        self.made_up += 1;
        format!("call_codebox_{}", self.made_up)
    }

    /// Returns the opaque data that the provider attached to this tool call.
    pub(super) fn extra(&self, call_id: &str) -> Option<&Value> {
        self.extras.get(call_id)
    }
}

impl Assembly {
    /// Appends a piece of the response's text and passes it to `on_text`.
    pub(super) fn text(&mut self, piece: &str, on_text: &mut dyn FnMut(&str)) {
        if !piece.is_empty() {
            self.text.push_str(piece);
            on_text(piece);
        }
    }

    /// Appends a piece of a tool call. A piece with an index belongs to the newest call with that
    /// index, a piece without index to the newest call. A piece with a name and a different id
    /// starts a new call, because some providers give every call the same index; so does a piece
    /// with a name but without index and id. Ignores a piece without name and id that belongs to no
    /// call.
    pub(super) fn call(&mut self, piece: CallPiece<'_>) -> Result<(), AssemblyError> {
        let same_place = |call: &&mut Call| piece.place.is_none() || call.place == piece.place;
        let found = self.calls.iter_mut().rev().find(same_place);
        let begins = match &found {
            None if piece.name.is_empty() && piece.id.is_empty() => return Ok(()),
            None => true,
            Some(call) => {
                let other_id = !piece.id.is_empty() && !call.id.is_empty() && piece.id != call.id;
                let unnumbered = piece.place.is_none()
                    && !piece.name.is_empty()
                    && (piece.id.is_empty() || piece.id != call.id);
                !piece.name.is_empty() && (other_id || unnumbered)
            }
        };
        let call = match found {
            Some(call) if !begins => call,
            Some(_) | None => {
                if self.calls.len() >= CALLS {
                    return Err(AssemblyError::Calls);
                }
                self.calls.push(Call {
                    place: piece.place,
                    ..Call::default()
                });
                match self.calls.last_mut() {
                    Some(call) => call,
                    None => return Err(AssemblyError::Calls),
                }
            }
        };
        call.add(piece)
    }

    /// Records the name of the responding model; only the first name counts.
    pub(super) fn model(&mut self, name: &str) {
        if self.model.is_empty() {
            self.model = name
                .chars()
                .filter(|c| !c.is_control())
                .take(NAME_CHARS)
                .collect();
        }
    }

    /// Updates the token counts with `change`; a provider may send them several times.
    pub(super) fn usage(&mut self, change: impl FnOnce(&mut TokenUsage)) {
        change(self.usage.get_or_insert_default());
    }

    /// Records why the model stopped; if the provider sends several reasons, the last one wins.
    pub(super) fn stop(&mut self, reason: StopReason) {
        self.stop = Some(reason);
    }

    /// Returns whether the provider sent a stop reason.
    pub(super) const fn is_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// Returns how much of the response has arrived, for a stream that has not ended.
    pub(super) const fn progress(&self) -> Progress {
        match self.is_stopped() {
            true => Progress::Stopped,
            false => Progress::More,
        }
    }

    /// Returns the complete response. `asked` is the name of the requested model; it stands in for
    /// the responding model's name when the provider sends none.
    pub(super) fn reply(self, asked: &str, carried: &mut ConversationState) -> Reply {
        let mut seen = BTreeSet::new();
        let calls: Vec<ToolCall> = self
            .calls
            .into_iter()
            .map(|call| {
                let id = if usable_id(&call.id) && !seen.contains(&call.id) {
                    call.id
                } else {
                    carried.new_id()
                };
                seen.insert(id.clone());
                if let Some(extra) = call.extra {
                    carried.extras.insert(id.clone(), extra);
                }
                ToolCall {
                    id,
                    name: call.name,
                    arguments: arguments(&call.arguments),
                }
            })
            .collect();
        let stop = match self.stop {
            // Some providers report `stop` although the response has tool calls.
            Some(StopReason::End | StopReason::Tools) | None if !calls.is_empty() => {
                StopReason::Tools
            }
            // Other providers report tool calls although the response has none.
            Some(StopReason::Tools) | None => StopReason::End,
            Some(other) => other,
        };
        Reply {
            text: self.text,
            calls,
            stop,
            usage: self.usage,
            model: if self.model.is_empty() {
                asked.to_owned()
            } else {
                self.model
            },
        }
    }
}

impl Call {
    fn add(&mut self, piece: CallPiece<'_>) -> Result<(), AssemblyError> {
        if self.id.is_empty() {
            piece.id.clone_into(&mut self.id);
        }
        // Providers send the name once, split over several pieces, or whole in every piece.
        if self.name != piece.name {
            self.name.push_str(piece.name);
        }
        if self.name.chars().count() > NAME_CHARS {
            return Err(AssemblyError::Name);
        }
        if self.arguments.len() + piece.arguments.len() > ARGUMENT_BYTES {
            return Err(AssemblyError::Arguments);
        }
        self.arguments.push_str(piece.arguments);
        if let Some(extra) = piece.extra {
            self.extra = Some(extra.clone());
        }
        Ok(())
    }
}

fn usable_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= NAME_CHARS && id.bytes().all(|b| b.is_ascii_graphic())
}

/// Parses arguments as a JSON object; an empty text is an empty object.
fn arguments(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err("the arguments are valid JSON, but not an object".to_owned()),
        Err(error) if error.is_eof() => {
            Err("the arguments are truncated: the JSON ends too early".to_owned())
        }
        Err(error) => Err(format!(
            "the arguments are not valid JSON (line {}, column {})",
            error.line(),
            error.column()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece<'a>(place: Option<u64>, id: &'a str, name: &'a str, text: &'a str) -> CallPiece<'a> {
        CallPiece {
            place,
            id,
            name,
            arguments: text,
            extra: None,
        }
    }

    fn assembled(pieces: &[CallPiece<'_>]) -> Vec<(String, String, String)> {
        let mut assembly = Assembly::default();
        for piece in pieces {
            assembly.call(*piece).unwrap();
        }
        assembly
            .reply("m", &mut ConversationState::default())
            .calls
            .into_iter()
            .map(|call| {
                let arguments = match call.arguments {
                    Ok(map) => Value::Object(map).to_string(),
                    Err(why) => why,
                };
                (call.id, call.name, arguments)
            })
            .collect()
    }

    fn row(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.to_owned(), name.to_owned(), arguments.to_owned())
    }

    #[test]
    fn pieces_of_a_streamed_tool_call_are_matched_by_index_and_id() {
        let usual = [
            piece(Some(0), "a", "read", ""),
            piece(Some(1), "b", "list", "{}"),
            piece(Some(0), "", "", "{\"p\":"),
            piece(Some(0), "", "", "1}"),
        ];
        let expected = [row("a", "read", "{\"p\":1}"), row("b", "list", "{}")];
        assert_eq!(assembled(&usual), expected);
        let one_place = [
            piece(Some(0), "a", "read", "{\"p\":1}"),
            piece(Some(0), "b", "list", "{}"),
        ];
        assert_eq!(assembled(&one_place), expected);
        let no_place = [
            piece(None, "a", "read", "{\"p\":"),
            piece(None, "", "", "1}"),
            piece(None, "b", "list", "{}"),
        ];
        assert_eq!(assembled(&no_place), expected);
        let repeated = [
            piece(Some(0), "a", "read", "{\"p\":"),
            piece(Some(0), "a", "read", "1}"),
            piece(Some(1), "b", "li", ""),
            piece(Some(1), "", "st", "{}"),
        ];
        assert_eq!(assembled(&repeated), expected);
    }

    #[test]
    fn tool_call_whose_id_is_missing_repeated_or_invalid_gets_a_generated_id() {
        let rows = assembled(&[
            piece(None, "", "read", "{}"),
            piece(None, "", "read", "{}"),
            piece(Some(9), "same", "list", ""),
            piece(Some(8), "same", "list", "null"),
            piece(Some(7), "with blank", "list", ""),
        ]);
        let ids: Vec<&str> = rows.iter().map(|row| row.0.as_str()).collect();
        assert_eq!(
            ids,
            [
                "call_codebox_1",
                "call_codebox_2",
                "same",
                "call_codebox_3",
                "call_codebox_4"
            ]
        );
        assert!(rows.iter().all(|row| row.2 == "{}"), "{rows:?}");
    }

    #[test]
    fn unparsable_tool_call_arguments_are_an_error_with_the_reason() {
        for (text, part) in [
            ("{\"a\":", "truncated"),
            ("{\"a\":1}}", "not valid JSON (line 1"),
            ("[1]", "not an object"),
            ("\"text\"", "not an object"),
        ] {
            let why = arguments(text).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        }
        assert_eq!(arguments("{\"a\":1}").unwrap()["a"], 1);
    }

    #[test]
    fn model_response_with_too_many_calls_or_too_long_arguments_or_name_is_refused() {
        let mut assembly = Assembly::default();
        for place in 0..CALLS as u64 {
            assembly
                .call(piece(Some(place * 1_000_000), "", "t", ""))
                .unwrap();
        }
        let one_more = assembly.call(piece(Some(5), "", "t", ""));
        assert_eq!(one_more, Err(AssemblyError::Calls));
        let long = "x".repeat(ARGUMENT_BYTES);
        assembly.call(piece(Some(0), "", "", &long)).unwrap();
        let more = assembly.call(piece(Some(0), "", "", "x"));
        assert_eq!(more, Err(AssemblyError::Arguments));
        let name = assembly.call(piece(Some(0), "", &long[..300], ""));
        assert_eq!(name, Err(AssemblyError::Name));
    }

    #[test]
    fn missing_or_contradictory_stop_reason_is_derived_from_the_presence_of_tool_calls() {
        let reply = |stop: Option<StopReason>, calls: usize| {
            let mut assembly = Assembly::default();
            for _ in 0..calls {
                assembly.call(piece(None, "", "t", "")).unwrap();
            }
            if let Some(stop) = stop {
                assembly.stop(stop);
            }
            assembly.reply("m", &mut ConversationState::default()).stop
        };
        assert_eq!(reply(Some(StopReason::End), 1), StopReason::Tools);
        assert_eq!(reply(Some(StopReason::Tools), 0), StopReason::End);
        assert_eq!(reply(Some(StopReason::Length), 1), StopReason::Length);
        assert_eq!(reply(Some(StopReason::Filtered), 0), StopReason::Filtered);
        assert_eq!(reply(None, 1), StopReason::Tools);
        assert_eq!(reply(None, 0), StopReason::End);
    }
}
