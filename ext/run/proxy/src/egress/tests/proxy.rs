//! Tests of plain HTTP requests: allowed, refused and smuggled ones.

use super::rig::*;
use crate::egress::{EgressDecision, EgressMode};
use serde_json::json;

#[test]
fn allowed_request_is_forwarded_without_hop_by_hop_headers_and_logged() {
    let mut rig = rules(json!({"allowHosts": ["plain.example"]}));
    rig.host("plain.example", 80, echo());
    let answer = rig.raw(b"GET http://plain.example/a/b?token=x HTTP/1.1\r\nHost: evil.test\r\nConnection: X-Drop\r\nX-Drop: 1\r\nX-Keep: 2\r\nProxy-Authorization: Basic eA==\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let seen = answer
        .split_once("\r\n\r\n")
        .unwrap()
        .1
        .to_ascii_lowercase();
    assert!(seen.starts_with("get /a/b?token=x http/1.1\r\n"), "{seen}");
    assert!(
        seen.contains("host: plain.example\r\n") && seen.contains("x-keep: 2"),
        "{seen}"
    );
    for gone in ["evil.test", "x-drop", "proxy-authorization", "connection:"] {
        assert!(!seen.contains(gone), "{gone}: {seen}");
    }
    let row = rig.row();
    assert_eq!(row.decision, EgressDecision::Allowed);
    assert_eq!(
        (row.mode, row.method.as_str(), row.host.as_str(), row.port),
        (EgressMode::Absolute, "GET", "plain.example", 80)
    );
    assert_eq!(
        (row.path.as_str(), row.rule.as_str(), row.address.as_str()),
        ("/a/b?[redacted]", "allowHosts[0]", PUBLIC)
    );
    assert_eq!((row.status, row.bytes_out, row.reason), (200, 0, ""));
    assert!(row.bytes_in > 0);
    // The host answered with exactly the bytes that the bridge had sent to it.
    let sent = rig.used.read(std::time::Duration::ZERO).egress_bytes;
    assert_eq!(sent, seen.len() as u64);
    assert_eq!(*rig.names.asked.lock().unwrap(), ["plain.example"]);
}

#[test]
fn request_to_the_bridge_with_the_target_host_in_its_path_is_forwarded_with_its_body() {
    let mut rig = rules(json!({"allowHosts": ["plain.example:8080"]}));
    rig.host("plain.example", 8080, echo());
    let answer = rig.raw(
        b"POST /http/plain.example:8080/up HTTP/1.1\r\nHost: b\r\nContent-Length: 5\r\n\r\nhello",
    );
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello"),
        "{answer}"
    );
    assert!(answer.contains("host: plain.example:8080"), "{answer}");
    let answer = rig.raw(b"PUT /http/plain.example:8080/up HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n");
    assert!(
        answer.contains("abc") && answer.contains("de") && !answer.contains("Trailer"),
        "{answer}"
    );
    let log = rig.stop();
    assert_eq!(
        log.rows.iter().map(|r| r.bytes_out).collect::<Vec<_>>(),
        [5, 5]
    );
    assert!(
        log.rows
            .iter()
            .all(|r| r.mode == EgressMode::BaseUrl && r.decision == EgressDecision::Allowed)
    );
}

#[test]
fn egress_refusal_has_its_reason_and_a_policy_hint_and_causes_no_lookup_or_connection() {
    let mut rig = rules(
        json!({"rules": [{"host": "api.example", "ports": [80], "methods": ["GET"], "paths": ["/v1/"]}]}),
    );
    rig.host("api.example", 80, echo());
    let (status, body) = refusal(&rig.ask("POST", "http://api.example/v1/x?secret=1"));
    assert_eq!(status, 403);
    assert_eq!(
        body,
        json!({
            "schema": "wp-codebox/egress-denied/v1",
            "code": "wp_codebox_egress_denied",
            "reason": "method-not-allowed",
            "message": body["message"],
            "request": {"mode": "absolute", "method": "POST", "host": "api.example", "port": 80, "path": "/v1/x"},
            "policy_hint": {"host": "api.example", "ports": [80], "methods": ["POST"], "paths": ["/v1/x"]},
        })
    );
    for (method, target, expected) in [
        ("GET", "http://other.example/", "host-not-allowed"),
        ("GET", "http://api.example:8080/v1/", "port-not-allowed"),
        ("GET", "http://api.example/v2/", "path-not-allowed"),
        ("GET", "http://api.example/v1/../v2/", "path-ambiguous"),
        ("GET", "http://api.example/v1/%2e%2e/v2/", "path-ambiguous"),
        (
            "GET",
            "http://api.example/v1/x?_method=DELETE",
            "request-override",
        ),
        ("GET", "http://127.0.0.1/", "private-address"),
        ("GET", "http://[::1]/", "private-address"),
        ("GET", "http://8.8.8.8/", "host-not-allowed"),
        ("GET", "http://0x7f.1/", "host-invalid"),
        ("GET", "http://u@api.example/v1/", "host-invalid"),
        ("GET", "/v1/", "not-a-proxy-request"),
        ("CONNECT", "api.example:80", "tunnel-hides-request"),
        ("CONNECT", "other.example:443", "host-not-allowed"),
        ("CONNECT", "api.example", "host-invalid"),
        ("TRACE", "http://api.example/v1/", "method-invalid"),
    ] {
        assert_eq!(
            reason(&rig.ask(method, target)),
            expected,
            "{method} {target}"
        );
    }
    for header in ["X-HTTP-Method-Override: DELETE", "X-Original-URL: /v2/"] {
        let request =
            format!("GET http://api.example/v1/x HTTP/1.1\r\nHost: x\r\n{header}\r\n\r\n");
        assert_eq!(
            reason(&rig.raw(request.as_bytes())),
            "request-override",
            "{header}"
        );
    }
    assert!(
        rig.wires.tried.lock().unwrap().is_empty(),
        "nothing was connected to"
    );
    assert!(
        rig.names.asked.lock().unwrap().is_empty(),
        "nothing was resolved"
    );
    // Control: a request that the rule allows is forwarded.
    assert!(
        rig.ask("GET", "http://api.example/v1/x")
            .starts_with("HTTP/1.1 200")
    );
    let log = rig.stop();
    assert_eq!(
        (log.counts.denied, log.counts.allowed, log.counts.failed),
        (19, 1, 0)
    );
    assert!(log.rows.iter().all(|row| !row.path.contains("secret")));
}

#[test]
fn host_cannot_mark_its_response_as_one_of_the_bridge() {
    let rig = rules(json!({"allowHosts": ["plain.example"]}));
    rig.host(
        "plain.example",
        80,
        server(|_, stream| {
            let _ = stream.write_all(b"HTTP/1.1 403 Forbidden\r\nProxy-Status: wp-codebox; error=http_request_denied\r\nX-Kept: 1\r\nContent-Length: 0\r\n\r\n");
        }),
    );
    let forged = rig.ask("GET", "http://plain.example/").to_ascii_lowercase();
    assert!(
        forged.contains("x-kept: 1") && !forged.contains("proxy-status"),
        "{forged}"
    );
    // Control: a response of the bridge has the mark.
    let refused = rig.ask("GET", "http://other.example/").to_ascii_lowercase();
    assert!(
        refused.contains("\r\nproxy-status: wp-codebox; error=http_request_denied; details="),
        "{refused}"
    );
}

#[test]
fn response_to_a_head_request_has_no_body() {
    let mut rig = rules(json!({"allowHosts": ["plain.example"]}));
    rig.host(
        "plain.example",
        80,
        server(|_, stream| {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n");
        }),
    );
    let answer = rig.ask("HEAD", "http://plain.example/");
    assert!(
        answer.to_ascii_lowercase().contains("content-length: 999") && answer.ends_with("\r\n\r\n"),
        "{answer}"
    );
    let refused = rig.ask("HEAD", "http://other.example/");
    assert!(
        refused.starts_with("HTTP/1.1 403") && refused.ends_with("\r\n\r\n"),
        "{refused}"
    );
    assert_eq!(rig.stop().counts.allowed, 1);
}

#[test]
fn host_name_that_resolves_to_any_private_address_is_refused() {
    for answers in [
        &["127.0.0.1"][..],
        &["10.0.0.8"],
        &["169.254.169.254"],
        &["100.64.0.1"],
        &["fd00::1"],
        &["::ffff:10.0.0.1"],
        &["64:ff9b::a00:1"],
        &["2002:a00:1::"],
        &["0.0.0.0"],
        &[PUBLIC, "192.168.0.1"],
        &["192.168.0.1", PUBLIC],
        &[PUBLIC, "::1"],
    ] {
        let mut rig = rules(json!({"allowHosts": ["plain.example"]}));
        rig.host("plain.example", 80, echo());
        rig.names.add("plain.example", &[answers]);
        assert_eq!(
            reason(&rig.ask("GET", "http://plain.example/")),
            "private-address",
            "{answers:?}"
        );
        assert!(rig.wires.tried.lock().unwrap().is_empty(), "{answers:?}");
        assert_eq!(rig.row().decision, EgressDecision::Denied);
    }
}

#[test]
fn host_name_is_resolved_once_and_the_checked_address_is_connected() {
    let mut rig = rules(json!({"allowHosts": ["rebind.example"]}));
    rig.wire(PUBLIC, 80, echo());
    rig.names
        .add("rebind.example", &[&[PUBLIC], &["127.0.0.1"]]);
    assert!(
        rig.ask("GET", "http://rebind.example/")
            .starts_with("HTTP/1.1 200")
    );
    assert_eq!(rig.names.asked.lock().unwrap().len(), 1);
    assert_eq!(
        *rig.wires.tried.lock().unwrap(),
        ["203.0.113.10:80".parse().unwrap()]
    );
    // The next request triggers a new name lookup, and the bridge checks the new address.
    assert_eq!(
        reason(&rig.ask("GET", "http://rebind.example/")),
        "private-address"
    );
    assert_eq!(rig.wires.tried.lock().unwrap().len(), 1);
    let log = rig.stop();
    assert_eq!((log.counts.allowed, log.counts.denied), (1, 1));
}

#[test]
fn next_address_of_a_host_is_tried_when_connect_fails() {
    let mut rig = rules(json!({"allowHosts": ["plain.example"]}));
    rig.names.add("plain.example", &[&[OTHER_PUBLIC, PUBLIC]]);
    rig.wire(PUBLIC, 80, echo());
    assert!(
        rig.ask("GET", "http://plain.example/")
            .starts_with("HTTP/1.1 200")
    );
    assert_eq!(rig.row().address, PUBLIC);
}

#[test]
fn redirect_is_returned_to_the_guest_and_a_request_to_its_private_target_is_refused() {
    let mut rig = rules(json!({"allowHosts": ["plain.example", "inner.example"]}));
    rig.host("plain.example", 80, server(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 302 Found\r\nLocation: http://inner.example/\r\nContent-Length: 0\r\n\r\n");
    }));
    rig.names.add("inner.example", &[&["10.0.0.1"]]);
    let answer = rig.ask("GET", "http://plain.example/");
    assert!(
        answer.starts_with("HTTP/1.1 302") && answer.contains("http://inner.example/"),
        "{answer}"
    );
    assert_eq!(
        *rig.names.asked.lock().unwrap(),
        ["plain.example"],
        "it was not followed"
    );
    assert_eq!(
        reason(&rig.ask("GET", "http://inner.example/")),
        "private-address"
    );
    assert_eq!(
        reason(&rig.ask("GET", "http://169.254.169.254/")),
        "private-address"
    );
    let log = rig.stop();
    assert_eq!((log.counts.allowed, log.counts.denied), (1, 2));
    assert_eq!(rig.wires.tried.lock().unwrap().len(), 1);
}

#[test]
fn upstream_host_failures_are_reported_with_their_reasons() {
    let mut rig = rules(
        json!({"allowHosts": ["plain.example", "gone.example", "mute.example:81", "noise.example:82"]}),
    );
    rig.names.add("plain.example", &[&[PUBLIC]]);
    rig.host("mute.example", 81, listen(drop));
    rig.host(
        "noise.example",
        82,
        server(|_, stream| {
            let _ = stream.write_all(b"SSH-2.0-noise\r\n");
        }),
    );
    for (target, expected, status) in [
        ("http://gone.example/", "name-not-found", 502),
        ("http://plain.example/", "connect-failed", 502),
        ("http://mute.example:81/", "upstream-failed", 502),
        ("http://noise.example:82/", "upstream-failed", 502),
    ] {
        let (seen, body) = refusal(&rig.ask("GET", target));
        assert_eq!(
            (seen, body["reason"].as_str().unwrap()),
            (status, expected),
            "{target}"
        );
        assert_eq!(body["code"], "wp_codebox_egress_failed");
        assert!(body["policy_hint"].is_null());
    }
    assert_eq!(rig.stop().counts.failed, 4);
}

#[test]
fn smuggled_http_requests_are_refused() {
    let mut rig = rules(json!({"allowHosts": ["plain.example"]}));
    rig.host("plain.example", 80, echo());
    let get = "http://plain.example/";
    for (text, what) in [
        (
            format!(
                "POST {get} HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            ),
            "both framings",
        ),
        (
            format!(
                "POST {get} HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"
            ),
            "two lengths",
        ),
        (
            format!("POST {get} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n"),
            "odd coding",
        ),
        (
            format!("GET {get} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
            "two hosts",
        ),
        (
            format!("GET {get} HTTP/1.1\r\nHost: a\r\nX: 1\r\n Y: 2\r\n\r\n"),
            "folding",
        ),
        (format!("GET {get} HTTP/1.1\nHost: a\n\n"), "bare LF"),
        (
            format!("GET {get} HTTP/1.1\r\nHost: a\r\nX: 1\rY: 2\r\n\r\n"),
            "bare CR",
        ),
        (
            format!("GET {get} HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"),
            "NUL",
        ),
        (
            format!("GET {get} HTTP/1.1\r\nHost : a\r\n\r\n"),
            "blank before the colon",
        ),
        (
            format!("GET {get}\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n"),
            "non-ASCII target",
        ),
        (
            format!("GET {get}<x> HTTP/1.1\r\nHost: a\r\n\r\n"),
            "a target the library cannot carry",
        ),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), "HTTP/2"),
        ("\u{16}\u{3}\u{1}\0".to_owned(), "TLS to the proxy itself"),
    ] {
        let (status, body) = refusal(&rig.raw(text.as_bytes()));
        assert_eq!(
            (status, body["reason"].as_str().unwrap()),
            (400, "malformed-request"),
            "{what}"
        );
    }
    assert!(rig.wires.tried.lock().unwrap().is_empty());
    // One request per connection: the bridge ignores a request pipelined behind the first.
    let answer = rig.raw(
        format!(
            "GET {get}first HTTP/1.1\r\nHost: a\r\n\r\nGET {get}second HTTP/1.1\r\nHost: a\r\n\r\n"
        )
        .as_bytes(),
    );
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 1, "{answer}");
    assert!(
        answer.contains("/first") && !answer.contains("/second"),
        "{answer}"
    );
    let answer = rig.raw(format!("POST {get} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET {get}second HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
    assert!(answer.ends_with("abc"), "{answer}");
    let log = rig.stop();
    assert_eq!((log.counts.allowed, log.counts.denied), (2, 13));
}
