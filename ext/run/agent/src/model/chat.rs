//! Builds requests in the chat completions protocol.

use super::assembly::ConversationState;
use super::dialect::{Delivery, Dialect, LimitField, UsageOption};
use crate::{Message, ToolCall, TurnRequest};
use serde_json::{Map, Value, json};

/// Path of the request URL, below the base URL of the model.
pub(super) const PATH: &str = "/chat/completions";
/// Name of the protocol in error messages.
pub(super) const PROTOCOL: &str = "the chat completions protocol";

/// Returns the JSON body of a request.
pub(super) fn body(
    model: &str,
    request: TurnRequest<'_>,
    dialect: Dialect,
    carried: &ConversationState,
) -> Value {
    let messages = messages(request, carried);
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("messages".to_owned(), Value::Array(messages));
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({"type": "function", "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            }})
        });
        body.insert("tools".to_owned(), tools.collect());
    }
    let limit = match dialect.limit {
        LimitField::MaxTokens => "max_tokens",
        LimitField::MaxCompletionTokens => "max_completion_tokens",
    };
    body.insert(limit.to_owned(), json!(request.max_output_tokens));
    match dialect.delivery {
        Delivery::Stream => {
            body.insert("stream".to_owned(), json!(true));
            match dialect.usage {
                UsageOption::Asked => {
                    let options = json!({"include_usage": true});
                    body.insert("stream_options".to_owned(), options);
                }
                UsageOption::LeftOut => {}
            }
        }
        Delivery::Whole => {
            body.insert("stream".to_owned(), json!(false));
        }
    }
    Value::Object(body)
}

/// Returns the conversation as the protocol's messages. Merges consecutive user texts, because some
/// models reject them.
fn messages(request: TurnRequest<'_>, carried: &ConversationState) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    for next in request.messages {
        match (next, messages.last_mut()) {
            (Message::User(text), Some(last)) if last["role"] == "user" => {
                let before = last["content"].as_str().unwrap_or_default();
                last["content"] = json!(format!("{before}\n\n{text}"));
            }
            (next, _) => messages.extend(message(next, carried)),
        }
    }
    messages
}

/// Returns one message in the protocol's form; `None` for an empty response of the model.
fn message(message: &Message, carried: &ConversationState) -> Option<Value> {
    match message {
        Message::User(text) => Some(json!({"role": "user", "content": text})),
        Message::Assistant { text, calls } if calls.is_empty() => {
            (!text.is_empty()).then(|| json!({"role": "assistant", "content": text}))
        }
        Message::Assistant { text, calls } => {
            let content = if text.is_empty() {
                Value::Null
            } else {
                json!(text)
            };
            Some(json!({
                "role": "assistant",
                "content": content,
                "tool_calls": calls.iter().map(|made| call(made, carried)).collect::<Vec<_>>(),
            }))
        }
        // The protocol has no field for the status, so the text states it.
        Message::Tool {
            call_id,
            text,
            status: _,
        } => Some(json!({"role": "tool", "tool_call_id": call_id, "content": text})),
    }
}

/// Returns a call as the model made it. Omits arguments that could not be parsed: endpoints parse
/// them again, and a parse error there fails the whole conversation.
fn call(call: &ToolCall, carried: &ConversationState) -> Value {
    let arguments = match &call.arguments {
        Ok(map) => serde_json::to_string(map).unwrap_or_else(|_| "{}".to_owned()),
        Err(_) => "{}".to_owned(),
    };
    let mut row = json!({
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    });
    if let Some(extra) = carried.extra(&call.id) {
        row["extra_content"] = extra.clone();
    }
    row
}
