//! A small HTTP/1.1 client over a unix socket, with full control of the bytes.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest time for one read of a test.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e}: {:?}", String::from_utf8_lossy(&self.body)))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the answer without `Date`, so that two answers can be compared.
    pub fn comparable(&self) -> (u16, Vec<(String, String)>, Vec<u8>) {
        let mut headers = self.headers.clone();
        headers.retain(|(name, _)| !name.eq_ignore_ascii_case("date"));
        (self.status, headers, self.body.clone())
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    /// Checks that the answer is an error document (`application/problem+json`) with this code.
    #[track_caller]
    pub fn problem(self, status: u16, code: &str) -> Self {
        let answer = self.expect(status);
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json")
        );
        let document = answer.json();
        assert_eq!(document["code"], code, "{document}");
        assert_eq!(document["status"], status);
        assert_eq!(document["type"], format!("urn:wp-codebox:error:{code}"));
        answer
    }
}

/// A client of one server, with or without a token.
#[derive(Debug, Clone)]
pub struct Client {
    pub socket: PathBuf,
    pub token: Option<String>,
}

impl Client {
    pub fn new(socket: &Path) -> Self {
        Self {
            socket: socket.to_owned(),
            token: None,
        }
    }

    pub fn with(&self, token: &str) -> Self {
        Self {
            token: Some(token.to_owned()),
            ..self.clone()
        }
    }

    pub fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn head(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nhost: service\r\nconnection: close\r\n");
        if let Some(token) = &self.token {
            head.push_str(&format!("authorization: Bearer {token}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head
    }

    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut stream = self.connect();
        let head = self.head(method, path, headers);
        let length = body.len();
        stream
            .write_all(format!("{head}content-length: {length}\r\n\r\n").as_bytes())
            .unwrap();
        // The server may answer and close before it read a body that it refuses.
        let _ = stream.write_all(body);
        read(stream).expect("an answer")
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }

    pub fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], b"")
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_with(path, &[], body)
    }

    pub fn post_with(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let mut all = vec![("content-type", "application/json")];
        all.extend_from_slice(headers);
        self.send("POST", path, &all, body.to_string().as_bytes())
    }

    /// Sends raw bytes and returns the answer; `None` if the server closes without one.
    pub fn raw(&self, bytes: &[u8]) -> Option<Answer> {
        let mut stream = self.connect();
        let _ = stream.write_all(bytes);
        read(stream)
    }

    /// Opens a stream and returns its lines after the head.
    pub fn stream(&self, path: &str, headers: &[(&str, &str)]) -> Lines {
        let mut stream = self.connect();
        let head = self.head("GET", path, headers);
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let (status, _) = read_head(&mut reader).unwrap();
        assert_eq!(status, 200);
        Lines {
            reader,
            pending: String::new(),
        }
    }

    /// Sends a request whose answer is a stream; the error is another status than 200.
    pub fn post_stream(&self, path: &str, body: &Value) -> Result<Lines, u16> {
        let (mut stream, body) = (self.connect(), body.to_string());
        let json = ("content-type", "application/json");
        let length = ("content-length", &*body.len().to_string());
        let head = self.head("POST", path, &[json, length]);
        stream
            .write_all(format!("{head}\r\n{body}").as_bytes())
            .unwrap();
        let mut reader = BufReader::new(stream);
        match read_head(&mut reader).unwrap() {
            (200, _) => Ok(Lines {
                reader,
                pending: String::new(),
            }),
            (status, _) => Err(status),
        }
    }

    /// Creates a sandbox of a profile and waits until it is ready; returns its id.
    pub fn ready(&self, profile: &str) -> String {
        let body = serde_json::json!({"profile": profile});
        let answer = self.post_with("/v1/sandboxes", &[("prefer", "wait=60")], &body);
        let document = answer.expect(201).json();
        assert_eq!(document["state"], "ready", "{document}");
        document["id"].as_str().unwrap().to_owned()
    }
}

/// Lines of a chunked stream.
pub struct Lines {
    reader: BufReader<UnixStream>,
    pending: String,
}

impl Lines {
    /// Returns the next line; `None` at the end.
    pub fn line(&mut self) -> Option<String> {
        loop {
            if let Some((line, rest)) = self.pending.split_once('\n') {
                let line = line.to_owned();
                self.pending = rest.to_owned();
                return Some(line);
            }
            let chunk = read_chunk(&mut self.reader)?;
            self.pending.push_str(&String::from_utf8(chunk).unwrap());
        }
    }

    /// Returns id and document of the next event; `None` at the end of the stream.
    pub fn event(&mut self) -> Option<(u64, Value)> {
        let (mut id, mut data) = (None, None);
        loop {
            let line = self.line()?;
            if let Some(text) = line.strip_prefix("id: ") {
                id = text.parse().ok();
            } else if let Some(text) = line.strip_prefix("data: ") {
                data = serde_json::from_str(text).ok();
            } else if line.is_empty()
                && let (Some(id), Some(data)) = (id, data.take())
            {
                return Some((id, data));
            }
        }
    }
}

type Head = (u16, Vec<(String, String)>);

fn read_head(reader: &mut impl BufRead) -> Option<Head> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(": ") {
            None => return Some((status, headers)),
            Some((name, value)) => headers.push((name.to_owned(), value.to_owned())),
        }
    }
}

fn read_chunk(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut size = String::new();
    reader.read_line(&mut size).ok()?;
    let size = usize::from_str_radix(size.trim(), 16).ok()?;
    let mut chunk = vec![0; size + 2];
    reader.read_exact(&mut chunk).ok()?;
    chunk.truncate(size);
    (size > 0).then_some(chunk)
}

pub fn read(stream: UnixStream) -> Option<Answer> {
    let mut reader = BufReader::new(stream);
    let (status, headers) = read_head(&mut reader)?;
    let answer = Answer {
        status,
        headers,
        body: Vec::new(),
    };
    let mut body = Vec::new();
    if answer.header("transfer-encoding") == Some("chunked") {
        while let Some(chunk) = read_chunk(&mut reader) {
            body.extend_from_slice(&chunk);
        }
    } else {
        let length = answer.header("content-length").and_then(|n| n.parse().ok());
        let mut limited = reader.take(length.unwrap_or(u64::MAX));
        limited.read_to_end(&mut body).ok()?;
    }
    Some(Answer { body, ..answer })
}
