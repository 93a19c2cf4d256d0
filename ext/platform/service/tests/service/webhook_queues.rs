//! Queues of webhooks: a dead endpoint delays no other one.

use crate::http::Client;
use crate::server::{Server, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// An endpoint on loopback.
pub struct Endpoint {
    pub url: String,
    /// Ids of the events in the order of the attempts.
    attempts: Mutex<Vec<u64>>,
    /// Number of connections that the client closed before it had an answer.
    abandoned: AtomicUsize,
    mode: Mutex<Mode>,
    /// A second request arrived before the first was answered.
    overlap: AtomicBool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Answers,
    /// Answers the status 500.
    Fails,
    /// Reads the request and never answers.
    Hangs,
}

impl Endpoint {
    pub fn start(mode: Mode) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Arc::new(Self {
            url: format!("http://{}/hook", listener.local_addr().unwrap()),
            attempts: Mutex::default(),
            abandoned: AtomicUsize::new(0),
            mode: Mutex::new(mode),
            overlap: AtomicBool::new(false),
        });
        let shared = Arc::clone(&endpoint);
        std::thread::spawn(move || {
            let busy = Arc::new(AtomicBool::new(false));
            for stream in listener.incoming() {
                let (shared, busy, stream) =
                    (Arc::clone(&shared), Arc::clone(&busy), stream.unwrap());
                std::thread::spawn(move || {
                    if busy.swap(true, Ordering::SeqCst) {
                        shared.overlap.store(true, Ordering::SeqCst);
                    }
                    shared.one(stream, &busy);
                });
            }
        });
        endpoint
    }

    fn one(&self, mut stream: TcpStream, busy: &AtomicBool) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            match line.trim_end().split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(_) => {}
                None if line.trim().is_empty() => break,
                None => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let event: Value = serde_json::from_slice(&body).unwrap();
        self.attempts
            .lock()
            .unwrap()
            .push(event["id"].as_u64().unwrap());
        let mode = *self.mode.lock().unwrap();
        let status = match mode {
            Mode::Answers => "204 Yes",
            Mode::Fails => "500 No",
            Mode::Hangs => {
                let _ = reader.read(&mut [0]);
                self.abandoned.fetch_add(1, Ordering::SeqCst);
                busy.store(false, Ordering::SeqCst);
                return;
            }
        };
        busy.store(false, Ordering::SeqCst);
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        let _ = stream.write_all(answer.as_bytes());
    }

    pub fn attempts(&self) -> Vec<u64> {
        self.attempts.lock().unwrap().clone()
    }

    pub fn is_now(&self, mode: Mode) {
        *self.mode.lock().unwrap() = mode;
    }

    pub fn await_attempts(&self, count: usize) -> Vec<u64> {
        until("attempts of the endpoint", || {
            Some(self.attempts()).filter(|attempts| attempts.len() >= count)
        })
    }
}

/// Subscribes an endpoint to the events that [`drain`] makes.
pub fn hook(client: &Client, url: &str) {
    let body = json!({"url": url, "types": ["host.draining"]});
    client.post("/v1/webhooks", &body).expect(201);
}

/// Makes events, which every token with `events:read` and `hosts:read` may read.
fn drain(server: &Server, count: usize) {
    for _ in 0..count {
        server
            .admin()
            .post("/v1/hosts/local/drain", &json!({}))
            .expect(200);
    }
}

fn tenant(server: &Server, actor: &str) -> Client {
    server.token(actor, &["webhooks:*", "events:read", "hosts:read"])
}

fn metric(server: &Server, name: &str) -> u64 {
    let text = server.admin().get("/metrics").expect(200).text();
    let line = text.lines().find(|line| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(' '))
    });
    let line = line.unwrap_or_else(|| panic!("no metric {name}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn endpoint_that_never_answers_delays_only_its_own_events() {
    let server = Server::start();
    let dead = Endpoint::start(Mode::Hangs);
    hook(&tenant(&server, "agt:dead"), &dead.url);
    drain(&server, 24);
    dead.await_attempts(1);
    let live = Endpoint::start(Mode::Answers);
    hook(&tenant(&server, "agt:live"), &live.url);
    drain(&server, 1);
    live.await_attempts(1);
    assert_eq!(dead.abandoned.load(Ordering::SeqCst), 0);
    assert_eq!(dead.attempts().len(), 1);
}

#[test]
fn many_endpoints_of_one_tenant_that_never_answer_leave_attempts_to_another_tenant() {
    let server = Server::start();
    let dead: Vec<_> = (0..32).map(|_| Endpoint::start(Mode::Hangs)).collect();
    let tenants = ["agt:a", "agt:a", "agt:a", "agt:a"].map(|actor| tenant(&server, actor));
    for client in &tenants {
        for endpoint in &dead {
            hook(client, &endpoint.url);
        }
    }
    let live = Endpoint::start(Mode::Answers);
    hook(&tenant(&server, "agt:live"), &live.url);
    drain(&server, 4);
    live.await_attempts(4);
    let abandoned: usize = dead
        .iter()
        .map(|endpoint| endpoint.abandoned.load(Ordering::SeqCst))
        .sum();
    assert_eq!(abandoned, 0, "the events waited for a dead endpoint");
    let begun: usize = dead.iter().map(|endpoint| endpoint.attempts().len()).sum();
    assert!(begun > 0, "no dead endpoint was tried");
}

#[test]
fn failing_endpoint_gets_one_attempt_for_all_its_events_in_each_pause() {
    let server = Server::with(|config| config.webhook_pause = HOUR);
    let failing = Endpoint::start(Mode::Fails);
    hook(&server.admin(), &failing.url);
    drain(&server, 5);
    let first = failing.await_attempts(1);
    // The events of another endpoint show that the first one had time for further attempts.
    let live = Endpoint::start(Mode::Answers);
    hook(&server.admin(), &live.url);
    drain(&server, 5);
    live.await_attempts(5);
    assert_eq!(failing.attempts(), first);
    // The pause of the endpoint survives a restart.
    let server = server.restart();
    drain(&server, 1);
    live.await_attempts(6);
    assert_eq!(failing.attempts(), first);
}

#[test]
fn events_arrive_in_order_and_one_at_a_time_also_after_failures() {
    let server = Server::start();
    let endpoint = Endpoint::start(Mode::Fails);
    hook(&server.admin(), &endpoint.url);
    drain(&server, 6);
    endpoint.await_attempts(2);
    endpoint.is_now(Mode::Answers);
    until("an empty queue", || {
        (metric(&server, "wp_codebox_webhooks_queued") == 0).then_some(())
    });
    let attempts = endpoint.attempts();
    assert!(attempts.is_sorted(), "{attempts:?}");
    let mut distinct = attempts.clone();
    distinct.dedup();
    assert_eq!(distinct.len(), 6, "{attempts:?}");
    assert!(!endpoint.overlap.load(Ordering::SeqCst));
}

#[test]
fn full_queue_of_a_webhook_drops_the_oldest_events_and_counts_them() {
    let server = Server::with(|config| {
        config.webhook_pause = HOUR;
        config.webhook_queue = 3;
    });
    let full = Endpoint::start(Mode::Fails);
    hook(&server.admin(), &full.url);
    drain(&server, 7);
    until("the end of the oldest events", || {
        (metric(&server, "wp_codebox_webhooks_queued") == 3).then_some(())
    });
    let dropped = "wp_codebox_webhook_deliveries_total{result=\"dropped\"}";
    assert_eq!(metric(&server, dropped), 4);
    // A queue below its bound loses nothing.
    let live = Endpoint::start(Mode::Answers);
    hook(&server.admin(), &live.url);
    drain(&server, 3);
    let newest = live.await_attempts(3);
    until("the end of the oldest events", || {
        (metric(&server, dropped) == 7).then_some(())
    });
    assert!(full.attempts().iter().all(|event| event < &newest[0]));
}
