//! Malformed, oversized, slow and half-closed requests.

use crate::http::{Client, read};
use crate::server::{Server, until};
use serde_json::json;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::Duration;

fn alive(client: &Client) {
    client.send("GET", "/healthz", &[], b"").expect(204);
}

#[test]
fn malformed_requests_are_refused_and_the_server_still_serves_requests() {
    let server = Server::start();
    let admin = server.admin();
    for (bytes, status) in [
        (&b"\x00\x01\x02\r\n\r\n"[..], Some(400)),
        (b"GET\r\n\r\n", Some(400)),
        (b"GET / HTTP/9.9\r\n\r\n", Some(400)),
        (b"GET /v1/sandboxes HTTP/1.1\r\nhost: x\r\nbad header\r\n\r\n", Some(400)),
        (b"POST /v1/sandboxes HTTP/1.1\r\nhost: x\r\ncontent-length: x\r\n\r\n", Some(400)),
        (b"POST /v1/sandboxes HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", Some(400)),
        (b"GET /v1/nowhere HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", Some(404)),
        (b"PATCH /v1/sandboxes HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", Some(405)),
        (b"GET /v1/sandboxes?limit=x HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", Some(400)),
        (b"GET /v1/sandboxes/%ff HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", Some(400)),
        (b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", Some(204)),
    ] {
        let answer = admin.raw(bytes).map(|answer| answer.status);
        assert_eq!(answer, status, "{:?}", String::from_utf8_lossy(bytes));
    }
    admin
        .send("PATCH", "/v1/sandboxes", &[], b"")
        .problem(405, "wp_codebox_service_method_not_allowed");
    let json = [("content-type", "application/json")];
    for body in [
        &b""[..],
        b"{",
        b"[]",
        b"{\"profile\": 7}",
        b"\xff",
        b"{\"profile\":\"a\",\"profile\":\"b\"}",
    ] {
        admin
            .send("POST", "/v1/sandboxes", &json, body)
            .problem(400, "wp_codebox_input_invalid");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    admin
        .send("POST", "/v1/hosts", &json, deep.as_bytes())
        .problem(400, "wp_codebox_input_invalid");
    let text = [("content-type", "text/plain")];
    admin
        .send(
            "POST",
            "/v1/sandboxes",
            &text,
            b"{\"profile\": \"profile.shop\"}",
        )
        .problem(400, "wp_codebox_input_invalid");
    admin.ready("profile.shop");
}

#[test]
fn request_with_an_oversized_head_or_body_is_refused_with_status_431_or_413() {
    let server = Server::with(|config| config.bounds.file = 4096);
    let admin = server.admin();
    let head = format!(
        "GET /healthz HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n",
        "y".repeat(64 * 1024)
    );
    let answer = admin.raw(head.as_bytes()).map(|answer| answer.status);
    assert!(answer.is_none_or(|status| status == 431), "{answer:?}");
    let large = json!({"profile": "x".repeat(3 * 1024 * 1024)});
    admin
        .post("/v1/sandboxes", &large)
        .problem(413, "wp_codebox_service_request_too_large");
    // A chunked body announces no length.
    let chunk = format!("{:x}\r\n{}\r\n", 1024 * 1024, "x".repeat(1024 * 1024));
    let chunked = format!(
        "POST /v1/sandboxes HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n{}",
        chunk.repeat(3)
    );
    let answer = admin.raw(chunked.as_bytes());
    assert!(answer.is_none_or(|answer| answer.status == 413));
    let at = format!(
        "/v1/sandboxes/{}/files/workspace/x",
        admin.ready("profile.shop")
    );
    admin
        .send("PUT", &at, &[], &[b'x'; 4097])
        .problem(413, "wp_codebox_service_request_too_large");
    admin.send("PUT", &at, &[], &[b'x'; 4096]).expect(200);
}

#[test]
fn slow_clients_lose_their_connection_and_others_do_not_wait() {
    let server = Server::with(|config| {
        config.bounds.peer_connections = 5;
        // Long enough for a client that sends at once, also on a busy machine.
        config.bounds.head_time = Duration::from_secs(2);
        config.bounds.body_idle = Duration::from_secs(2);
    });
    let admin = server.admin();
    // Four clients that never end their head hold all connections of their user but one, until
    // their time is over.
    let mut stuck: Vec<_> = (0..4).map(|_| admin.connect()).collect();
    for stream in &mut stuck {
        stream.write_all(b"GET /healthz HT").unwrap();
    }
    alive(&admin);
    for stream in &mut stuck {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        let text = String::from_utf8_lossy(&rest).into_owned();
        assert!(
            text.is_empty() || text.starts_with("HTTP/1.1 408"),
            "{text}"
        );
    }
    // A body that stops.
    let mut stream = admin.connect();
    let head = "POST /v1/sandboxes HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).unwrap();
    let answer = read(stream).unwrap();
    answer.problem(408, "wp_codebox_service_request_timeout");
    // A connection that stays open without a request.
    let mut idle = admin.connect();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        .unwrap();
    let mut all = Vec::new();
    idle.read_to_end(&mut all).unwrap();
    assert!(all.starts_with(b"HTTP/1.1 204"));
    alive(&admin);
}

#[test]
fn program_is_killed_when_its_client_stops_reading_the_answer() {
    let server = Server::with(|config| config.bounds.write_idle = Duration::from_millis(300));
    let admin = server.admin();
    let id = admin.ready("profile.shop");
    let body = json!({"argv": ["/bin/sh", "-c", "while :; do echo 0123456789012345678901234567890123456789; done"]}).to_string();
    let mut stream = admin.connect();
    let head = format!(
        "POST /v1/sandboxes/{id}/exec HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let running = || {
        let metrics = admin.get("/metrics").expect(200).text();
        metrics
            .lines()
            .find(|line| line.starts_with("wp_codebox_execs "))
            .unwrap()
            .to_owned()
    };
    until("the program's start", || {
        (running() == "wp_codebox_execs 1").then_some(())
    });
    until("the program's end", || {
        (running() == "wp_codebox_execs 0").then_some(())
    });
    drop(stream);
}

#[test]
fn half_closed_and_broken_requests_create_no_sandbox() {
    let server = Server::start();
    let admin = server.admin();
    let head = "POST /v1/sandboxes HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"profile\": \"profile.shop\"}";
    let mut stream = admin.connect();
    stream.write_all(head.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let answer = read(stream);
    assert!(answer.is_none_or(|answer| answer.status == 400));
    let mut stream = admin.connect();
    stream.write_all(b"GET /v1/sand").unwrap();
    drop(stream);
    assert_eq!(admin.get("/v1/sandboxes").json()["sandboxes"], json!([]));
    admin.ready("profile.shop");
}

#[test]
fn one_actor_runs_at_most_half_of_the_programs_and_another_one_the_other_half() {
    let server = Server::with(|config| config.bounds.execs = 4);
    let started = |client: &Client, id: &str| {
        let body = json!({"argv": ["/bin/sleep", "1000"]});
        client.post_stream(&format!("/v1/sandboxes/{id}/exec"), &body)
    };
    let greedy = server.token("agt:greedy", &["*"]);
    let other = server.token("agt:other", &["*"]);
    let (first, second) = (greedy.ready("profile.shop"), other.ready("profile.shop"));
    let mut programs = Vec::new();
    for _ in 0..2 {
        programs.push(started(&greedy, &first).unwrap());
    }
    assert_eq!(started(&greedy, &first).err(), Some(503));
    for _ in 0..2 {
        programs.push(started(&other, &second).unwrap());
    }
    assert_eq!(started(&other, &second).err(), Some(503));
    programs.clear();
    until("the end of the programs", || started(&greedy, &first).ok());
}
