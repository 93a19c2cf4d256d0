//! Tests of secrets with a complete bridge: values are inserted for their hosts only and removed
//! from every response.

use super::rig::*;
use crate::egress::{EgressDecision, SecretSwap};
use serde_json::json;
use std::sync::{Arc, Mutex};
use wp_codebox_policy::SecretScope;
use zeroize::Zeroizing;

const VALUE: &str = "sk-live/4f\"9a+true value=";
const PLACEHOLDER: &str = "wpcb_secret_0123456789abcdef0123";

fn swap(hosts: &[&str]) -> SecretSwap {
    SecretSwap {
        name: "API_KEY".to_owned(),
        placeholder: PLACEHOLDER.to_owned(),
        value: Zeroizing::new(VALUE.to_owned()),
        hosts: hosts
            .iter()
            .map(|h| SecretScope::parse(h).unwrap())
            .collect(),
    }
}

struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn last(&self) -> String {
        self.0.lock().unwrap().last().cloned().unwrap_or_default()
    }
}

/// Returns a bridge, and a record of the requests that its two TLS hosts received. Each host sends
/// a body of two pieces: the text of the request, then the value of the request's `X-Key` header.
/// The response header `X-Echo` has this value too.
fn secret_rig(hosts: &[&str], tls: &str) -> (Rig, Seen) {
    let rig = rig(Options {
        rules: json!({"allowHosts": ["api.example", "other.example"], "tls": tls}),
        secrets: vec![swap(hosts)],
        ..Options::default()
    });
    let seen = Seen(Arc::default());
    for (name, address, port) in [
        ("api.example", PUBLIC, 443),
        ("other.example", OTHER_PUBLIC, 443),
    ] {
        let requests = Arc::clone(&seen.0);
        let config = rig.servers.config(name);
        rig.names.add(name, &[&[address]]);
        rig.wire(
            address,
            port,
            tls_server(config, move |request, stream| {
                requests.lock().unwrap().push(request.to_owned());
                let key = request
                    .lines()
                    .find_map(|l| l.strip_prefix("x-key: "))
                    .unwrap_or("none");
                let body = format!("{request}{}", json!({"key": key}));
                let (first, second) = body.split_at(body.len() - 12);
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nX-Echo: {key}\r\nContent-Length: {}\r\n\r\n{first}",
                    body.len()
                );
                let _ = stream.flush();
                std::thread::sleep(std::time::Duration::from_millis(50));
                let _ = stream.write_all(second.as_bytes());
            }),
        );
    }
    (rig, seen)
}

fn keyed(target: &str) -> String {
    format!(
        "GET {target}?key={PLACEHOLDER} HTTP/1.1\r\nHost: x\r\nX-Key: {PLACEHOLDER}\r\nAccept-Encoding: gzip\r\nRange: bytes=0-3\r\n\r\n"
    )
}

#[test]
fn secret_is_sent_to_its_host_and_removed_from_the_response() {
    let (mut rig, seen) = secret_rig(&["api.example"], "tunnel");
    let answer = rig.raw(keyed("/https/api.example/v1").as_bytes());
    let sent = seen.last();
    assert!(sent.contains(&format!("x-key: {VALUE}\r\n")), "{sent}");
    assert!(
        sent.starts_with("GET /v1?key=sk-live%2F4f%229a%2Btrue%20value%3D "),
        "{sent}"
    );
    assert!(
        sent.contains("accept-encoding: identity") && !sent.contains("range:"),
        "{sent}"
    );
    assert!(!sent.contains(PLACEHOLDER), "{sent}");

    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        answer
            .to_ascii_lowercase()
            .contains(&format!("x-echo: {PLACEHOLDER}\r\n")),
        "{answer}"
    );
    // The host sent the value in two pieces; the response to the guest has one complete
    // placeholder.
    let body = dechunked(&answer);
    assert!(
        body.ends_with(&format!("{{\"key\":\"{PLACEHOLDER}\"}}")),
        "{body}"
    );
    for spelling in [VALUE, "sk-live", "sk-live%2F", "9a+true", "9a%2Btrue"] {
        assert!(!answer.contains(spelling), "{spelling}: {answer}");
        assert!(!body.contains(spelling), "{spelling}: {body}");
    }
    let row = rig.row();
    assert_eq!(
        (
            row.decision,
            row.secrets.as_slice(),
            row.secrets_withheld.len()
        ),
        (EgressDecision::Allowed, &["API_KEY".to_owned()][..], 0)
    );
    let logged = serde_json::to_string(&row).unwrap();
    assert!(
        !logged.contains("sk-live") && !logged.contains(PLACEHOLDER),
        "{logged}"
    );
}

#[test]
fn hosts_outside_the_scope_of_a_secret_get_the_placeholder() {
    let (mut rig, seen) = secret_rig(&["api.example"], "tunnel");
    let answer = rig.raw(keyed("/https/other.example/v1").as_bytes());
    let sent = seen.last();
    assert!(
        sent.contains(&format!("x-key: {PLACEHOLDER}\r\n")) && !sent.contains("sk-live"),
        "{sent}"
    );
    assert!(
        sent.contains("accept-encoding: identity") && !sent.contains("range:"),
        "what it answers is searched too: {sent}"
    );
    assert!(answer.contains(PLACEHOLDER));
    // A request over plain HTTP to the secret's own host keeps the placeholder, because the scope
    // `api.example` means HTTPS.
    let plain = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&plain);
    rig.wire(
        PUBLIC,
        80,
        server(move |request, stream| {
            request.clone_into(&mut kept.lock().unwrap());
            ok(stream, "plain");
        }),
    );
    let answer = rig.raw(keyed("http://api.example/v1").as_bytes());
    assert!(answer.contains("plain"), "{answer}");
    assert!(
        plain.lock().unwrap().contains(PLACEHOLDER) && !plain.lock().unwrap().contains("sk-live")
    );
    let log = rig.stop();
    assert!(
        log.rows
            .iter()
            .all(|row| row.secrets.is_empty() && row.secrets_withheld == ["API_KEY"]),
        "{log:#?}"
    );
}

#[test]
fn secret_with_an_http_scope_is_sent_over_plain_http_if_the_network_rules_allow_the_port() {
    let (mut rig, _) = secret_rig(&["http://api.example:8080"], "tunnel");
    let sent = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&sent);
    rig.wire(
        PUBLIC,
        8080,
        server(move |request, stream| {
            request.clone_into(&mut kept.lock().unwrap());
            ok(stream, request);
        }),
    );
    let answer = rig.raw(keyed("http://api.example:8080/").as_bytes());
    assert_eq!(reason(&answer), "port-not-allowed");
    rig.stop();

    let mut rig = super::rig::rig(Options {
        rules: json!({"allowHosts": ["api.example:8080"]}),
        secrets: vec![swap(&["http://api.example:8080"])],
        ..Options::default()
    });
    let kept = Arc::clone(&sent);
    rig.host(
        "api.example",
        8080,
        server(move |request, stream| {
            request.clone_into(&mut kept.lock().unwrap());
            ok(stream, request);
        }),
    );
    let answer = rig.raw(keyed("http://api.example:8080/").as_bytes());
    assert!(sent.lock().unwrap().contains(VALUE));
    assert!(
        answer.contains(PLACEHOLDER) && !answer.contains("sk-live"),
        "{answer}"
    );
    assert_eq!(rig.row().secrets, ["API_KEY"]);
}

/// Returns a bridge with two hosts. `api.example` stores the `X-Key` header of its last request;
/// `other.example` returns the stored value in its response headers and body.
fn storing_rig(secrets: Vec<SecretSwap>) -> Rig {
    let rig = rig(Options {
        rules: json!({"allowHosts": ["api.example:8080", "other.example:8080"]}),
        secrets,
        ..Options::default()
    });
    let stored = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&stored);
    rig.names.add("api.example", &[&[PUBLIC]]);
    rig.names.add("other.example", &[&[OTHER_PUBLIC]]);
    rig.wire(
        PUBLIC,
        8080,
        server(move |request, stream| {
            let key = request.lines().find_map(|l| l.strip_prefix("x-key: "));
            key.unwrap_or("none").clone_into(&mut kept.lock().unwrap());
            ok(stream, "stored");
        }),
    );
    rig.wire(
        OTHER_PUBLIC,
        8080,
        server(move |request, stream| {
            let value = stored.lock().unwrap().clone();
            let hex: String = value.bytes().map(|b| format!("{b:02x}")).collect();
            let coding = match request.contains("/gzip") {
                true => "Content-Encoding: identity\r\nContent-Encoding: gzip\r\n",
                false => "",
            };
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\n{coding}X-Value: {value}\r\nX-{hex}: 1\r\nContent-Length: {}\r\n\r\n",
                value.len()
            );
            if !request.starts_with("HEAD") {
                let _ = stream.write_all(value.as_bytes());
            }
        }),
    );
    rig
}

#[test]
fn secret_is_removed_from_the_response_of_another_host_and_a_gzip_response_is_refused() {
    let mut rig = storing_rig(vec![swap(&["http://api.example:8080"])]);
    let answer = rig.raw(keyed("http://api.example:8080/").as_bytes());
    assert!(answer.contains("stored"), "{answer}");
    let answer = rig.ask("GET", "http://other.example:8080/");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(dechunked(&answer), PLACEHOLDER);
    assert!(
        answer
            .to_ascii_lowercase()
            .contains(&format!("x-value: {PLACEHOLDER}\r\n")),
        "{answer}"
    );
    assert!(
        !answer.contains("sk-live") && !answer.contains("736b2d6c"),
        "{answer}"
    );
    // The response to HEAD keeps the `Content-Length`: without a body nothing is scrubbed.
    let answer = rig.ask("HEAD", "http://other.example:8080/");
    let length = format!("content-length: {}\r\n", VALUE.len());
    assert!(answer.to_ascii_lowercase().contains(&length), "{answer}");
    assert_eq!(
        reason(&rig.ask("GET", "http://other.example:8080/gzip")),
        "response-encoded"
    );
    rig.stop();

    let rig = storing_rig(Vec::new());
    rig.raw(
        format!("GET http://api.example:8080/ HTTP/1.1\r\nHost: x\r\nX-Key: {VALUE}\r\n\r\n")
            .as_bytes(),
    );
    for path in ["", "gzip"] {
        let answer = rig.ask("GET", &format!("http://other.example:8080/{path}"));
        assert!(
            answer.ends_with(VALUE),
            "control: a run without secrets: {answer}"
        );
    }
}

#[test]
fn egress_log_notes_that_a_tunnel_is_not_searched_or_which_secret_belongs_to_its_host() {
    let (mut rig, _) = secret_rig(&["api.example"], "tunnel");
    let answer = rig.raw(b"CONNECT api.example:443 HTTP/1.1\r\nHost: a\r\n\r\nnot tls");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let row = rig.row();
    assert!(
        row.note.contains("API_KEY") && row.note.contains("terminate") && row.secrets.is_empty(),
        "{row:?}"
    );
    let (mut rig, _) = secret_rig(&["api.example"], "tunnel");
    rig.raw(b"CONNECT other.example:443 HTTP/1.1\r\nHost: a\r\n\r\nnot tls");
    let row = rig.row();
    assert!(
        !row.note.contains("API_KEY") && row.note.contains("not searched"),
        "{row:?}"
    );
}
