//! Puts an answer together from its pieces.

use super::events::EventTooLong;
use super::limits::{ANSWER_BYTES, ARGUMENT_BYTES, CALLS, NAME_CHARS};
use super::refusal::Refusal;
use crate::{Reply, StopReason, TokenUsage, ToolCall};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// An answer is larger than any that makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum AssemblyError {
    #[error("an answer has more than {CALLS} tool calls")]
    Calls,
    #[error("the arguments of a call are longer than {ARGUMENT_BYTES} bytes")]
    Arguments,
    #[error("the name of a called tool is longer than {NAME_CHARS} characters")]
    Name,
}

/// How far an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Progress {
    /// There must be more.
    More,
    /// The model is done; numbers may follow.
    Stopped,
    /// Nothing follows.
    Finished,
}

/// Why an answer cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum AnswerError {
    /// It ended too early: to be asked again.
    #[error("the answer broke off")]
    Cut,
    /// It is a refusal.
    #[error("the answer is a refusal")]
    Refused(Refusal),
    #[error("the JSON of the answer is broken (line {line}, column {column})")]
    Json { line: usize, column: usize },
    #[error("{0}")]
    Shape(&'static str),
    #[error("an answer is longer than {ANSWER_BYTES} bytes")]
    TooLong,
    #[error("{0}")]
    Assembly(#[from] AssemblyError),
    #[error("{0}")]
    Event(#[from] EventTooLong),
}

impl AnswerError {
    /// Parses a piece of JSON.
    pub(super) fn json(text: &str) -> Result<Value, Self> {
        serde_json::from_str(text).map_err(|error| Self::Json {
            line: error.line(),
            column: error.column(),
        })
    }
}

/// An answer under way.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    text: String,
    calls: Vec<Call>,
    model: String,
    usage: Option<TokenUsage>,
    stop: Option<StopReason>,
}

/// A call under way.
#[derive(Debug, Default)]
struct Call {
    /// Where the provider counts it, if it counts.
    place: Option<u64>,
    id: String,
    name: String,
    /// Text that should be JSON.
    arguments: String,
    /// Not ours to read.
    extra: Option<Value>,
}

/// A piece of a call.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct CallPiece<'a> {
    pub place: Option<u64>,
    pub id: &'a str,
    pub name: &'a str,
    pub arguments: &'a str,
    pub extra: Option<&'a Value>,
}

/// What goes from turn to turn beside the messages.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// Ids made up so far: unlike each other over a whole conversation.
    made_up: u64,
    /// What a provider wants to see again with a call, e.g. a signature of its thoughts, by
    /// the call's id. Whoever leaves it out is refused.
    extras: BTreeMap<String, Value>,
}

impl Carried {
    fn new_id(&mut self) -> String {
        self.made_up += 1;
        format!("call_codebox_{}", self.made_up)
    }

    /// What belongs to a call.
    pub(super) fn extra(&self, call_id: &str) -> Option<&Value> {
        self.extras.get(call_id)
    }
}

impl Assembly {
    /// More text.
    pub(super) fn text(&mut self, piece: &str, on_text: &mut dyn FnMut(&str)) {
        if !piece.is_empty() {
            self.text.push_str(piece);
            on_text(piece);
        }
    }

    /// More of a call. A piece belongs to the newest call of its place, or, without one, to
    /// the newest of all; one that brings a name and another id begins a call of its own:
    /// some providers give every call the same place. One that belongs nowhere and names
    /// nothing is not of a call of ours.
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

    /// The model as it names itself; the first word counts.
    pub(super) fn model(&mut self, name: &str) {
        if self.model.is_empty() {
            self.model = name
                .chars()
                .filter(|c| !c.is_control())
                .take(NAME_CHARS)
                .collect();
        }
    }

    /// Tokens so far: a later word replaces what it has a number for.
    pub(super) fn usage(&mut self, change: impl FnOnce(&mut TokenUsage)) {
        change(self.usage.get_or_insert_default());
    }

    /// Why it stopped; the last word counts.
    pub(super) fn stop(&mut self, reason: StopReason) {
        self.stop = Some(reason);
    }

    /// Whether the model said why it stopped.
    pub(super) const fn is_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// How far it is, as long as the stream goes on.
    pub(super) const fn progress(&self) -> Progress {
        match self.is_stopped() {
            true => Progress::Stopped,
            false => Progress::More,
        }
    }

    /// The answer. `asked` is the model that was asked, for providers that do not say.
    pub(super) fn reply(self, asked: &str, carried: &mut Carried) -> Reply {
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
            // Some providers say `stop` and call all the same.
            Some(StopReason::End | StopReason::Tools) | None if !calls.is_empty() => {
                StopReason::Tools
            }
            // And some say they call, and do not.
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
        // A name comes whole, in pieces, or again with every piece.
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

/// Arguments as an object, or why they are none. No arguments at all are an empty object.
fn arguments(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err("the arguments are valid JSON, but not an object".to_owned()),
        Err(error) if error.is_eof() => {
            Err("the arguments are cut off: the JSON ends too early".to_owned())
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
            .reply("m", &mut Carried::default())
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
    fn pieces_find_their_call() {
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
    fn calls_without_an_id_of_their_own_get_one() {
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
    fn arguments_that_are_none_are_told() {
        for (text, part) in [
            ("{\"a\":", "cut off"),
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
    fn an_answer_is_bounded() {
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
    fn the_reason_fits_the_answer() {
        let reply = |stop: Option<StopReason>, calls: usize| {
            let mut assembly = Assembly::default();
            for _ in 0..calls {
                assembly.call(piece(None, "", "t", "")).unwrap();
            }
            if let Some(stop) = stop {
                assembly.stop(stop);
            }
            assembly.reply("m", &mut Carried::default()).stop
        };
        assert_eq!(reply(Some(StopReason::End), 1), StopReason::Tools);
        assert_eq!(reply(Some(StopReason::Tools), 0), StopReason::End);
        assert_eq!(reply(Some(StopReason::Length), 1), StopReason::Length);
        assert_eq!(reply(Some(StopReason::Filtered), 0), StopReason::Filtered);
        assert_eq!(reply(None, 1), StopReason::Tools);
        assert_eq!(reply(None, 0), StopReason::End);
    }
}
