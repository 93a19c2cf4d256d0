//! Tests of each limit of the egress bridge: one request exceeds it, another stays within.

use super::rig::*;
use crate::egress::{BridgeLimits, EgressDecision};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn limited(change: impl FnOnce(&mut BridgeLimits)) -> Rig {
    let mut limits = BridgeLimits {
        idle_timeout: Duration::from_secs(10),
        ..BridgeLimits::default()
    };
    change(&mut limits);
    let rig = rig(Options {
        limits,
        ..Options::default()
    });
    rig.host("plain.example", 80, echo());
    rig
}

/// Writes a response head, and then `piece` every 50 ms until the peer closes the connection.
fn endless(stream: &mut dyn Stream, piece: &[u8]) {
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
    while stream.write_all(piece).is_ok() {
        std::thread::sleep(Duration::from_millis(50));
    }
}

const TARGET: &str = "http://plain.example/";

#[test]
fn request_body_over_limit_is_refused() {
    let mut rig = limited(|l| l.request_bytes = 1000);
    let sized = |n: usize| {
        format!(
            "POST {TARGET} HTTP/1.1\r\nHost: a\r\nContent-Length: {n}\r\n\r\n{}",
            "x".repeat(n)
        )
    };
    assert!(rig.raw(sized(1000).as_bytes()).starts_with("HTTP/1.1 200"));
    let (status, body) = refusal(&rig.raw(sized(1001).as_bytes()));
    assert_eq!(
        (status, body["reason"].as_str().unwrap()),
        (413, "request-too-large")
    );
    let chunk = format!("190\r\n{}\r\n", "y".repeat(400));
    let chunked = |n: usize| {
        format!(
            "POST {TARGET} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
            chunk.repeat(n)
        )
    };
    assert!(rig.raw(chunked(2).as_bytes()).starts_with("HTTP/1.1 200"));
    let (status, body) = refusal(&rig.raw(chunked(3).as_bytes()));
    assert_eq!(
        (status, body["reason"].as_str().unwrap()),
        (413, "request-too-large")
    );
    let counts = rig.stop().counts;
    assert_eq!((counts.allowed, counts.denied), (2, 2));
}

#[test]
fn request_beyond_the_byte_limit_of_a_run_is_refused_and_response_beyond_it_is_cut() {
    let mut rig = limited(|l| l.run_request_bytes = 1500);
    let post = format!(
        "POST {TARGET} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{}",
        "x".repeat(1000)
    );
    assert!(rig.raw(post.as_bytes()).starts_with("HTTP/1.1 200"));
    assert_eq!(reason(&rig.raw(post.as_bytes())), "run-request-limit");
    assert_eq!(rig.stop().counts.denied, 1);

    let mut rig = limited(|l| l.run_response_bytes = 150_000);
    rig.host(
        "plain.example",
        80,
        server(|_, stream| ok(stream, &"z".repeat(100_000))),
    );
    assert!(rig.ask("GET", TARGET).len() > 100_000);
    assert!(
        rig.ask("GET", TARGET).len() < 100_000,
        "the response was cut"
    );
    let log = rig.stop();
    assert_eq!(log.rows[1].reason, "run-response-limit");
}

#[test]
fn response_over_the_body_limit_is_refused_by_its_length_or_cut_while_it_is_forwarded() {
    let mut rig = limited(|l| l.response_bytes = 1024 * 1024);
    rig.host(
        "plain.example",
        80,
        server(|request, stream| {
            if request.contains("/sized") {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n");
            } else {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            }
            // Writes until the bridge closes the connection.
            while stream.write_all(&[b'x'; 65536]).is_ok() {}
        }),
    );
    let (status, body) = refusal(&rig.ask("GET", "http://plain.example/sized"));
    assert_eq!(
        (status, body["reason"].as_str().unwrap()),
        (502, "response-too-large")
    );
    let answer = rig.ask("GET", TARGET);
    assert!(answer.starts_with("HTTP/1.1 200"));
    assert!(answer.len() < 1_300_000, "{}", answer.len());
    assert!(!answer.ends_with("0\r\n\r\n"), "it does not look whole");
    let log = rig.stop();
    assert!(
        log.rows
            .iter()
            .all(|r| r.reason == "response-too-large" && r.decision == EgressDecision::Denied),
        "{log:#?}"
    );
}

#[test]
fn bridge_stops_reading_from_the_host_while_the_guest_reads_no_response() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let mut rig = limited(|l| {
        l.idle_timeout = Duration::from_secs(2);
        l.response_bytes = u64::MAX;
    });
    let written = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&written);
    rig.host(
        "plain.example",
        80,
        server(move |_, stream| {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            while stream.write_all(&[b'x'; 65536]).is_ok() {
                count.fetch_add(65536, Ordering::Relaxed);
            }
        }),
    );
    let mut stream = TcpStream::connect(rig.tcp).unwrap();
    write!(stream, "GET {TARGET} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    // This client reads nothing, so the bridge stops reading from the host. The buffers between
    // bridge and host fill up, and the host's write blocks.
    let mut last = usize::MAX;
    let still = (0..20).any(|_| {
        std::thread::sleep(Duration::from_millis(500));
        let now = written.load(Ordering::Relaxed);
        std::mem::replace(&mut last, now) == now
    });
    assert!(still, "the host went on writing");
    assert!(last < 64 * 1024 * 1024, "{last}");
    until("the request ends", || {
        rig.bridge.as_ref().unwrap().counts().failed == 1
    });
    assert_eq!(rig.row().reason, "idle-timeout");
}

#[test]
fn request_heads_over_size_or_time_limit_are_refused() {
    let rig = limited(|l| l.head_bytes = 4096);
    let (status, body) = refusal(
        &rig.raw(
            format!(
                "GET {TARGET} HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
                "y".repeat(5000)
            )
            .as_bytes(),
        ),
    );
    assert_eq!(
        (status, body["reason"].as_str().unwrap()),
        (431, "head-too-large")
    );
    let mut rig = limited(|l| {
        l.head_bytes = 4096;
        l.head_timeout = Duration::from_secs(1);
    });
    // Slow-loris attack: sending single bytes does not extend the timeout for the request head.
    let mut stream = TcpStream::connect(rig.tcp).unwrap();
    write!(stream, "GET {TARGET} HTTP/1.1\r\nHost: a\r\nX: ").unwrap();
    until("the bridge hangs up", || stream.write_all(b"y").is_err());
    let log = rig.stop();
    assert_eq!(log.rows[0].reason, "head-timeout");
    assert_eq!(log.rows[0].status, 408);
}

#[test]
fn slow_request_bodies_and_slow_hosts_end_with_the_idle_or_total_timeout() {
    let mut rig = limited(|l| {
        l.idle_timeout = Duration::from_millis(500);
        l.total_timeout = Duration::from_secs(20);
    });
    let (status, body) = refusal(&rig.raw(
        format!("POST {TARGET} HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc").as_bytes(),
    ));
    assert_eq!(
        (status, body["reason"].as_str().unwrap()),
        (504, "idle-timeout")
    );
    rig.host(
        "plain.example",
        80,
        server(|_, stream| {
            std::thread::sleep(WAIT_LIMIT);
            ok(stream, "late");
        }),
    );
    assert_eq!(reason(&rig.ask("GET", TARGET)), "idle-timeout");
    rig.stop();

    // Total timeout: long enough for the host's first byte to arrive.
    let mut rig = limited(|l| {
        l.total_timeout = Duration::from_secs(8);
        // Longer than the total timeout, also when this process gets no processor time for seconds.
        l.idle_timeout = WAIT_LIMIT;
    });
    rig.host(
        "plain.example",
        80,
        server(|_, stream| endless(stream, b"drip")),
    );
    assert!(rig.ask("GET", TARGET).contains("drip"));
    assert_eq!(rig.row().reason, "total-timeout");
}

#[test]
fn too_many_open_connections_and_too_many_requests_per_minute_get_429() {
    let mut rig = limited(|l| l.connections = 2);
    let held: Vec<TcpStream> = (0..2)
        .map(|_| TcpStream::connect(rig.tcp).unwrap())
        .collect();
    let (status, body) = refusal(&rig.ask("GET", TARGET));
    assert_eq!(
        (status, body["reason"].as_str().unwrap()),
        (429, "too-many-connections")
    );
    drop(held);
    let mut asked = 1;
    until("a connection permit is free again", || {
        asked += 1;
        rig.ask("GET", TARGET).starts_with("HTTP/1.1 200")
    });
    let log = rig.stop();
    assert_eq!(
        log.rows.len(),
        asked,
        "connections without a request add no rows"
    );

    let mut rig = limited(|l| l.requests_per_minute = 3);
    for _ in 0..3 {
        assert!(rig.ask("GET", TARGET).starts_with("HTTP/1.1 200"));
    }
    let (status, body) = refusal(&rig.ask("GET", TARGET));
    assert_eq!(
        (status, body["reason"].as_str().unwrap()),
        (429, "rate-limited")
    );
    assert_eq!(rig.stop().counts.denied, 1);
}

#[test]
fn requests_beyond_the_row_limit_of_the_egress_log_are_counted() {
    let mut rig = limited(|l| l.log_rows = 2);
    for _ in 0..5 {
        rig.ask("GET", "http://other.example/");
    }
    let log = rig.stop();
    assert_eq!((log.rows.len(), log.cut, log.counts.denied), (2, 3, 5));
}

#[test]
fn requests_running_at_stop_are_logged_as_stopped() {
    let mut rig = limited(|_| {});
    rig.host(
        "plain.example",
        80,
        server(|_, stream| {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nfirst");
            std::thread::sleep(3 * WAIT_LIMIT);
        }),
    );
    let mut stream = TcpStream::connect(rig.tcp).unwrap();
    write!(stream, "GET {TARGET} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut buffer = [0; 1024];
    let read = stream.read(&mut buffer).unwrap();
    assert!(read > 0);
    let start = Instant::now();
    let row = rig.row();
    assert!(start.elapsed() < WAIT_LIMIT, "{:?}", start.elapsed());
    assert_eq!(
        (row.decision, row.reason, row.status),
        (EgressDecision::Failed, "stopped", 200)
    );
    // A child process that another test has forked keeps the listening socket open until its
    // `exec`.
    until("the bridge stops listening", || {
        TcpStream::connect(rig.tcp).is_err()
    });
}

#[test]
fn upstream_response_that_switches_protocols_is_refused() {
    let mut rig = limited(|_| {});
    rig.host(
        "plain.example",
        80,
        server(|_, stream| {
            let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n";
            let _ = write!(stream, "{head}Upgrade: websocket\r\n\r\nraw bytes");
        }),
    );
    let answer = rig.ask("GET", TARGET);
    assert_eq!(refusal(&answer).0, 502, "{answer}");
    assert!(!answer.contains("raw bytes"), "{answer}");
    assert_eq!(rig.row().reason, "upstream-failed");
}

#[test]
fn guest_disconnect_ends_the_upstream_request() {
    let mut rig = limited(|_| {});
    let (gone, noticed) = std::sync::mpsc::channel();
    rig.host(
        "plain.example",
        80,
        server(move |_, stream| {
            endless(stream, b"more");
            let _ = gone.send(());
        }),
    );
    let mut stream = TcpStream::connect(rig.tcp).unwrap();
    write!(stream, "GET {TARGET} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut buffer = [0; 1024];
    assert!(stream.read(&mut buffer).unwrap() > 0);
    drop(stream);
    noticed.recv_timeout(WAIT_LIMIT).unwrap();
    let row = rig.row();
    assert_eq!(
        (row.decision, row.reason),
        (EgressDecision::Failed, "client-gone")
    );
}

#[test]
fn egress_bridge_stops_at_its_deadline() {
    let rig = rig(Options {
        // Long enough for the control request to complete.
        deadline: Duration::from_secs(10),
        ..Options::default()
    });
    rig.host("plain.example", 80, echo());
    assert!(rig.ask("GET", TARGET).starts_with("HTTP/1.1 200"));
    until("the bridge stops listening", || {
        TcpStream::connect(rig.tcp).is_err()
    });
}

#[test]
fn many_parallel_requests_through_the_bridge_all_get_complete_responses() {
    let mut rig = limited(|l| l.requests_per_minute = 10_000);
    std::thread::scope(|scope| {
        for worker in 0..16 {
            let rig = &rig;
            scope.spawn(move || {
                for turn in 0..10 {
                    let body = format!("{worker}-{turn}-{}", "x".repeat(20_000));
                    let answer = rig.raw(
                        format!(
                            "POST {TARGET} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}",
                            body.len()
                        )
                        .as_bytes(),
                    );
                    assert!(
                        answer.ends_with(&body),
                        "{worker} {turn}: {}",
                        &answer[..answer.len().min(200)]
                    );
                }
            });
        }
    });
    let log = rig.stop();
    assert_eq!(log.counts.allowed, 160);
    assert_eq!(
        log.rows.iter().map(|row| row.bytes_out).sum::<u64>(),
        log.counts.bytes_out
    );
}

#[test]
fn server_sent_events_are_forwarded_immediately() {
    let mut rig = limited(|_| {});
    // The server sends each event only after the client has received the previous one.
    let (seen, last_seen) = std::sync::mpsc::channel();
    let last_seen = std::sync::Mutex::new(last_seen);
    rig.host("plain.example", 80, server(move |_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
        for n in 0..3 {
            let _ = write!(stream, "9\r\ndata: {n}\n\n\r\n");
            let _ = stream.flush();
            if last_seen.lock().unwrap().recv_timeout(WAIT_LIMIT / 2).is_err() {
                return;
            }
        }
        let _ = stream.write_all(b"0\r\n\r\n");
    }));
    let mut stream = TcpStream::connect(rig.tcp).unwrap();
    write!(stream, "GET {TARGET} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut text = String::new();
    let mut events = 0;
    let mut buffer = [0; 1024];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        text.push_str(&String::from_utf8_lossy(&buffer[..read]));
        while events < text.matches("data: ").count() {
            seen.send(()).unwrap();
            events += 1;
        }
    }
    assert_eq!(events, 3, "{text}");
    assert_eq!(rig.row().decision, EgressDecision::Allowed);
}
