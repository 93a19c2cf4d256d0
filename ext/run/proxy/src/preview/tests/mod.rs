//! Tests of the forwarder with a client and a guest that write raw bytes.

mod hostile;

use super::*;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Maximum wait for an expected event: longer than a busy machine delays one.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// Fake guest that sends the same bytes in every response and records requests.
struct Guest {
    address: SocketAddr,
    requests: Mutex<Vec<String>>,
}

impl Guest {
    fn start(answer: &'static [u8]) -> Arc<Self> {
        Self::doing(move |mut stream| {
            let _ = stream.write_all(answer);
        })
    }

    /// Starts a fake guest that calls `with` for each connection after it has received a request.
    fn doing(with: impl Fn(TcpStream) + Send + Sync + 'static) -> Arc<Self> {
        let with = Arc::new(with);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let guest = Arc::new(Self {
            address: listener.local_addr().unwrap(),
            requests: Mutex::default(),
        });
        let seen = Arc::clone(&guest);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let with = Arc::clone(&with);
                stream.set_read_timeout(Some(WAIT_LIMIT)).unwrap();
                let mut head = Vec::new();
                let mut piece = [0_u8; 4096];
                while !head.windows(4).any(|four| four == b"\r\n\r\n") {
                    match stream.read(&mut piece) {
                        Ok(0) | Err(_) => break,
                        Ok(count) => head.extend_from_slice(&piece[..count]),
                    }
                }
                seen.requests
                    .lock()
                    .unwrap()
                    .push(String::from_utf8_lossy(&head).into_owned());
                std::thread::spawn(move || with(stream));
            }
        });
        guest
    }

    fn last(&self) -> String {
        self.requests
            .lock()
            .unwrap()
            .last()
            .cloned()
            .unwrap_or_default()
    }

    fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

impl GuestConnector for Guest {
    fn connect(&self, reply: ConnectReply) {
        let stream = TcpStream::connect(self.address).unwrap();
        let _ = reply.send(Ok(OwnedFd::from(stream)));
    }
}

/// Connector that drops every request for a connection, as if the guest were unreachable.
struct Closed;

impl GuestConnector for Closed {
    fn connect(&self, _knock: ConnectReply) {}
}

const PAGE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Robots-Tag: all\r\n\
    Set-Cookie: login=1; Domain=example.org; path=/\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";

fn open(
    connector: Arc<dyn GuestConnector>,
    token: Option<&str>,
    limits: ForwarderLimits,
) -> Forwarder {
    Forwarder::open(ForwarderConfig {
        logins: Logins::default(),
        listener: TcpListener::bind("127.0.0.1:0").unwrap(),
        public: Some(Origin::public("https://preview.example.org").unwrap()),
        token: token.map(|token| Token::given(token).unwrap()),
        until: Instant::now() + 10 * WAIT_LIMIT,
        connector,
        limits,
    })
    .unwrap()
}

fn soon(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + WAIT_LIMIT;
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn say(to: &Forwarder, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(to.address()).unwrap();
    stream.set_read_timeout(Some(WAIT_LIMIT)).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(to: &Forwarder, path: &str, headers: &str) -> String {
    let host = to.address();
    say(
        to,
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n")
            .as_bytes(),
    )
}

fn status(answer: &str) -> &str {
    answer.get(9..12).unwrap_or("")
}

fn assert_forced(answer: &str) {
    let head = answer
        .split("\r\n\r\n")
        .next()
        .unwrap()
        .to_ascii_lowercase();
    for line in [
        "content-security-policy: sandbox allow-scripts allow-forms allow-same-origin;",
        "x-robots-tag: noindex, nofollow",
        "referrer-policy: no-referrer",
        "cross-origin-opener-policy: same-origin",
        "cache-control: no-store",
        "x-content-type-options: nosniff",
    ] {
        assert!(head.contains(line), "{line} is missing in {head}");
    }
    assert!(!head.contains("x-robots-tag: all"), "{head}");
}

#[test]
fn preview_page_is_forwarded_with_the_security_headers_of_the_preview() {
    let guest = Guest::start(PAGE);
    let mut preview = open(
        Arc::clone(&guest) as Arc<dyn GuestConnector>,
        None,
        ForwarderLimits::default(),
    );
    let answer = get(
        &preview,
        "/a/b?c=%41",
        "Cookie: other=1\r\nX-Forwarded-Host: x\r\n",
    );
    assert_eq!(status(&answer), "200", "{answer}");
    assert!(
        answer.ends_with("hello") && !answer.contains("example.org"),
        "{answer}"
    );
    assert_forced(&answer);
    let requests = guest.last().to_ascii_lowercase();
    assert!(
        requests.starts_with("get /a/b?c=%41 http/1.1"),
        "{requests}"
    );
    assert!(
        requests.contains(&format!("x-codebox-origin: http://{}", preview.address())),
        "{requests}"
    );
    assert!(
        !requests.contains("other=1") && !requests.contains("x-forwarded"),
        "{requests}"
    );
    get(&preview, "/", "Cookie: other=1; login=1\r\n");
    assert!(
        guest.last().contains("login=1") && !guest.last().contains("other"),
        "{}",
        guest.last()
    );
    assert_eq!(
        preview.close(),
        Counts {
            served: 2,
            ..Counts::default()
        }
    );
}

#[test]
fn preview_requests_for_other_hosts_and_unsupported_requests_never_reach_the_guest() {
    let guest = Guest::start(PAGE);
    let mut preview = open(
        Arc::clone(&guest) as Arc<dyn GuestConnector>,
        None,
        ForwarderLimits::default(),
    );
    let here = preview.address();
    for (bytes, expected) in [
        (
            format!(
                "GET / HTTP/1.1\r\nHost: evil.example:{}\r\n\r\n",
                here.port()
            ),
            "421",
        ),
        (
            "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".to_owned(),
            "421",
        ),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), "400"),
        (
            format!("GET / HTTP/1.1\r\nHost: {here}\r\nHost: evil.example\r\n\r\n"),
            "400",
        ),
        (
            format!("GET http://evil.example/ HTTP/1.1\r\nHost: {here}\r\n\r\n"),
            "400",
        ),
        (
            format!("GET http://{here}/ HTTP/1.1\r\nHost: {here}\r\n\r\n"),
            "400",
        ),
        (
            format!("CONNECT 10.0.0.1:22 HTTP/1.1\r\nHost: {here}\r\n\r\n"),
            "501",
        ),
        (
            format!(
                "GET / HTTP/1.1\r\nHost: {here}\r\nUpgrade: websocket\r\nConnection: upgrade, close\r\n\r\n"
            ),
            "501",
        ),
        (format!("TRACE / HTTP/1.1\r\nHost: {here}\r\n\r\n"), "405"),
        (format!("OPTIONS * HTTP/1.1\r\nHost: {here}\r\n\r\n"), "400"),
        (
            format!("GET /sw.js HTTP/1.1\r\nHost: {here}\r\nService-Worker: script\r\n\r\n"),
            "403",
        ),
        (
            format!("POST / HTTP/1.1\r\nHost: {here}\r\nContent-Length: 99999999999\r\n\r\n"),
            "413",
        ),
    ] {
        let closing = bytes.replacen("\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1);
        let bytes = if bytes.contains("Connection:") {
            bytes
        } else {
            closing
        };
        let answer = say(&preview, bytes.as_bytes());
        assert_eq!(status(&answer), expected, "{bytes:?}: {answer}");
        assert_forced(&answer);
    }
    // A request with two Content-Length headers: the HTTP library refuses it before the guest is
    // contacted.
    let smuggled = format!(
        "POST / HTTP/1.1\r\nHost: {here}\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcdGET /x HTTP/1.1\r\n\r\n"
    );
    assert_eq!(status(&say(&preview, smuggled.as_bytes())), "400");
    assert_eq!(guest.count(), 0);
    // Control: the preview still serves an ordinary request.
    assert_eq!(status(&get(&preview, "/", "")), "200");
    assert_eq!(guest.count(), 1);
    assert_eq!(preview.close().refused, 12);
}

#[test]
fn preview_request_without_token_never_reaches_the_guest() {
    let guest = Guest::start(PAGE);
    let token = "abcdefghijklmnop";
    let preview = open(
        Arc::clone(&guest) as Arc<dyn GuestConnector>,
        Some(token),
        ForwarderLimits::default(),
    );
    let own = format!("codebox_preview_{}", preview.address().port());
    for (path, headers, expected) in [
        ("/", String::new(), "401"),
        ("/?preview_token=abcdefghijklmnoq", String::new(), "403"),
        ("/", format!("Cookie: {own}=abcdefghijklmnoq\r\n"), "401"),
        ("/", format!("Cookie: codebox_preview_1={token}\r\n"), "401"),
    ] {
        let answer = get(&preview, path, &headers);
        assert_eq!(status(&answer), expected, "{path} {headers}");
        assert!(!answer.contains(token));
        assert_forced(&answer);
    }
    assert_eq!(guest.count(), 0);
    let answer = get(&preview, &format!("/a?b=1&preview_token={token}"), "");
    assert_eq!(status(&answer), "303", "{answer}");
    let lower = answer.to_ascii_lowercase();
    assert!(
        lower.contains(&format!("location: http://{}/a?b=1\r\n", preview.address())),
        "{answer}"
    );
    assert!(lower.contains("httponly; samesite=lax"), "{answer}");
    assert_eq!(guest.count(), 0);
    let answer = get(&preview, "/a?b=1", &format!("Cookie: {own}={token}\r\n"));
    assert_eq!(status(&answer), "200");
    assert!(!guest.last().contains(token), "{}", guest.last());
}

#[test]
fn unreachable_guest_or_invalid_guest_response_yields_502() {
    let brief = ForwarderLimits {
        connect_timeout: Duration::from_millis(300),
        ..ForwarderLimits::default()
    };
    let preview = open(Arc::new(Closed), None, brief);
    let answer = get(&preview, "/", "");
    assert_eq!(status(&answer), "502");
    assert_forced(&answer);
    for (said, expected) in [
        (&b"nonsense\r\n\r\n"[..], "502"),
        (
            &b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"[..],
            "502",
        ),
        (
            &b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"[..],
            "502",
        ),
        (&b""[..], "502"),
    ] {
        let mut preview = open(Guest::start(said), None, ForwarderLimits::default());
        let answer = get(&preview, "/", "");
        assert_eq!(status(&answer), expected, "{said:?}: {answer}");
        assert_forced(&answer);
        assert_eq!(preview.close().failed, 1);
    }
}

#[test]
fn visitor_connections_are_bounded_and_slow_ones_time_out() {
    let slow = |head_timeout, connections, visitors| {
        let limits = ForwarderLimits {
            connections,
            head_timeout,
            ..ForwarderLimits::default()
        };
        let preview = open(Guest::start(PAGE), None, limits);
        let slow: Vec<TcpStream> = (0..visitors)
            .map(|_| {
                let mut stream = TcpStream::connect(preview.address()).unwrap();
                stream.write_all(b"GET / HTTP/1.1\r\n").unwrap();
                stream
            })
            .collect();
        (preview, slow)
    };
    let (preview, patient) = slow(10 * WAIT_LIMIT, 8, 30);
    soon("fewer than 22 visitors were turned away", || {
        preview.counts().turned_away >= 22
    });
    assert_ne!(status(&get(&preview, "/", "")), "200");
    assert_eq!(preview.counts().turned_away, 23);
    drop(patient);
    // Slow connections time out, which frees their connection permits.
    let (preview, timed_out) = slow(Duration::from_millis(300), 8, 8);
    soon("no connection permit was released", || {
        status(&get(&preview, "/", "")) == "200"
    });
    drop(timed_out);
}

#[test]
fn preview_port_is_free_after_the_preview_expires() {
    let guest = Guest::start(PAGE);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // Long enough for the control request to complete.
    let until = Instant::now() + Duration::from_secs(8);
    let preview = Forwarder::open(ForwarderConfig {
        logins: Logins::default(),
        listener,
        public: None,
        token: None,
        until,
        connector: guest,
        // No other timeout may end the held connection first.
        limits: ForwarderLimits {
            head_timeout: Duration::from_secs(600),
            ..ForwarderLimits::default()
        },
    })
    .unwrap();
    assert_eq!(status(&get(&preview, "/", "")), "200");
    // An open, silent connection must not keep the port in use.
    let mut held = TcpStream::connect(preview.address()).unwrap();
    let late = until + WAIT_LIMIT;
    while TcpListener::bind(preview.address()).is_err() {
        assert!(Instant::now() < late, "the port is not free");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Instant::now() >= until && preview.has_expired());
    assert_eq!(held.read(&mut [0; 8]).unwrap_or(0), 0);
}
