//! A server on the loopback that plays prepared answers, one per connection, and keeps what
//! it was asked.

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Longest that a server of a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// A piece of an answer.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Send(Vec<u8>),
    Pause(Duration),
    /// Nothing more, until the client goes away.
    Hang,
}

/// A whole answer; the connection is closed behind it.
pub(super) type Answer = Vec<Step>;

/// What a client asked.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub head: String,
    pub body: Value,
    pub at: Instant,
}

impl Asked {
    /// A header's value.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// A running server.
pub(super) struct Server {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// Plays the answers in order; the last one again and again.
    pub(super) fn play(answers: Vec<Answer>) -> Self {
        Self::play_over(answers, Some)
    }

    /// The same over TLS.
    pub(super) fn play_tls(answers: Vec<Answer>, config: Arc<ServerConfig>) -> Self {
        Self::play_over(answers, move |stream| {
            let session = ServerConnection::new(Arc::clone(&config)).ok()?;
            Some(StreamOwned::new(session, stream))
        })
    }

    fn play_over<S: Read + Write>(
        answers: Vec<Answer>,
        wrap: impl Fn(TcpStream) -> Option<S> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        let wrap = Arc::new(wrap);
        // Ends with the process: a test process is one binary that ends after its tests.
        thread::spawn(move || {
            let mut answers = answers.into_iter().peekable();
            let mut answer = Vec::new();
            for stream in listener.incoming() {
                if let Some(next) = answers.next() {
                    answer = next;
                }
                let stream = stream.unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                let (answer, kept) = (answer.clone(), Arc::clone(&kept));
                let wrap = Arc::clone(&wrap);
                thread::spawn(move || {
                    if let Some(stream) = wrap(stream) {
                        serve(stream, &answer, &kept);
                    }
                });
            }
        });
        Self { address, asked }
    }

    pub(super) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(mut stream: impl Read + Write, answer: &[Step], kept: &Mutex<Vec<Asked>>) {
    let Some(asked) = read(&mut stream) else {
        return;
    };
    kept.lock().unwrap().push(asked);
    for step in answer {
        match step {
            Step::Send(bytes) => {
                if stream.write_all(bytes).is_err() {
                    return;
                }
            }
            Step::Pause(time) => thread::sleep(*time),
            Step::Hang => {
                let _ = stream.read(&mut [0; 1]);
            }
        }
    }
}

fn read(stream: &mut impl Read) -> Option<Asked> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        let head_end = bytes.windows(4).position(|w| w == b"\r\n\r\n");
        if let Some(end) = head_end {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let asked = Asked {
                head,
                body: Value::Null,
                at: Instant::now(),
            };
            let length: usize = asked.header("content-length")?.parse().ok()?;
            if bytes.len() >= end + 4 + length {
                let body = serde_json::from_slice(&bytes[end + 4..]).ok()?;
                return Some(Asked { body, ..asked });
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Bytes to be sent as they are.
pub(super) fn raw(text: impl Into<Vec<u8>>) -> Step {
    Step::Send(text.into())
}

/// The head of a stream that ends with its connection.
pub(super) fn stream_head() -> Step {
    raw("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
}

/// A stream of these lines, each an event of its own.
pub(super) fn stream(events: &[&str]) -> Answer {
    let mut steps = vec![stream_head()];
    steps.extend(events.iter().map(|event| raw(format!("{event}\n\n"))));
    steps
}

/// An answer of a status with further header lines, each ended, and a body.
pub(super) fn status(status: u16, headers: &str, body: &str) -> Answer {
    vec![raw(format!(
        "HTTP/1.1 {status} X\r\n{headers}content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    ))]
}
