//! Tests of the chat completions protocol: request bodies, and all forms of responses.

use super::server::{raw, status, stream, stream_head};
use super::*;
use crate::{StopReason, TokenUsage, ToolCall, ToolStatus};
use serde_json::{Map, Value};

fn talk(answers: Vec<Answer>) -> TestClient {
    TestClient::new(ModelApi::OpenaiChat, answers)
}

fn delta(delta: &Value, finish: Option<&str>) -> String {
    let chunk = json!({"model": "example-large-2", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    format!("data: {chunk}")
}

fn hello() -> Answer {
    stream(&[
        &delta(&json!({"role": "assistant", "content": ""}), None),
        &delta(&json!({"content": "Hel"}), None),
        &delta(&json!({"content": "lo."}), None),
        &delta(&json!({}), Some("stop")),
        r#"data: {"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}}"#,
        "data: [DONE]",
    ])
}

#[test]
fn streamed_response_and_request_body_match_the_chat_completions_api() {
    let mut talk = talk(vec![hello()]);
    let reply = talk.ask().unwrap();
    assert_eq!(
        reply,
        Reply {
            text: "Hello.".to_owned(),
            calls: Vec::new(),
            stop: StopReason::End,
            usage: Some(TokenUsage {
                input: 12,
                cached_input: 4,
                output: 3
            }),
            model: "example-large-2".to_owned(),
        }
    );
    assert_eq!(talk.text, "Hello.");
    let asked = talk.asked();
    assert_eq!(asked.len(), 1);
    let asked = &asked[0];
    assert!(asked.head.starts_with("POST /v1/chat/completions HTTP/1.1"));
    let bearer = format!("Bearer {KEY}");
    assert_eq!(asked.header("authorization"), Some(bearer.as_str()));
    for absent in ["cookie", "referer", "x-api-key", "accept-encoding"] {
        assert_eq!(asked.header(absent), None, "{absent}");
    }
    assert_eq!(
        asked.body,
        json!({
            "model": "example-large",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hello."},
            ],
            "tools": [{"type": "function", "function": {
                "name": "workspace_read",
                "description": "Reads a file.",
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
            }}],
            "max_tokens": 512,
            "stream": true,
            "stream_options": {"include_usage": true},
        })
    );
}

#[test]
fn tool_calls_and_results_are_sent_as_chat_completions_messages() {
    let call = |id: &str, arguments: Result<Map<String, Value>, String>| ToolCall {
        id: id.to_owned(),
        name: "workspace_read".to_owned(),
        arguments,
    };
    let mut talk = talk(vec![hello()]);
    let path = json!({"path": "a.php"}).as_object().cloned().unwrap();
    talk.say(&[
        Message::User("Go.".to_owned()),
        Message::User("Read.".to_owned()),
        Message::Assistant {
            text: String::new(),
            calls: vec![call("a", Ok(path)), call("b", Err("cut off".to_owned()))],
        },
        Message::Tool {
            call_id: "a".to_owned(),
            text: "<?php".to_owned(),
            status: ToolStatus::Ok,
        },
        Message::Tool {
            call_id: "b".to_owned(),
            text: "The arguments are cut off.".to_owned(),
            status: ToolStatus::Failed,
        },
        Message::Assistant {
            text: String::new(),
            calls: Vec::new(),
        },
        Message::Assistant {
            text: "Done.".to_owned(),
            calls: Vec::new(),
        },
    ])
    .unwrap();
    let function = |arguments: &str| json!({"name": "workspace_read", "arguments": arguments});
    assert_eq!(
        talk.asked()[0].body["messages"],
        json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Go.\n\nRead."},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "a", "type": "function", "function": function("{\"path\":\"a.php\"}")},
                {"id": "b", "type": "function", "function": function("{}")},
            ]},
            {"role": "tool", "tool_call_id": "a", "content": "<?php"},
            {"role": "tool", "tool_call_id": "b", "content": "The arguments are cut off."},
            {"role": "assistant", "content": "Done."},
        ])
    );
}

#[test]
fn pieces_of_a_streamed_tool_call_are_assembled() {
    let first = json!({"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "workspace_read", "arguments": ""}}]});
    let more = |place: u64, text: &str| json!({"tool_calls": [{"index": place, "function": {"arguments": text}}]});
    let second = json!({"tool_calls": [{"index": 1, "id": "b", "function": {"name": "workspace_read", "arguments": "{\"path\": 7"}}]});
    let mut talk = talk(vec![stream(&[
        &delta(&json!({"content": "I look."}), None),
        &delta(&first, None),
        &delta(&more(0, "{\"path\":"), None),
        &delta(&second, None),
        &delta(&more(0, "\"a\"}"), None),
        &delta(&json!({}), Some("tool_calls")),
        "data: [DONE]",
    ])]);
    let reply = talk.ask().unwrap();
    assert_eq!(reply.stop, StopReason::Tools);
    assert_eq!(reply.text, "I look.");
    assert_eq!(reply.calls.len(), 2);
    assert_eq!(reply.calls[0].id, "a");
    assert_eq!(reply.calls[0].arguments.as_ref().unwrap()["path"], "a");
    let why = reply.calls[1].arguments.as_ref().unwrap_err();
    assert!(why.contains("truncated"), "{why}");
    assert_eq!(reply.usage, None);
}

#[test]
fn variants_of_the_stream_syntax_yield_the_same_model_response() {
    let (a, b) = (json!({"content": "Hel"}), json!({"content": "lo."}));
    let event = |value: &Value| delta(value, None);
    let stop = delta(&json!({}), Some("stop"));
    let body = |text: String| vec![stream_head(), raw(text)];
    let forms: Vec<(&str, Answer)> = vec![
        (
            "CRLF, no blank behind the colon, comments, keep-alives",
            body(format!(
                ": ping\r\n\r\n{}\r\n\r\ndata: {{\"choices\":[]}}\r\n\r\ndata:\r\n\r\n{}\r\n\r\n{stop}\r\n\r\ndata:[DONE]\r\n\r\n",
                event(&a).replacen("data: ", "data:", 1),
                event(&b),
            )),
        ),
        (
            "no [DONE]",
            body(format!("{}\n\n{}\n\n{stop}\n\n", event(&a), event(&b))),
        ),
        (
            "no last empty line",
            body(format!("{}\n\n{}\n\n{stop}", event(&a), event(&b))),
        ),
        (
            "no reason, only [DONE]",
            body(format!(
                "{}\n\n{}\n\ndata: [DONE]\n\n",
                event(&a),
                event(&b)
            )),
        ),
        (
            "an event over several lines",
            body(format!(
                "data: {{\"choices\": [{{\"delta\":\ndata:  {{\"content\": \"Hello.\"}}}}]}}\n\n{stop}\n\n"
            )),
        ),
        (
            "text as a list of parts",
            body(format!(
                "{}\n\n{stop}\n\n",
                event(
                    &json!({"content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "Hello."}]})
                )
            )),
        ),
        (
            "the connection stays open behind the last word",
            vec![
                stream_head(),
                raw(format!("{}\n\n{}\n\n{stop}\n\n", event(&a), event(&b))),
                server::Step::Hang,
            ],
        ),
        (
            "not streamed at all",
            status(
                200,
                "",
                r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}]}"#,
            ),
        ),
    ];
    for (name, answer) in forms {
        let mut talk = talk(vec![answer]);
        let reply = talk.ask().unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(reply.text, "Hello.", "{name}");
        assert_eq!(talk.text, "Hello.", "{name}");
        assert_eq!(reply.stop, StopReason::End, "{name}");
        assert_eq!(talk.asked().len(), 1, "{name}");
    }
}

#[test]
fn tool_calls_with_object_arguments_and_without_ids_are_recognised() {
    let object = json!({"tool_calls": [{"function": {"name": "workspace_read", "arguments": {"path": "a"}}}]});
    let forms: Vec<Answer> = vec![
        stream(&[&delta(&object, Some("stop")), "data: [DONE]"]),
        status(
            200,
            "",
            &json!({"choices": [{"message": {"content": null, "tool_calls": object["tool_calls"]}, "finish_reason": "stop"}]})
                .to_string(),
        ),
    ];
    for form in forms {
        let reply = talk(vec![form]).ask().unwrap();
        assert_eq!(reply.stop, StopReason::Tools);
        assert_eq!(reply.calls[0].id, "call_codebox_1");
        assert_eq!(reply.calls[0].arguments.as_ref().unwrap()["path"], "a");
    }
}

#[test]
fn generated_call_ids_are_unique_across_turns() {
    let call = json!({"tool_calls": [{"function": {"name": "workspace_read", "arguments": "{}"}}]});
    let mut talk = talk(vec![stream(&[&delta(&call, Some("tool_calls"))])]);
    let first = talk.ask().unwrap().calls.remove(0).id;
    let second = talk.ask().unwrap().calls.remove(0).id;
    assert_ne!(first, second);
}

#[test]
fn provider_specific_values_of_a_tool_call_are_sent_back_to_the_provider() {
    let signature = json!({"google": {"thought_signature": "c2ln"}});
    let calls = json!({"tool_calls": [
        {"index": 0, "function": {"name": "workspace_read", "arguments": "{}"}, "extra_content": signature},
        {"index": 1, "id": "b", "function": {"name": "workspace_read", "arguments": "{}"}},
    ]});
    let mut talk = talk(vec![stream(&[&delta(&calls, Some("tool_calls"))]), hello()]);
    let reply = talk.ask().unwrap();
    talk.say(&[Message::Assistant {
        text: reply.text,
        calls: reply.calls,
    }])
    .unwrap();
    let sent = &talk.asked()[1].body["messages"][1]["tool_calls"];
    assert_eq!(sent[0]["extra_content"], signature);
    assert_eq!(sent[1].get("extra_content"), None);
}

#[test]
fn finish_reasons_tell_length_limit_filter_and_refusal_from_a_normal_end() {
    for (finish, stop) in [
        ("length", StopReason::Length),
        ("content_filter", StopReason::Filtered),
        ("eos", StopReason::End),
    ] {
        let mut talk = talk(vec![stream(&[&delta(
            &json!({"content": "x"}),
            Some(finish),
        )])]);
        assert_eq!(talk.ask().unwrap().stop, stop);
    }
    let refusal = delta(&json!({"refusal": "I will not."}), None);
    let end = delta(&json!({}), Some("stop"));
    let reply = talk(vec![stream(&[&refusal, &end])]).ask().unwrap();
    assert_eq!(reply.stop, StopReason::Filtered);
    assert_eq!(reply.text, "I will not.");
}

#[test]
fn request_options_that_the_endpoint_rejects_stay_changed_for_the_whole_run() {
    let refuse = |text: &str| status(400, "", &json!({"error": {"message": text}}).to_string());
    let mut talk = talk(vec![
        refuse("Unrecognized request argument supplied: stream_options"),
        refuse(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        ),
        refuse("Streaming is not supported"),
        status(200, "", r#"{"choices":[{"message":{"content":"Hello."}}]}"#),
    ]);
    talk.ask().unwrap();
    talk.ask().unwrap();
    let asked = talk.asked();
    assert_eq!(asked.len(), 5, "the second question needs one request");
    assert_eq!(asked[1].body.get("stream_options"), None);
    assert_eq!(asked[1].body["max_tokens"], 512);
    assert_eq!(asked[2].body.get("max_tokens"), None);
    assert_eq!(asked[2].body["max_completion_tokens"], 512);
    assert_eq!(asked[2].body["stream"], true);
    for last in &asked[3..] {
        assert_eq!(last.body["stream"], false);
        assert_eq!(last.body["max_completion_tokens"], 512);
    }
}

#[test]
fn model_stream_split_at_any_byte_yields_the_same_response() {
    use super::super::answer::AnswerReader;
    use super::super::assembly::ConversationState;

    let call = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "workspace_read", "arguments": "{\"p\":\"é\"}"}}]});
    let events = [
        delta(&json!({"content": "Grü"}), None),
        delta(&call, None),
        delta(&json!({}), Some("tool_calls")),
        "data: [DONE]".to_owned(),
    ];
    let stream = events.join("\r\n\r\n") + "\r\n\r\n";
    let bytes = stream.as_bytes();
    let read = |pieces: &[&[u8]]| {
        let mut reader = AnswerReader::new(ModelApi::OpenaiChat);
        let mut text = String::new();
        for piece in pieces {
            reader.push(piece, &mut |t| text.push_str(t)).unwrap();
        }
        let assembly = reader.finish(&mut |t| text.push_str(t)).unwrap();
        (assembly.reply("m", &mut ConversationState::default()), text)
    };
    let whole = read(&[bytes]);
    assert_eq!(whole.0.text, "Grü");
    assert_eq!(whole.0.calls[0].arguments.as_ref().unwrap()["p"], "é");
    for cut in 0..=bytes.len() {
        assert_eq!(read(&[&bytes[..cut], &bytes[cut..]]), whole, "cut at {cut}");
    }
    // A stream in many pieces of random size must yield the same response too.
    let mut seed = 7_u64;
    for _ in 0..500 {
        let mut pieces = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let size = ((seed >> 33) as usize % 23 + 1).min(rest.len());
            pieces.push(&rest[..size]);
            rest = &rest[size..];
        }
        assert_eq!(read(&pieces), whole, "{:?}", pieces.len());
    }
}

#[test]
fn model_stream_truncated_at_any_byte_is_complete_or_reports_an_early_end() {
    use super::super::answer::AnswerReader;
    use super::super::assembly::AnswerError;

    let events = [
        delta(&json!({"content": "Hello."}), None),
        delta(&json!({}), Some("stop")),
        "data: [DONE]".to_owned(),
    ];
    let stream = events.join("\n\n") + "\n\n";
    let reason_complete = events[..2].join("\n\n").len();
    for cut in 0..=stream.len() {
        let mut reader = AnswerReader::new(ModelApi::OpenaiChat);
        reader.push(&stream.as_bytes()[..cut], &mut |_| {}).unwrap();
        let answer = reader.finish(&mut |_| {});
        if cut >= reason_complete {
            answer.unwrap_or_else(|e| panic!("{cut}: {e}"));
        } else {
            let error = answer.unwrap_err();
            // Before the first `data:` the reader cannot recognise a stream.
            let early = cut < "data: ".len() && matches!(error, AnswerError::Shape(_));
            assert!(
                matches!(error, AnswerError::Truncated) || early,
                "{cut}: {error}"
            );
        }
    }
}
