//! Parses responses in the chat completions protocol, streamed or as one JSON text.

use super::assembly::{AnswerError, Progress};
use super::assembly::{Assembly, CallPiece};
use super::refusal::Refusal;
use crate::StopReason;
use serde_json::Value;

/// Adds one event of a streamed response.
pub(super) fn event(
    data: &str,
    assembly: &mut Assembly,
    on_text: &mut dyn FnMut(&str),
) -> Result<Progress, AnswerError> {
    let data = data.trim();
    if data.is_empty() {
        return Ok(Progress::More);
    }
    if data == "[DONE]" {
        return Ok(Progress::Finished);
    }
    chunk(&AnswerError::json(data)?, assembly, on_text)?;
    Ok(assembly.progress())
}

/// Adds a response that is one JSON text. It has the form of a stream event with `message` instead
/// of `delta`, and must have a choice.
pub(super) fn whole(
    value: &Value,
    assembly: &mut Assembly,
    on_text: &mut dyn FnMut(&str),
) -> Result<(), AnswerError> {
    chunk(value, assembly, on_text)?;
    match value["choices"].get(0) {
        Some(_) => Ok(()),
        None => Err(AnswerError::Shape("the response has no `choices`")),
    }
}

fn chunk(
    value: &Value,
    assembly: &mut Assembly,
    on_text: &mut dyn FnMut(&str),
) -> Result<(), AnswerError> {
    if value.get("error").is_some_and(|error| !error.is_null()) {
        return Err(AnswerError::Refused(Refusal::inside(value)));
    }
    if !value.is_object() {
        return Err(AnswerError::Shape("an event is not a JSON object"));
    }
    if let Some(model) = value["model"].as_str() {
        assembly.model(model);
    }
    usage(&value["usage"], assembly);
    // Keep-alive events and the final event with token counts have no choices.
    let Some(choice) = value["choices"].get(0) else {
        return Ok(());
    };
    let part = match choice.get("delta") {
        Some(delta) => delta,
        None => &choice["message"],
    };
    text(&part["content"], assembly, on_text);
    if let Some(refusal) = part["refusal"].as_str().filter(|text| !text.is_empty()) {
        assembly.text(refusal, on_text);
        assembly.stop(StopReason::Filtered);
    }
    for call in part["tool_calls"].as_array().into_iter().flatten() {
        let function = &call["function"];
        let arguments = match &function["arguments"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            // Some local servers send the arguments as an object instead of a JSON text.
            other => other.to_string(),
        };
        assembly.call(CallPiece {
            place: call["index"].as_u64(),
            id: call["id"].as_str().unwrap_or_default(),
            name: function["name"].as_str().unwrap_or_default(),
            arguments: &arguments,
            extra: call.get("extra_content").filter(|extra| extra.is_object()),
        })?;
    }
    match choice["finish_reason"].as_str() {
        None | Some("") => {}
        Some("tool_calls" | "function_call") => assembly.stop(StopReason::Tools),
        Some("length") => assembly.stop(StopReason::Length),
        Some("content_filter") => assembly.stop(StopReason::Filtered),
        // All other values, such as `stop` and `eos`, mean the end of the response, unless an
        // earlier event gave a reason.
        Some(_) if assembly.is_stopped() => {}
        Some(_) => assembly.stop(StopReason::End),
    }
    Ok(())
}

/// Adds the response's text. `content` is a text, or a list of parts of which some are texts.
fn text(content: &Value, assembly: &mut Assembly, on_text: &mut dyn FnMut(&str)) {
    match content {
        Value::String(text) => assembly.text(text, on_text),
        Value::Array(parts) => {
            for text in parts.iter().filter_map(|part| part["text"].as_str()) {
                assembly.text(text, on_text);
            }
        }
        _ => {}
    }
}

fn usage(value: &Value, assembly: &mut Assembly) {
    let Some(input) = value["prompt_tokens"].as_u64() else {
        return;
    };
    let cached = value["prompt_tokens_details"]["cached_tokens"]
        .as_u64()
        .or_else(|| value["prompt_cache_hit_tokens"].as_u64())
        .unwrap_or(0);
    assembly.usage(|usage| {
        usage.input = input;
        usage.cached_input = cached.min(input);
        usage.output = value["completion_tokens"].as_u64().unwrap_or(0);
    });
}
