//! Chat completions: the request.

use super::assembly::Carried;
use super::dialect::{Delivery, Dialect, LimitWord, UsageOption};
use crate::{Message, ToolCall, TurnRequest};
use serde_json::{Map, Value, json};

/// Where it is asked, behind the base URL.
pub(super) const PATH: &str = "/chat/completions";
/// Its name in errors.
pub(super) const PROTOCOL: &str = "the chat completions protocol";

/// The request's body.
pub(super) fn body(
    model: &str,
    request: TurnRequest<'_>,
    dialect: Dialect,
    carried: &Carried,
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
        LimitWord::MaxTokens => "max_tokens",
        LimitWord::MaxCompletionTokens => "max_completion_tokens",
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

/// Every message. Texts of the user that follow each other are one: some models refuse two.
fn messages(request: TurnRequest<'_>, carried: &Carried) -> Vec<Value> {
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

/// One message; an answer with nothing in it is none.
fn message(message: &Message, carried: &Carried) -> Option<Value> {
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
        // There is no field for the status: the text says how it went.
        Message::Tool {
            call_id,
            text,
            status: _,
        } => Some(json!({"role": "tool", "tool_call_id": call_id, "content": text})),
    }
}

/// A call as the model made it. Arguments that could not be read are left out: endpoints
/// parse them again, and one that cannot fails the whole conversation.
fn call(call: &ToolCall, carried: &Carried) -> Value {
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
