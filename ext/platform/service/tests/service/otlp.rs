//! Spans of OpenTelemetry, sent to a collector on loopback.

use crate::server::{Server, until};
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use wp_codebox_service::OtlpEndpoint;

/// A collector that stores what it gets.
struct Collector {
    address: String,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let bodies: Arc<Mutex<Vec<String>>> = Arc::default();
        let stored = Arc::clone(&bodies);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                while let Some((head, body)) = request(&mut stream) {
                    assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
                    assert!(
                        head.contains("content-type: application/json\r\n"),
                        "{head}"
                    );
                    stored.lock().unwrap().push(body);
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
                    stream.write_all(answer).unwrap();
                }
            }
        });
        Self { address, bodies }
    }

    fn spans(&self) -> Vec<Value> {
        let bodies = self.bodies.lock().unwrap();
        let documents = bodies
            .iter()
            .map(|body| -> Value { serde_json::from_str(body).unwrap() });
        documents
            .flat_map(|document| {
                let spans = &document["resourceSpans"][0]["scopeSpans"][0]["spans"];
                spans.as_array().unwrap().clone()
            })
            .collect()
    }
}

/// Reads one request; `None` at the end of the connection.
fn request(stream: &mut std::net::TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase() + "\r\n";
            let length: usize = head.split("content-length: ").nth(1).map_or(0, |rest| {
                rest.split("\r\n").next().unwrap().parse().unwrap()
            });
            if body.len() >= length {
                return Some((head, body.to_owned()));
            }
        }
        match stream.read(&mut piece).unwrap() {
            0 => return None,
            count => bytes.extend_from_slice(&piece[..count]),
        }
    }
}

fn attribute(span: &Value, name: &str) -> Option<String> {
    let rows = span["attributes"].as_array().unwrap();
    let row = rows.iter().find(|row| row["key"] == name)?;
    let value = &row["value"];
    let value = value.get("stringValue").or_else(|| value.get("intValue"));
    Some(value.unwrap().as_str().unwrap().to_owned())
}

#[test]
fn spans_of_requests_and_sandboxes_reach_the_collector_without_secrets() {
    let collector = Collector::start();
    let endpoint = OtlpEndpoint::parse(&collector.address).unwrap();
    let mut server = Server::with(|config| config.otlp = Some(endpoint));
    let made = server.limited("agt:traced", &["*"], 1000, 10);
    let token = made.token.clone().unwrap();
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{trace}-b7ad6b7169203331-01");
    let headers = [("traceparent", parent.as_str()), ("prefer", "wait=60")];
    let body = json!({"profile": "profile.shop", "consumer": {"note": "in-the-body"}});
    let created = made
        .post_with("/v1/sandboxes", &headers, &body)
        .expect(201)
        .json();
    let id = created["id"].as_str().unwrap().to_owned();
    let file = format!("/v1/sandboxes/{id}/files/workspace/name-of-a-file");
    made.send("PUT", &file, &[], b"in-the-file").expect(200);
    made.delete(&format!("/v1/sandboxes/{id}")).expect(200);
    server.admin().get("/v1/sandboxes/none").expect(404);
    // A graceful stop exports what is left.
    server.stop();
    let spans = collector.spans();
    let named = |name: &str| {
        let found: Vec<_> = spans.iter().filter(|span| span["name"] == name).collect();
        assert_eq!(found.len(), 1, "{name}: {spans:?}");
        found[0].clone()
    };
    let create = named("createSandbox");
    assert_eq!(create["traceId"], trace);
    assert_eq!(create["parentSpanId"], "b7ad6b7169203331");
    assert_eq!(create["kind"], 2);
    for (name, value) in [
        ("http.request.method", "POST"),
        ("http.route", "/v1/sandboxes"),
        ("http.response.status_code", "201"),
        ("wp_codebox.actor", "agt:traced"),
    ] {
        assert_eq!(attribute(&create, name).as_deref(), Some(value), "{create}");
    }
    let time = |name: &str| create[name].as_str().unwrap().parse::<u64>().unwrap();
    assert!(time("endTimeUnixNano") >= time("startTimeUnixNano"));
    let missing = named("getSandbox");
    assert!(missing.get("parentSpanId").is_none() && missing["traceId"] != trace);
    for name in ["sandbox.start", "sandbox.life"] {
        let span = named(name);
        assert_eq!(attribute(&span, "wp_codebox.sandbox"), Some(id.clone()));
        assert_eq!(
            attribute(&span, "wp_codebox.host").as_deref(),
            Some("local")
        );
    }
    let ids: BTreeSet<_> = spans
        .iter()
        .map(|span| span["spanId"].to_string())
        .collect();
    assert_eq!(ids.len(), spans.len(), "two spans have one id");
    let sent = collector.bodies.lock().unwrap().join("");
    for secret in [
        token.as_str(),
        "in-the-body",
        "in-the-file",
        "name-of-a-file",
    ] {
        assert!(!sent.contains(secret), "{secret}");
    }
}

#[test]
fn spans_that_no_collector_takes_are_dropped_and_counted_and_requests_go_on() {
    // The port of a socket that is bound but does not listen refuses connections.
    let bound = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&bound, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let address = SocketAddr::try_from(getsockname(&bound).unwrap()).unwrap();
    let endpoint = OtlpEndpoint::parse(&format!("http://{address}")).unwrap();
    let server = Server::with(|config| config.otlp = Some(endpoint));
    let admin = server.admin();
    admin.get("/v1/sandboxes").expect(200);
    until("a dropped span", || {
        let text = admin.get("/metrics").expect(200).text();
        let row = "wp_codebox_spans_total{result=\"dropped\"} ";
        let count = text.split(row).nth(1).unwrap().split('\n').next().unwrap();
        (count.parse::<u64>().unwrap() > 0).then_some(())
    });
    admin.get("/v1/sandboxes").expect(200);
}
