//! Tests of the model route: only the configured endpoint, only the run's key, only inference
//! paths.

use super::rig::*;
use crate::egress::{EgressDecision, EgressMode, ModelRoute, SecretSwap};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use wp_codebox_contracts::ModelApi;
use wp_codebox_policy::ModelBase;
use zeroize::Zeroizing;

const VALUE: &str = "sk-real-0123456789abcdef";
const PLACEHOLDER: &str = "codebox_0123456789abcdef0123456789abcdef01234567";
const FOREIGN: &str = "sk-of-somebody-else";

fn key() -> SecretSwap {
    SecretSwap {
        name: "OPENAI_API_KEY".to_owned(),
        placeholder: PLACEHOLDER.to_owned(),
        value: Zeroizing::new(VALUE.to_owned()),
        hosts: Vec::new(),
    }
}

fn route(base: &str, api: ModelApi, key: Option<SecretSwap>) -> ModelRoute {
    ModelRoute {
        base: ModelBase::parse(base).unwrap(),
        api,
        key,
    }
}

struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn last(&self) -> String {
        self.0.lock().unwrap().last().cloned().unwrap_or_default()
    }
    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// Starts a bridge whose model is a local server that responds with the request.
fn model_rig(rules: serde_json::Value, api: ModelApi, key: Option<SecretSwap>) -> (Rig, Seen) {
    let rig = rig(Options {
        rules,
        model: Some(route("http://127.0.0.1:8080/v1", api, key)),
        ..Options::default()
    });
    let seen = Seen(Arc::default());
    let requests = Arc::clone(&seen.0);
    let server = server(move |request, stream| {
        requests.lock().unwrap().push(request.to_owned());
        let _ = write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{request}",
            request.len()
        );
    });
    rig.wire("127.0.0.1", 8080, server);
    (rig, seen)
}

fn post(target: &str, headers: &str) -> String {
    format!(
        "POST {target} HTTP/1.1\r\nHost: 127.0.0.1:3128\r\n{headers}Content-Length: 2\r\n\r\n{{}}"
    )
}

#[test]
fn model_request_gets_the_runs_model_key_instead_of_the_key_sent_by_the_program() {
    for sent in [
        String::new(),
        format!("Authorization: Bearer {PLACEHOLDER}\r\n"),
        format!("Authorization: Bearer {FOREIGN}\r\nX-Api-Key: {FOREIGN}\r\n"),
        format!("Api-Key: {FOREIGN}\r\nCookie: {FOREIGN}\r\nOpenAI-Organization: {FOREIGN}\r\n"),
    ] {
        for (api, path, header) in [
            (
                ModelApi::OpenaiChat,
                "/chat/completions",
                format!("authorization: Bearer {VALUE}\r\n"),
            ),
            (
                ModelApi::AnthropicMessages,
                "/v1/messages?beta=true",
                format!("x-api-key: {VALUE}\r\n"),
            ),
        ] {
            let (mut rig, seen) = model_rig(json!({"presets": ["model"]}), api, Some(key()));
            let answer = rig.raw(post(&format!("/model{path}"), &sent).as_bytes());
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            let arrived = seen.last();
            assert!(
                arrived.starts_with(&format!("POST /v1{path} HTTP/1.1\r\n")),
                "{arrived}"
            );
            assert!(arrived.contains(&header), "{arrived}");
            assert!(arrived.contains("host: 127.0.0.1:8080\r\n"), "{arrived}");
            assert_eq!(arrived.matches(VALUE).count(), 1, "{arrived}");
            assert!(
                !arrived.contains(FOREIGN) && !arrived.contains(PLACEHOLDER),
                "{arrived}"
            );
            // The server's response contained the key; the bridge replaced it by its placeholder.
            assert!(
                !answer.contains(VALUE) && answer.contains(PLACEHOLDER),
                "{answer}"
            );
            let row = rig.row();
            assert_eq!(row.decision, EgressDecision::Allowed);
            assert_eq!(row.mode, EgressMode::Model);
            assert_eq!((row.host.as_str(), row.port), ("model", 0));
            assert_eq!((row.rule.as_str(), row.address.as_str()), ("model", ""));
            assert_eq!(row.secrets, ["OPENAI_API_KEY"]);
            assert!(
                !row.path.contains("/v1/v1") && !row.path.contains("beta"),
                "{row:?}"
            );
        }
    }
}

#[test]
fn model_without_a_configured_key_receives_no_authorization_header_of_the_program() {
    let rules = json!({"presets": ["model"]});
    let (mut rig, seen) = model_rig(rules, ModelApi::OpenaiChat, None);
    let sent = format!("Authorization: Bearer {FOREIGN}\r\n");
    rig.raw(post("/model/chat/completions", &sent).as_bytes());
    assert!(!seen.last().contains("authorization"), "{}", seen.last());
    assert_eq!(rig.row().secrets, Vec::<String>::new());
}

#[test]
fn model_requests_with_another_path_or_method_or_with_an_override_header_are_refused() {
    let rules = json!({"presets": ["model"]});
    let (mut rig, seen) = model_rig(rules, ModelApi::OpenaiChat, Some(key()));
    let denied = |request: String, reason: &str| {
        let (status, body) = refusal(&rig.raw(request.as_bytes()));
        assert_eq!(body["reason"], reason, "{request}");
        assert_eq!(status, 403, "{request}");
        assert_eq!(body["policy_hint"], json!(null), "{body}");
        assert!(!body.to_string().contains("8080"), "{body}");
    };
    for (target, reason) in [
        ("/model/files", "model-path-not-allowed"),
        ("/model/v1/chat/completions", "model-path-not-allowed"),
        ("/model", "model-path-not-allowed"),
        ("/model/../admin", "path-ambiguous"),
        ("/model/chat/..%2fcompletions", "path-ambiguous"),
        ("/model//chat/completions", "path-ambiguous"),
        ("/model/models", "model-method-not-allowed"),
    ] {
        denied(post(target, ""), reason);
    }
    for (method, reason) in [
        ("DELETE", "model-method-not-allowed"),
        ("PUT", "model-method-not-allowed"),
        ("GET", "model-method-not-allowed"),
    ] {
        let request = post("/model/chat/completions", "").replace("POST", method);
        denied(request, reason);
    }
    denied(
        post(
            "/model/chat/completions",
            "X-HTTP-Method-Override: DELETE\r\n",
        ),
        "request-override",
    );
    denied(
        post("/model/chat/completions", "X-Original-URL: /files\r\n"),
        "request-override",
    );
    assert_eq!(seen.count(), 0);
    // Control: a request to an open path with the same connection settings and key is answered.
    assert!(
        rig.raw(post("/model/chat/completions", "").as_bytes())
            .starts_with("HTTP/1.1 200")
    );
    assert!(rig.ask("GET", "/model/models").starts_with("HTTP/1.1 200"));
    assert_eq!(seen.count(), 2);
    rig.stop();
}

#[test]
fn model_address_is_reachable_only_through_the_model_route() {
    let rules = json!({"presets": ["model"], "allowHosts": ["plain.example"]});
    let (mut rig, seen) = model_rig(rules, ModelApi::OpenaiChat, Some(key()));
    for (target, reason) in [
        (
            "http://127.0.0.1:8080/v1/chat/completions",
            "private-address",
        ),
        (
            "/http/127.0.0.1:8080/v1/chat/completions",
            "private-address",
        ),
    ] {
        let (_, body) = refusal(&rig.raw(post(target, "").as_bytes()));
        assert_eq!(body["reason"], reason, "{target}");
    }
    let (_, body) = refusal(&rig.ask("CONNECT", "127.0.0.1:8080"));
    assert_eq!(body["reason"], "private-address");
    // The policy names the host, but that must not open a route to a private address.
    rig.names.add("plain.example", &[&["127.0.0.1"]]);
    let (_, body) = refusal(&rig.ask("GET", "http://plain.example:80/v1/models"));
    assert_eq!(body["reason"], "private-address");
    assert_eq!(seen.count(), 0);
    rig.raw(post("/model/chat/completions", "").as_bytes());
    assert_eq!(seen.count(), 1);
    rig.stop();
}

#[test]
fn model_host_may_resolve_to_a_private_but_no_link_local_address_and_neither_is_logged() {
    for (address, reason) in [("169.254.169.254", "model-address"), ("10.0.0.7", "")] {
        let mut rig = rig(Options {
            rules: json!({"presets": ["model"]}),
            model: Some(route("http://gpu:8080/v1", ModelApi::OpenaiChat, None)),
            ..Options::default()
        });
        rig.names.add("gpu", &[&[address]]);
        rig.wire(address, 8080, server(|_, stream| ok(stream, "x")));
        let answer = rig.raw(post("/model/chat/completions", "").as_bytes());
        if reason.is_empty() {
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        } else {
            assert_eq!(refusal(&answer).1["reason"], reason);
        }
        assert_eq!(rig.row().address, "");
    }
}

#[test]
fn model_request_is_refused_if_the_run_has_no_model() {
    let mut rig = rules(json!({"allowHosts": ["plain.example"]}));
    let (status, body) = refusal(&rig.raw(post("/model/chat/completions", "").as_bytes()));
    assert_eq!(
        (status, &body["reason"]),
        (403, &json!("model-not-allowed"))
    );
    assert_eq!(body["code"], "wp_codebox_egress_denied");
    assert_eq!(body["request"]["host"], "model");
    assert_eq!(rig.row().decision, EgressDecision::Denied);
}

#[test]
fn model_response_reaches_the_guest_piece_by_piece_while_the_model_still_sends() {
    let rig = rig(Options {
        rules: json!({"presets": ["model"]}),
        model: Some(route(
            "http://127.0.0.1:8080/v1",
            ModelApi::OpenaiChat,
            Some(key()),
        )),
        ..Options::default()
    });
    // The server sends the second piece only after the client has received the first.
    let (seen, first_seen) = std::sync::mpsc::channel();
    let first_seen = std::sync::Mutex::new(first_seen);
    let server = server(move |_, stream| {
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: one\n\n");
        let _ = stream.flush();
        let waited = first_seen.lock().unwrap().recv_timeout(WAIT_LIMIT);
        let _ = stream.write_all(match waited {
            Ok(()) => b"data: two\n\n",
            Err(_) => b"data: old\n\n",
        });
    });
    rig.wire("127.0.0.1", 8080, server);
    let mut stream = TcpStream::connect(rig.tcp).unwrap();
    stream
        .write_all(post("/model/chat/completions", "").as_bytes())
        .unwrap();
    let (mut read, mut chunk) = (Vec::new(), [0_u8; 4096]);
    let mut told = false;
    loop {
        let count = stream.read(&mut chunk).unwrap();
        read.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&read);
        if !told && text.contains("data: one") {
            seen.send(()).unwrap();
            told = true;
        }
        if count == 0 {
            assert!(text.contains("data: two"), "{text}");
            break;
        }
    }
}
