//! Parses responses in the messages protocol, streamed or as one JSON text.

use super::assembly::{AnswerError, Progress};
use super::assembly::{Assembly, CallPiece};
use super::events::Event;
use super::refusal::Refusal;
use crate::StopReason;
use serde_json::Value;

/// Adds one event of a streamed response.
pub(super) fn event(
    event: &Event,
    assembly: &mut Assembly,
    on_text: &mut dyn FnMut(&str),
) -> Result<Progress, AnswerError> {
    if event.data.trim().is_empty() {
        return Ok(Progress::More);
    }
    let value = AnswerError::json(&event.data)?;
    // The event name repeats the type in the data, and is used if the data has no type.
    let kind = value["type"].as_str().unwrap_or(&event.name);
    let place = value["index"].as_u64();
    match kind {
        "message_start" => {
            let message = &value["message"];
            if let Some(model) = message["model"].as_str() {
                assembly.model(model);
            }
            usage(&message["usage"], assembly);
        }
        "content_block_start" => block(place, &value["content_block"], assembly, on_text)?,
        "content_block_delta" => {
            let delta = &value["delta"];
            if let Some(text) = delta["text"].as_str() {
                assembly.text(text, on_text);
            }
            if let Some(json) = delta["partial_json"].as_str() {
                assembly.call(CallPiece {
                    place,
                    arguments: json,
                    ..CallPiece::default()
                })?;
            }
        }
        "message_delta" => {
            usage(&value["usage"], assembly);
            stop(&value["delta"]["stop_reason"], assembly);
        }
        "message_stop" => return Ok(Progress::Finished),
        "error" => return Err(AnswerError::Refused(Refusal::inside(&value))),
        _ if value.get("error").is_some_and(Value::is_object) => {
            return Err(AnswerError::Refused(Refusal::inside(&value)));
        }
        // Ignores `ping`, ends of blocks and future event types.
        _ => {}
    }
    Ok(assembly.progress())
}

/// Adds a response that is one JSON text.
pub(super) fn whole(
    value: &Value,
    assembly: &mut Assembly,
    on_text: &mut dyn FnMut(&str),
) -> Result<(), AnswerError> {
    if value["type"] == "error" || value.get("error").is_some_and(Value::is_object) {
        return Err(AnswerError::Refused(Refusal::inside(value)));
    }
    let Some(blocks) = value["content"].as_array() else {
        return Err(AnswerError::Shape("the response has no `content`"));
    };
    if let Some(model) = value["model"].as_str() {
        assembly.model(model);
    }
    usage(&value["usage"], assembly);
    for (place, content) in (0..).zip(blocks) {
        block(Some(place), content, assembly, on_text)?;
    }
    stop(&value["stop_reason"], assembly);
    Ok(())
}

/// Adds a content block of the response, or the start of one in a stream. Uses only text and tool
/// calls; blocks with reasoning are skipped.
fn block(
    place: Option<u64>,
    content: &Value,
    assembly: &mut Assembly,
    on_text: &mut dyn FnMut(&str),
) -> Result<(), AnswerError> {
    match content["type"].as_str() {
        Some("text") => {
            assembly.text(content["text"].as_str().unwrap_or_default(), on_text);
        }
        Some("tool_use") => {
            // A streamed block starts with empty arguments; later events contain their pieces.
            let arguments = match &content["input"] {
                Value::Null => String::new(),
                Value::Object(input) if input.is_empty() => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            assembly.call(CallPiece {
                place,
                id: content["id"].as_str().unwrap_or_default(),
                name: content["name"].as_str().unwrap_or_default(),
                arguments: &arguments,
                extra: None,
            })?;
        }
        Some(_) | None => {}
    }
    Ok(())
}

/// Adds the token counts. `input_tokens` does not include tokens that the provider read from or
/// wrote to its cache, so these are added.
fn usage(value: &Value, assembly: &mut Assembly) {
    let count = |name: &str| value[name].as_u64();
    if let Some(plain) = count("input_tokens") {
        let cached = count("cache_read_input_tokens").unwrap_or(0);
        let written = count("cache_creation_input_tokens").unwrap_or(0);
        assembly.usage(|usage| {
            usage.input = plain.saturating_add(cached).saturating_add(written);
            usage.cached_input = cached;
        });
    }
    if let Some(output) = count("output_tokens") {
        assembly.usage(|usage| usage.output = output);
    }
}

fn stop(reason: &Value, assembly: &mut Assembly) {
    match reason.as_str() {
        None => {}
        Some("tool_use") => assembly.stop(StopReason::Tools),
        Some("max_tokens" | "model_context_window_exceeded") => assembly.stop(StopReason::Length),
        Some("refusal") => assembly.stop(StopReason::Filtered),
        // `end_turn`, `stop_sequence`, `pause_turn` and reasons unknown to this client.
        Some(_) => assembly.stop(StopReason::End),
    }
}
