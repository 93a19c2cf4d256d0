//! Tests of the messages protocol: request bodies, and all forms of responses.

use super::server::{status, stream};
use super::*;
use crate::{StopReason, TokenUsage, ToolCall, ToolStatus};
use serde_json::{Map, Value};

fn talk(answers: Vec<Answer>) -> TestClient {
    TestClient::new(ModelApi::AnthropicMessages, answers)
}

fn event(value: &Value) -> String {
    format!("event: {}\ndata: {value}", value["type"].as_str().unwrap())
}

fn begin() -> String {
    event(&json!({"type": "message_start", "message": {
        "model": "example-large-2", "content": [],
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2, "output_tokens": 1},
    }}))
}

fn text(piece: &str) -> String {
    event(
        &json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}),
    )
}

fn end(reason: &str) -> String {
    event(
        &json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}}),
    )
}

fn played(events: &[String]) -> Answer {
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    stream(&events)
}

fn hello() -> Answer {
    played(&[
        begin(),
        event(
            &json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        ),
        event(&json!({"type": "ping"})),
        text("Hel"),
        text("lo."),
        event(&json!({"type": "content_block_stop", "index": 0})),
        end("end_turn"),
        event(&json!({"type": "message_stop"})),
    ])
}

#[test]
fn streamed_response_and_request_body_match_the_messages_api() {
    let mut talk = talk(vec![hello()]);
    let reply = talk.ask().unwrap();
    assert_eq!(
        reply,
        Reply {
            text: "Hello.".to_owned(),
            calls: Vec::new(),
            stop: StopReason::End,
            usage: Some(TokenUsage {
                input: 17,
                cached_input: 5,
                output: 9
            }),
            model: "example-large-2".to_owned(),
        }
    );
    assert_eq!(talk.text, "Hello.");
    let asked = &talk.asked()[0];
    assert!(asked.head.starts_with("POST /v1/messages HTTP/1.1"));
    assert_eq!(asked.header("x-api-key"), Some(KEY));
    assert_eq!(asked.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(asked.header("authorization"), None);
    assert_eq!(
        asked.body,
        json!({
            "model": "example-large",
            "max_tokens": 512,
            "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": [
                {"type": "text", "text": "Hello.", "cache_control": {"type": "ephemeral"}},
            ]}],
            "tools": [{
                "name": "workspace_read",
                "description": "Reads a file.",
                "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
            }],
            "tool_choice": {"type": "auto"},
            "stream": true,
        })
    );
}

#[test]
fn messages_request_alternates_roles_and_puts_tool_results_before_user_text() {
    let call = |id: &str, arguments: Result<Map<String, Value>, String>| ToolCall {
        id: id.to_owned(),
        name: "workspace_read".to_owned(),
        arguments,
    };
    let said = |text: &str| Message::Assistant {
        text: text.to_owned(),
        calls: Vec::new(),
    };
    let result = |id: &str, status| Message::Tool {
        call_id: id.to_owned(),
        text: format!("of {id}"),
        status,
    };
    let path = json!({"path": "a"}).as_object().cloned().unwrap();
    let mut talk = talk(vec![hello()]);
    talk.say(&[
        said("Where was I?"),
        Message::User("Go.".to_owned()),
        Message::User("Now.".to_owned()),
        Message::Assistant {
            text: " \n".to_owned(),
            calls: vec![call("a", Ok(path)), call("b", Err("cut off".to_owned()))],
        },
        Message::User("Hurry.".to_owned()),
        result("a", ToolStatus::Ok),
        result("b", ToolStatus::Denied),
        said(""),
        said("Done. \n"),
    ])
    .unwrap();
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(
        talk.asked()[0].body["messages"],
        json!([
            {"role": "user", "content": [text("Go on.")]},
            {"role": "assistant", "content": [text("Where was I?")]},
            {"role": "user", "content": [text("Go."), text("Now.")]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "a", "name": "workspace_read", "input": {"path": "a"}},
                {"type": "tool_use", "id": "b", "name": "workspace_read", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "of a"},
                {"type": "tool_result", "tool_use_id": "b", "content": "of b", "is_error": true},
                text("Hurry."),
            ]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "Done.", "cache_control": {"type": "ephemeral"}},
            ]},
        ])
    );
}

#[test]
fn streamed_tool_calls_are_assembled_and_reasoning_is_skipped() {
    let start = |place: u64, block: Value| {
        event(&json!({"type": "content_block_start", "index": place, "content_block": block}))
    };
    let json_piece = |place: u64, piece: &str| {
        event(
            &json!({"type": "content_block_delta", "index": place, "delta": {"type": "input_json_delta", "partial_json": piece}}),
        )
    };
    let tool =
        |id: &str| json!({"type": "tool_use", "id": id, "name": "workspace_read", "input": {}});
    let mut talk = talk(vec![played(&[
        begin(),
        start(0, json!({"type": "thinking", "thinking": ""})),
        event(
            &json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}}),
        ),
        start(1, tool("a")),
        json_piece(1, "{\"path\":"),
        json_piece(1, "\"a\"}"),
        start(2, tool("b")),
        start(
            3,
            json!({"type": "server_tool_use", "id": "s", "name": "search", "input": {}}),
        ),
        json_piece(3, "{\"q\":1}"),
        start(4, tool("c")),
        json_piece(4, "{\"path\""),
        end("tool_use"),
        event(&json!({"type": "message_stop"})),
    ])]);
    let reply = talk.ask().unwrap();
    assert_eq!((reply.text.as_str(), &reply.stop), ("", &StopReason::Tools));
    let ids: Vec<&str> = reply.calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert_eq!(reply.calls[0].arguments.as_ref().unwrap()["path"], "a");
    assert!(reply.calls[1].arguments.as_ref().unwrap().is_empty());
    assert!(reply.calls[2].arguments.is_err());
}

#[test]
fn cache_control_is_omitted_after_the_endpoint_rejected_it() {
    let refusal = json!({"type": "error", "error": {
        "type": "invalid_request_error", "message": "system.0.cache_control: unknown field",
    }});
    let mut talk = talk(vec![status(400, "", &refusal.to_string()), hello()]);
    talk.ask().unwrap();
    talk.ask().unwrap();
    let asked = talk.asked();
    assert_eq!(asked.len(), 3, "it is learnt once");
    assert!(asked[0].body.to_string().contains("cache_control"));
    for later in &asked[1..] {
        assert!(!later.body.to_string().contains("cache_control"));
        assert_eq!(later.body["system"][0]["text"], "Be brief.");
    }
}

#[test]
fn unstreamed_model_response_is_accepted() {
    let whole = json!({
        "type": "message", "model": "example-large-2", "stop_reason": "tool_use",
        "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "a", "name": "workspace_read", "input": {"path": "a"}},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 4},
    });
    let reply = talk(vec![status(200, "", &whole.to_string())])
        .ask()
        .unwrap();
    assert_eq!(reply.text, "I look.");
    assert_eq!(reply.stop, StopReason::Tools);
    assert_eq!(reply.calls[0].arguments.as_ref().unwrap()["path"], "a");
    assert_eq!(reply.usage.unwrap().output, 4);
}

#[test]
fn stop_reasons_of_the_messages_api_tell_length_limit_and_refusal_from_a_normal_end() {
    for (reason, stop) in [
        ("end_turn", StopReason::End),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Length),
        ("refusal", StopReason::Filtered),
        ("something_new", StopReason::End),
    ] {
        // Without `message_stop`, a stop reason is enough to complete the response.
        let mut talk = talk(vec![played(&[begin(), text("x"), end(reason)])]);
        assert_eq!(talk.ask().unwrap().stop, stop, "{reason}");
    }
}

#[test]
fn error_inside_a_model_stream_is_classified_by_its_type_and_message() {
    let error = |kind: &str, message: &str| {
        event(&json!({"type": "error", "error": {"type": kind, "message": message}}))
    };
    let broken = |kind: &str, message: &str| played(&[begin(), text("Hel"), error(kind, message)]);

    let mut later = talk(vec![broken("overloaded_error", "Overloaded"), hello()]);
    assert_eq!(later.ask().unwrap().text, "Hello.");
    assert_eq!(later.asked().len(), 2);

    let answer = talk(vec![broken("authentication_error", "no")]).ask();
    assert_eq!(answer, Err(ModelError::Unauthorised { status: 401 }));
    let answer = talk(vec![broken(
        "invalid_request_error",
        "prompt is too long: 2 > 1",
    )])
    .ask();
    assert_eq!(answer, Err(ModelError::TooLong));
    let answer = talk(vec![broken("invalid_request_error", "messages.3: no")]).ask();
    let why = "messages.3: no".to_owned();
    assert_eq!(answer, Err(ModelError::Rejected { status: 400, why }));
}
