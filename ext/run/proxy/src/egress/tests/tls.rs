//! Tests of tunnels, TLS to hosts, and TLS terminated by the bridge.

use super::rig::*;
use crate::egress::{BridgeLimits, EgressDecision, EgressMode};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Returns a TLS client that trusts the authority `pem`; `sni` decides whether it sends the server
/// name.
fn client(pem: &str, sni: Sni) -> Arc<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(pem.as_bytes()).flatten());
    let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_root_certificates(roots)
    .with_no_client_auth();
    config.enable_sni = matches!(sni, Sni::Sent);
    Arc::new(config)
}

#[derive(Clone, Copy)]
enum Sni {
    Sent,
    Omitted,
}

/// Opens a tunnel through the bridge; returns the bridge's response as error when its status is not
/// 200.
fn connect(rig: &Rig, authority: &str) -> Result<TcpStream, String> {
    let mut stream = TcpStream::connect(rig.tcp).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    write!(
        stream,
        "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n"
    )
    .unwrap();
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        answer.push(byte[0]);
    }
    let mut answer = String::from_utf8(answer).unwrap();
    if answer.starts_with("HTTP/1.1 200 ") {
        return Ok(stream);
    }
    stream.read_to_string(&mut answer).unwrap();
    Err(answer)
}

/// Sends one request over TLS through an open tunnel and returns the response.
fn exchange(
    stream: TcpStream,
    config: Arc<rustls::ClientConfig>,
    name: &str,
    request: &str,
) -> std::io::Result<String> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connection = rustls::ClientConnection::new(config, name).unwrap();
    let mut tls = rustls::StreamOwned::new(connection, stream);
    tls.write_all(request.as_bytes())?;
    let mut out = Vec::new();
    tls.read_to_end(&mut out)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn get(path: &str, host: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

fn tls_rig(rules: serde_json::Value) -> Rig {
    let rig = rig(Options {
        rules,
        limits: BridgeLimits {
            // One test's silent client waits for this timeout; every other client is much faster.
            head_timeout: Duration::from_secs(8),
            ..BridgeLimits::default()
        },
        ..Options::default()
    });
    let config = rig.servers.config("a.example");
    rig.host(
        "a.example",
        443,
        tls_server(config, |request, stream| ok(stream, request)),
    );
    rig
}

#[test]
fn tunnel_forwards_tls_unchanged_to_the_host_of_the_connect_request() {
    let mut rig = tls_rig(json!({"allowHosts": ["a.example"]}));
    let trusted = client(&rig.servers.pem, Sni::Sent);
    let stream = connect(&rig, "A.example:443").unwrap();
    let answer = exchange(stream, trusted, "a.example", &get("/x", "a.example")).unwrap();
    assert!(
        answer.contains("200 OK") && answer.contains("GET /x"),
        "{answer}"
    );
    rig.ended(1);
    let row = rig.row();
    assert_eq!(
        (row.mode, row.method.as_str(), row.decision),
        (EgressMode::Tunnel, "CONNECT", EgressDecision::Allowed)
    );
    assert!(row.bytes_out > 100 && row.bytes_in > 100, "{row:?}");
    assert_eq!(row.address, PUBLIC);
}

/// Starts the server of a.example; returns the number of its connections that got a byte.
fn counting_host(rig: &Rig) -> Arc<AtomicUsize> {
    let reached = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&reached);
    rig.host(
        "a.example",
        443,
        listen(move |mut stream| {
            let mut buffer = [0; 64];
            if matches!(stream.read(&mut buffer), Ok(1..)) {
                count.fetch_add(1, Relaxed);
            }
        }),
    );
    reached
}

#[test]
fn client_hello_over_the_byte_limit_of_the_run_is_not_sent() {
    for (limit, reaches) in [(50, 0), (1 << 20, 1)] {
        let mut rig = rig(Options {
            rules: json!({"allowHosts": ["a.example"]}),
            limits: BridgeLimits {
                run_request_bytes: limit,
                ..BridgeLimits::default()
            },
            ..Options::default()
        });
        let reached = counting_host(&rig);
        let trusted = client(&rig.servers.pem, Sni::Sent);
        let stream = connect(&rig, "a.example:443").unwrap();
        // The server never answers, so the exchange fails in both cases.
        exchange(stream, trusted, "a.example", &get("/", "a.example")).unwrap_err();
        let limited = rig.stop().rows[0].reason == "run-request-limit";
        assert_eq!((reached.load(Relaxed), limited), (reaches, reaches == 0));
    }
}

#[test]
fn tunnel_without_a_client_hello_that_names_the_connect_host_is_refused() {
    let mut rig = tls_rig(json!({"allowHosts": ["a.example", "b.example"]}));
    let pem = rig.servers.pem.clone();
    let reached = counting_host(&rig);
    for (sni, name) in [
        (Sni::Sent, "b.example"),
        (Sni::Sent, "evil.test"),
        (Sni::Omitted, "a.example"),
    ] {
        let stream = connect(&rig, "a.example:443").unwrap();
        let error = exchange(stream, client(&pem, sni), name, &get("/", "a.example")).unwrap_err();
        assert!(error.to_string().contains("UnrecognisedName"), "{error}");
    }
    let mut stream = connect(&rig, "a.example:443").unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    // Clients of SSH, SMTP and MySQL wait for the server to speak first; the bridge refuses them
    // after the timeout.
    let mut silent = connect(&rig, "a.example:443").unwrap();
    let _ = silent.read_to_end(&mut answer);
    assert_eq!(reached.load(Relaxed), 0, "no byte reached the host");
    let log = rig.stop();
    let reasons: Vec<&str> = log.rows.iter().map(|row| row.reason).collect();
    assert_eq!(
        reasons,
        [
            "sni-mismatch",
            "sni-mismatch",
            "sni-missing",
            "not-tls",
            "not-tls"
        ]
    );
    assert!(
        log.rows
            .iter()
            .all(|row| row.decision == EgressDecision::Denied && row.status == 200)
    );
}

#[test]
fn connect_to_a_disallowed_target_is_refused_with_its_reason() {
    let mut rig =
        tls_rig(json!({"allowHosts": ["a.example", "inner.example"], "presets": ["npm"]}));
    rig.names.add("inner.example", &[&["10.0.0.1"]]);
    for (authority, status, expected) in [
        ("b.example:443", 403, "host-not-allowed"),
        ("a.example:22", 403, "port-not-allowed"),
        ("inner.example:443", 403, "private-address"),
        ("registry.npmjs.org:443", 403, "tunnel-hides-request"),
    ] {
        let (seen, body) = refusal(&connect(&rig, authority).unwrap_err());
        assert_eq!(
            (seen, body["reason"].as_str().unwrap()),
            (status, expected),
            "{authority}"
        );
        assert_eq!(body["request"]["method"], "CONNECT");
        if expected == "tunnel-hides-request" {
            assert!(body["message"].as_str().unwrap().contains("tls: terminate"));
            assert_eq!(
                body["policy_hint"],
                json!({"host": "registry.npmjs.org", "ports": [443]})
            );
        }
    }
    let with_body =
        rig.raw(b"CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(reason(&with_body), "malformed-request");
    assert_eq!(rig.stop().counts.denied, 5);
}

#[test]
fn tunnel_ends_at_its_byte_and_time_limits() {
    let options = Options {
        rules: json!({"allowHosts": ["a.example"]}),
        limits: BridgeLimits {
            response_bytes: 200_000,
            idle_timeout: Duration::from_secs(8),
            ..BridgeLimits::default()
        },
        ..Options::default()
    };
    let mut rig = rig(options);
    let config = rig.servers.config("a.example");
    rig.host(
        "a.example",
        443,
        tls_server(config, |request, stream| {
            if request.contains("/huge") {
                while stream.write_all(&[b'x'; 16384]).is_ok() {}
            } else {
                std::thread::sleep(Duration::from_secs(60));
            }
        }),
    );
    let trusted = client(&rig.servers.pem, Sni::Sent);
    for path in ["/huge", "/idle"] {
        let stream = connect(&rig, "a.example:443").unwrap();
        assert!(
            exchange(
                stream,
                Arc::clone(&trusted),
                "a.example",
                &get(path, "a.example")
            )
            .is_err(),
            "{path}"
        );
    }
    let log = rig.stop();
    assert_eq!(
        log.rows.iter().map(|r| r.reason).collect::<Vec<_>>(),
        ["response-too-large", "idle-timeout"]
    );
}

#[test]
fn https_request_with_the_host_in_its_path_needs_an_allowing_rule_and_a_trusted_host_certificate() {
    let mut rig = tls_rig(json!({"rules": [
        {"host": "a.example", "methods": ["GET"], "paths": ["/v1/"]},
        {"host": "wrong.example"}, {"host": "foreign.example"},
    ]}));
    assert!(
        rig.ask("GET", "/https/a.example/v1/x")
            .starts_with("HTTP/1.1 200")
    );
    assert_eq!(
        reason(&rig.ask("GET", "/https/a.example/v2/x")),
        "path-not-allowed"
    );
    assert_eq!(
        reason(&rig.ask("POST", "/https/a.example/v1/x")),
        "method-not-allowed"
    );
    rig.names.add("wrong.example", &[&[PUBLIC]]);
    assert_eq!(
        reason(&rig.ask("GET", "/https/wrong.example/")),
        "tls-failed"
    );
    // The host's certificate comes from an authority that the bridge does not trust.
    let foreign = rules(json!({"allowHosts": ["x.example"]}));
    let config = foreign.servers.config("foreign.example");
    rig.names.add("foreign.example", &[&[OTHER_PUBLIC]]);
    rig.wire(
        OTHER_PUBLIC,
        443,
        tls_server(config, |_, stream| ok(stream, "no")),
    );
    assert_eq!(
        reason(&rig.ask("GET", "/https/foreign.example/")),
        "tls-failed"
    );
    // The policy allows plain HTTP to a TLS port; the request fails at the host.
    assert_eq!(
        reason(&rig.ask("GET", "/http/a.example:443/v1/x")),
        "upstream-failed"
    );
    let counts = rig.stop().counts;
    assert_eq!((counts.allowed, counts.denied, counts.failed), (1, 2, 3));
}

fn terminating() -> Rig {
    tls_rig(json!({
        "rules": [{"host": "a.example", "ports": [443], "methods": ["GET"], "paths": ["/v1/"]}],
        "tls": "terminate",
    }))
}

#[test]
fn request_inside_terminated_tls_that_breaks_a_network_rule_is_refused() {
    let mut rig = terminating();
    let trusted = client(rig.authority.as_deref().unwrap(), Sni::Sent);
    let ask = |request: &str| {
        let stream = connect(&rig, "a.example:443").unwrap();
        exchange(stream, Arc::clone(&trusted), "a.example", request).unwrap()
    };
    let answer = ask(&get("/v1/x?y=z", "a.example"));
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("GET /v1/x?y=z"),
        "{answer}"
    );
    for (request, expected) in [
        (get("/v2/x", "a.example"), "path-not-allowed"),
        (get("/v1/../v2", "a.example"), "path-ambiguous"),
        ("DELETE /v1/x HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(), "method-not-allowed"),
        (get("/v1/x", "b.example"), "host-mismatch"),
        (get("http://b.example/", "a.example"), "malformed-request"),
        ("CONNECT b.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(), "malformed-request"),
        ("GET /v1/x HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n".to_owned(), "malformed-request"),
    ] {
        assert_eq!(reason(&ask(&request)), expected, "{request}");
    }
    // The bridge serves one request per connection inside terminated TLS as well.
    let two = ask(&format!(
        "{}{}",
        get("/v1/first", "a.example"),
        get("/v2/second", "a.example")
    ));
    assert!(
        two.contains("/v1/first") && !two.contains("/v2/second"),
        "{two}"
    );
    let log = rig.stop();
    assert_eq!((log.counts.allowed, log.counts.denied), (2, 7));
    assert!(
        log.rows
            .iter()
            .all(|row| row.mode == EgressMode::Terminate && row.host == "a.example")
    );
    assert_eq!(log.rows[0].path, "/v1/x?[redacted]");
}

#[test]
fn terminated_tls_fails_for_a_client_without_trust_in_the_authority_and_for_another_server_name() {
    let mut rig = terminating();
    let other = terminating();
    assert_ne!(rig.authority, other.authority);
    let stranger = client(other.authority.as_deref().unwrap(), Sni::Sent);
    let stream = connect(&rig, "a.example:443").unwrap();
    assert!(exchange(stream, stranger, "a.example", &get("/v1/x", "a.example")).is_err());
    let trusted = client(rig.authority.as_deref().unwrap(), Sni::Sent);
    let stream = connect(&rig, "a.example:443").unwrap();
    assert!(
        exchange(
            stream,
            Arc::clone(&trusted),
            "b.example",
            &get("/v1/x", "b.example")
        )
        .is_err()
    );
    // Control: the same client succeeds with the right server name.
    let stream = connect(&rig, "a.example:443").unwrap();
    assert!(exchange(stream, trusted, "a.example", &get("/v1/x", "a.example")).is_ok());
    let (status, body) = refusal(&connect(&rig, "b.example:443").unwrap_err());
    assert_eq!(
        (status, body["reason"].as_str().unwrap()),
        (403, "host-not-allowed")
    );
    let log = rig.stop();
    assert_eq!(
        log.rows.iter().map(|r| r.reason).collect::<Vec<_>>(),
        ["client-gone", "sni-mismatch", "", "host-not-allowed"]
    );
    assert!(log.rows[0].note.contains("may not trust"));
    assert!(
        rules(json!({"allowHosts": ["a.example"]}))
            .authority
            .is_none()
    );
}

#[test]
fn request_inside_terminated_tls_fails_if_the_hosts_certificate_has_another_name() {
    let mut rig = terminating();
    let foreign = rig.servers.config("other.example");
    rig.wire(
        PUBLIC,
        443,
        tls_server(foreign, |_, stream| ok(stream, "no")),
    );
    let trusted = client(rig.authority.as_deref().unwrap(), Sni::Sent);
    let stream = connect(&rig, "a.example:443").unwrap();
    let answer = exchange(stream, trusted, "a.example", &get("/v1/x", "a.example")).unwrap();
    let (status, body) = refusal(&answer);
    assert_eq!(
        (status, body["reason"].as_str().unwrap()),
        (502, "tls-failed")
    );
    assert_eq!(rig.row().decision, EgressDecision::Failed);
}
