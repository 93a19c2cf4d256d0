//! SIGKILL of the server process, again and again.

use crate::fake::{Fake, FakeHost};
use crate::http::Client;
use crate::server::{config, until};
use crate::webhook_queues::{Endpoint, Mode, hook};
use serde_json::json;
use std::collections::BTreeSet;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wp_codebox_service::{Extension, Listener, Service, SocketAccess};

/// Environment variable with the directory in which the child process serves.
const DIRECTORY: &str = "WP_CODEBOX_SERVICE_TEST_DIRECTORY";
const KILLS: usize = 50;

/// The server of the test below, in a process of its own.
#[test]
#[ignore = "a process that another test starts and kills"]
fn child_process_serves_until_it_is_killed() {
    let directory = std::env::var_os(DIRECTORY).unwrap();
    let directory = Path::new(&directory);
    let fake: Arc<dyn Extension> = Fake::new(&directory.join("fake"));
    let config = config(&directory.join("service"));
    let service = Service::open(config, vec![fake], Arc::new(FakeHost::default())).unwrap();
    let listener = Listener::unix(&directory.join("service.sock"), SocketAccess::Owner).unwrap();
    service.run(vec![listener], std::future::pending()).unwrap();
}

fn spawn(directory: &Path) -> Child {
    let program = std::env::current_exe().unwrap();
    Command::new(program)
        .args([
            "--exact",
            "--ignored",
            "crash::child_process_serves_until_it_is_killed",
        ])
        .env(DIRECTORY, directory)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Sends a request for a sandbox; `None` if the server died before it answered.
fn create(client: &Client, key: &str) -> Option<String> {
    use std::io::Write;
    let body = json!({"profile": "profile.shop"}).to_string();
    let mut stream = UnixStream::connect(&client.socket).ok()?;
    let head = format!(
        "POST /v1/sandboxes HTTP/1.1\r\nhost: x\r\nconnection: close\r\nidempotency-key: {key}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    let answer = crate::http::read(stream)?;
    if answer.status != 202 {
        return None;
    }
    let document: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
    Some(document["id"].as_str()?.to_owned())
}

#[test]
fn every_acknowledged_sandbox_becomes_ready_after_fifty_kills_of_the_server() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path();
    let client = Client::new(&directory.join("service.sock"));
    let mut acknowledged: Vec<(String, String)> = Vec::new();
    let mut unanswered: Vec<String> = Vec::new();
    for round in 0..KILLS {
        let mut child = spawn(directory);
        until("the start of the server", || {
            UnixStream::connect(&client.socket).ok()
        });
        // The kill comes in the middle of the requests, at another moment in each round.
        let dead = AtomicBool::new(false);
        let (answered, open) = std::thread::scope(|scope| {
            let dead = &dead;
            let (client, count) = (&client, AtomicBool::new(false));
            let count = Arc::new(count);
            let first = Arc::clone(&count);
            let requests = scope.spawn(move || {
                let (mut answered, mut open) = (Vec::new(), Vec::new());
                for number in 0.. {
                    if dead.load(Ordering::Relaxed) {
                        break;
                    }
                    let key = format!("r{round}-{number}");
                    match create(client, &key) {
                        Some(id) => answered.push((key, id)),
                        None => open.push(key),
                    }
                    if number == round % 5 {
                        first.store(true, Ordering::Relaxed);
                    }
                }
                (answered, open)
            });
            until("some requests", || {
                count.load(Ordering::Relaxed).then_some(())
            });
            child.kill().unwrap();
            child.wait().unwrap();
            dead.store(true, Ordering::Relaxed);
            requests.join().unwrap()
        });
        acknowledged.extend(answered);
        unanswered.extend(open.into_iter().take(3));
    }
    assert!(acknowledged.len() >= KILLS, "{}", acknowledged.len());
    let mut child = spawn(directory);
    until("the start of the server", || {
        UnixStream::connect(&client.socket).ok()
    });
    for (key, id) in &acknowledged {
        let at = format!("/v1/sandboxes/{id}");
        let answer = client
            .send("GET", &at, &[("prefer", "wait=60")], b"")
            .expect(200);
        let document = answer.json();
        // The next server repeats a start that the kill interrupted.
        assert_eq!(document["state"], "ready", "{document}");
        assert_eq!(document["idempotency_key"].as_str(), Some(key.as_str()));
        assert_eq!(
            create(&client, key).as_ref(),
            Some(id),
            "a repeated request made another sandbox"
        );
    }
    // A request without an answer can be repeated, and makes one sandbox in all.
    for key in unanswered.iter().take(20) {
        let first = create(&client, key).unwrap();
        assert_eq!(create(&client, key), Some(first));
    }
    // Every sandbox that runs has a record, and every event is there once, in order.
    let mut known = BTreeSet::new();
    let mut stream = client.stream("/v1/events?after=0&follow=now", &[]);
    let mut last = 0;
    while let Some((id, event)) = stream.event() {
        assert!(id > last, "event {id} after {last}");
        last = id;
        if event["type"] == "sandbox.requested" {
            assert!(known.insert(event["sandbox"].as_str().unwrap().to_owned()));
        }
    }
    for (_, id) in &acknowledged {
        assert!(known.contains(id), "the event of {id} is lost");
    }
    let fake = Fake::new(&directory.join("fake"));
    for id in fake.sandboxes() {
        assert!(known.contains(&id), "sandbox {id} runs without a record");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn waiting_events_of_a_webhook_arrive_in_order_after_a_kill_of_the_server() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path();
    let client = Client::new(&directory.join("service.sock"));
    let started = || {
        let child = spawn(directory);
        until("the start of the server", || {
            UnixStream::connect(&client.socket).ok()
        });
        child
    };
    let endpoint = Endpoint::start(Mode::Hangs);
    let mut child = started();
    hook(&client, &endpoint.url);
    for _ in 0..5 {
        client.post("/v1/hosts/local/drain", &json!({})).expect(200);
    }
    endpoint.await_attempts(1);
    child.kill().unwrap();
    child.wait().unwrap();
    endpoint.is_now(Mode::Answers);
    let mut child = started();
    let attempts = endpoint.await_attempts(6);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(attempts[0], attempts[1], "{attempts:?}");
    assert!(attempts[1..].is_sorted(), "{attempts:?}");
}
