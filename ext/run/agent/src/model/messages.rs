//! Builds requests in the messages protocol.
//!
//! Every request repeats the conversation, so the request marks two prefixes for the provider's
//! prompt cache: the tools with the system text, and everything up to the last message. Tokens
//! that the provider writes into its cache count as input, because price tables have no separate
//! price for them.

use super::dialect::{CacheMark, Delivery, Dialect};
use crate::{Message, ToolStatus, TurnRequest};
use serde_json::{Map, Value, json};

/// Path of the request URL, below the base URL of the model.
pub(super) const PATH: &str = "/v1/messages";
/// Name of the protocol in error messages.
pub(super) const PROTOCOL: &str = "the messages protocol";
/// Protocol version, sent in the `anthropic-version` header.
pub(super) const VERSION: &str = "2023-06-01";

/// Returns the JSON body of a request.
pub(super) fn body(model: &str, request: TurnRequest<'_>, dialect: Dialect) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("max_tokens".to_owned(), json!(request.max_output_tokens));
    if !request.system.is_empty() {
        let mut system = json!({"type": "text", "text": request.system});
        mark(&mut system, dialect);
        body.insert("system".to_owned(), json!([system]));
    }
    let mut messages = turns(request.messages);
    if let Some(blocks) = messages.last_mut().map(|last| &mut last["content"])
        && let Some(last) = blocks.as_array_mut().and_then(|blocks| blocks.last_mut())
    {
        mark(last, dialect);
    }
    body.insert("messages".to_owned(), Value::Array(messages));
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.parameters,
            })
        });
        body.insert("tools".to_owned(), tools.collect());
        body.insert("tool_choice".to_owned(), json!({"type": "auto"}));
    }
    let stream = match dialect.delivery {
        Delivery::Stream => true,
        Delivery::Whole => false,
    };
    body.insert("stream".to_owned(), json!(stream));
    Value::Object(body)
}

/// Marks a content block as the end of a prefix that the provider should cache.
fn mark(block: &mut Value, dialect: Dialect) {
    match dialect.cache {
        CacheMark::Set => block["cache_control"] = json!({"type": "ephemeral"}),
        CacheMark::LeftOut => {}
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
}

impl Role {
    const fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// Returns the messages as the protocol requires: first message from the user, alternating roles,
/// tool results before texts, no empty text.
fn turns(messages: &[Message]) -> Vec<Value> {
    let mut turns: Vec<(Role, Vec<Value>)> = Vec::new();
    for message in messages {
        let (role, blocks) = blocks(message);
        if blocks.is_empty() {
            continue;
        }
        match turns.last_mut() {
            Some((last, before)) if *last == role => before.extend(blocks),
            Some(_) | None => turns.push((role, blocks)),
        }
    }
    if turns
        .first()
        .is_some_and(|(role, _)| *role == Role::Assistant)
    {
        let block = json!({"type": "text", "text": "Go on."});
        turns.insert(0, (Role::User, vec![block]));
    }
    turns
        .into_iter()
        .map(|(role, mut blocks)| {
            if role == Role::User {
                // The sort is stable, so results keep their order among each other, and texts too.
                blocks.sort_by_key(|block| block["type"] != "tool_result");
            }
            json!({"role": role.word(), "content": blocks})
        })
        .collect()
}

fn blocks(message: &Message) -> (Role, Vec<Value>) {
    let said = |text: &str| {
        (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text.trim_end()}))
    };
    match message {
        Message::User(text) => (Role::User, said(text).into_iter().collect()),
        Message::Assistant { text, calls } => {
            let calls = calls.iter().map(|call| {
                let input = match &call.arguments {
                    Ok(map) => Value::Object(map.clone()),
                    // The arguments could not be parsed; the tool result states that.
                    Err(_) => Value::Object(Map::new()),
                };
                json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
            });
            (
                Role::Assistant,
                said(text).into_iter().chain(calls).collect(),
            )
        }
        Message::Tool {
            call_id,
            text,
            status,
        } => {
            let mut block = json!({
                "type": "tool_result",
                "tool_use_id": call_id,
                "content": text,
            });
            match status {
                ToolStatus::Ok => {}
                ToolStatus::Failed | ToolStatus::Denied => block["is_error"] = json!(true),
            }
            (Role::User, vec![block])
        }
    }
}
