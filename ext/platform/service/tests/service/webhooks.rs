//! Webhooks: signature, retries, and the rights of their tokens.

use crate::server::{Server, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use wp_codebox_service::{ServiceConfig, WebhookTargets};

#[derive(Debug, Clone)]
struct Delivery {
    signature: String,
    id: String,
    body: String,
}

/// Receives deliveries. Answers 500 to the first `failures` of them.
fn receiver(failures: usize) -> (String, Arc<Mutex<Vec<Delivery>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let got = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&got);
    std::thread::spawn(move || {
        for (index, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut headers = Vec::new();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                match line.trim_end().split_once(": ") {
                    Some((name, value)) => headers.push((name.to_lowercase(), value.to_owned())),
                    None if line.trim().is_empty() => break,
                    None => {}
                }
            }
            let header = |name: &str| {
                let found = headers.iter().find(|(known, _)| known == name);
                found.map(|(_, value)| value.clone()).unwrap_or_default()
            };
            let mut body = vec![0; header("content-length").parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            all.lock().unwrap().push(Delivery {
                signature: header("wp-codebox-signature"),
                id: header("wp-codebox-delivery"),
                body: String::from_utf8(body).unwrap(),
            });
            let status = if index < failures {
                "500 No"
            } else {
                "204 Yes"
            };
            let answer =
                format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    (url, got)
}

fn openssl_hmac(secret: &str, text: &str) -> String {
    let mut child = Command::new("openssl")
        .args(["dgst", "-sha256", "-hmac", secret])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap().stdout;
    let text = String::from_utf8(output).unwrap();
    text.trim().rsplit(' ').next().unwrap().to_owned()
}

#[test]
fn failed_delivery_is_repeated_with_a_signature_that_another_program_verifies() {
    let server = Server::start();
    let admin = server.admin();
    let (url, got) = receiver(2);
    let hook = admin.post(
        "/v1/webhooks",
        &json!({"url": url, "types": ["sandbox.ready"]}),
    );
    let hook = hook.expect(201).json();
    let secret = hook["secret"].as_str().unwrap();
    let id = admin.ready("profile.shop");
    let deliveries = until("three attempts", || {
        let got = got.lock().unwrap().clone();
        (got.len() == 3).then_some(got)
    });
    for delivery in &deliveries {
        assert_eq!(
            (&delivery.id, &delivery.body),
            (&deliveries[0].id, &deliveries[0].body)
        );
        let (time, mac) = delivery.signature.split_once(",v1=").unwrap();
        let seconds = time.strip_prefix("t=").unwrap();
        let signed = format!("{seconds}.{}", delivery.body);
        assert_eq!(openssl_hmac(secret, &signed), mac);
        assert_ne!(openssl_hmac("other", &signed), mac);
    }
    let event: Value = serde_json::from_str(&deliveries[0].body).unwrap();
    assert_eq!(
        (&event["type"], event["sandbox"].as_str()),
        (&json!("sandbox.ready"), Some(id.as_str()))
    );
    let queued = || {
        let text = admin.get("/metrics").expect(200).text();
        text.contains("wp_codebox_webhooks_queued 0\n")
            .then_some(())
    };
    until("an empty queue", queued);
    let listed = admin.get("/v1/webhooks").expect(200).json();
    assert!(
        listed["webhooks"][0].get("secret").is_none(),
        "the list shows the key"
    );
}

#[test]
fn delivery_is_given_up_after_eight_attempts() {
    let server = Server::with(|config| config.webhook_pause = std::time::Duration::ZERO);
    let admin = server.admin();
    let (url, got) = receiver(usize::MAX);
    admin
        .post(
            "/v1/webhooks",
            &json!({"url": url, "types": ["sandbox.ready"]}),
        )
        .expect(201);
    admin.ready("profile.shop");
    until("the end of the attempts", || {
        let text = admin.get("/metrics").expect(200).text();
        text.contains("deliveries_total{result=\"given_up\"} 1\n")
            .then_some(())
    });
    assert_eq!(got.lock().unwrap().len(), 8);
}

#[test]
fn webhook_gets_only_the_events_that_its_token_may_read() {
    let server = Server::start();
    let (url, got) = receiver(0);
    let token = server.token(
        "atm:nightly",
        &[
            "webhooks:*",
            "sandboxes:*@profile.other",
            "events:read@profile.other",
        ],
    );
    let id = token
        .post("/v1/webhooks", &json!({"url": url}))
        .expect(201)
        .json()["id"]
        .clone();
    server.admin().ready("profile.shop");
    let own = token.ready("profile.other");
    until("the event of its own sandbox", || {
        let got = got.lock().unwrap();
        got.iter()
            .any(|delivery| delivery.body.contains("sandbox.ready"))
            .then_some(())
    });
    for delivery in got.lock().unwrap().iter() {
        assert!(delivery.body.contains(&own), "{}", delivery.body);
    }
    // Webhooks of others do not exist for a token.
    let other = server.token("atm:other", &["webhooks:*"]);
    let at = format!("/v1/webhooks/{}", id.as_str().unwrap());
    other
        .delete(&at)
        .problem(404, "wp_codebox_service_not_found");
    assert_eq!(other.get("/v1/webhooks").json()["webhooks"], json!([]));
    token.delete(&at).expect(204);
    token
        .post("/v1/webhooks", &json!({"url": "http://hooks.example/"}))
        .problem(400, "wp_codebox_input_invalid");
}

#[test]
fn webhook_on_a_private_address_gets_nothing_unless_the_operator_allows_it() {
    let forbid = |config: &mut ServiceConfig| config.webhook_targets = WebhookTargets::default();
    let server = Server::with(forbid);
    let (url, got) = receiver(0);
    let body = json!({"url": url});
    let refused = server.admin().post("/v1/webhooks", &body);
    let refused = refused.problem(400, "wp_codebox_input_invalid");
    assert!(
        refused.text().contains("--webhook-allow"),
        "{}",
        refused.text()
    );
    // Positive control; then the operator changes the settings.
    let server = server.restart();
    server.admin().post("/v1/webhooks", &body).expect(201);
    let server = server.restart_with(forbid);
    server.admin().ready("profile.shop");
    until("a failed attempt", || {
        let text = server.admin().get("/metrics").expect(200).text();
        let failed = "deliveries_total{result=\"failed\"} ";
        let count = text.split(failed).nth(1)?.lines().next()?;
        (count != "0").then_some(())
    });
    assert_eq!(got.lock().unwrap().len(), 0);
    let _server = server.restart();
    until("the delivery", || {
        (!got.lock().unwrap().is_empty()).then_some(())
    });
}
