//! Loopback server that plays prepared responses, one per connection, and records requests.

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time that the test server waits for a client.
const WAIT_LIMIT: Duration = Duration::from_secs(600);

/// One action of the test server in response to a request.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Send(Vec<u8>),
    Pause(Duration),
    /// Sends nothing more until the client disconnects.
    Hang,
}

/// Whole response: actions in order; the server closes the connection after the last one.
pub(super) type Answer = Vec<Step>;

/// Request that the test server received.
#[derive(Debug, Clone)]
pub(super) struct RecordedRequest {
    pub head: String,
    pub body: Value,
    pub at: Instant,
}

impl RecordedRequest {
    /// Returns the value of the request header with this name.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// A running test server.
pub(super) struct Server {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<RecordedRequest>>>,
}

impl Server {
    /// Starts a server that sends one response per connection, in order; the last one repeats.
    pub(super) fn play(answers: Vec<Answer>) -> Self {
        Self::play_over(answers, Some)
    }

    /// Starts a TLS server that sends one response per connection, in order; the last one repeats.
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
        // The thread ends with the test process.
        thread::spawn(move || {
            let mut answers = answers.into_iter().peekable();
            let mut answer = Vec::new();
            for stream in listener.incoming() {
                if let Some(next) = answers.next() {
                    answer = next;
                }
                let stream = stream.unwrap();
                stream.set_read_timeout(Some(WAIT_LIMIT)).unwrap();
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

    pub(super) fn asked(&self) -> Vec<RecordedRequest> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(mut stream: impl Read + Write, answer: &[Step], kept: &Mutex<Vec<RecordedRequest>>) {
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

fn read(stream: &mut impl Read) -> Option<RecordedRequest> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        let head_end = bytes.windows(4).position(|w| w == b"\r\n\r\n");
        if let Some(end) = head_end {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let asked = RecordedRequest {
                head,
                body: Value::Null,
                at: Instant::now(),
            };
            let length: usize = asked.header("content-length")?.parse().ok()?;
            if bytes.len() >= end + 4 + length {
                let body = serde_json::from_slice(&bytes[end + 4..]).ok()?;
                return Some(RecordedRequest { body, ..asked });
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Returns an action that sends bytes unchanged.
pub(super) fn raw(text: impl Into<Vec<u8>>) -> Step {
    Step::Send(text.into())
}

/// Returns the HTTP head of a streamed response without a length; the response ends when the server
/// closes the connection.
pub(super) fn stream_head() -> Step {
    raw("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
}

/// Returns a streamed response with one event for each of these texts.
pub(super) fn stream(events: &[&str]) -> Answer {
    let mut steps = vec![stream_head()];
    steps.extend(events.iter().map(|event| raw(format!("{event}\n\n"))));
    steps
}

/// Returns a response with status, further header lines (each with its line end) and body.
pub(super) fn status(status: u16, headers: &str, body: &str) -> Answer {
    vec![raw(format!(
        "HTTP/1.1 {status} X\r\n{headers}content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    ))]
}
