//! Strict parser of request heads: a head it accepts has only one interpretation.
//!
//! A server may read malformed input differently than this parser, so the parser accepts no
//! malformed input: only CRLF line ends, no folded lines, no repeated framing headers, no
//! Content-Length beside Transfer-Encoding, no control bytes, and only upper-case methods.

use super::denial::Reason;
use bytes::{Bytes, BytesMut};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use wp_codebox_policy::is_method;

/// Maximum number of headers in one request.
const MAX_HEADERS: usize = 100;

/// Headers that may appear only once: of a repeated header, the server could use another value than
/// the one that the bridge checked.
const SINGLE: &[&str] = &[
    "host",
    "content-length",
    "transfer-encoding",
    "content-type",
    "authorization",
    "expect",
];

/// A request head (request line and headers) that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    /// Method in upper case.
    pub method: String,
    /// Request target as sent; visible ASCII only.
    pub target: String,
    /// `Host` header as sent.
    pub host: Option<String>,
    /// Header names in lower case.
    pub names: Vec<String>,
    /// Whether a body follows the head, and its declared length.
    pub body: Framing,
    /// Length of the head in bytes, including the empty line.
    pub length: usize,
}

/// How the end of a request's body is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// The request has no body.
    Empty,
    /// The body has this length in bytes (Content-Length).
    Length(u64),
    /// The body is sent in chunks (Transfer-Encoding).
    Chunked,
}

/// What the first bytes of a guest's connection contain.
pub(super) enum Opening {
    /// A request head, and all bytes read so far, which begin with that head.
    Request(Head, Bytes),
    /// The client closed the connection before it sent a byte.
    Nothing,
}

/// Reads one request head from a connection, within a time limit and a size limit.
pub(super) async fn read_head(
    stream: &mut (impl AsyncRead + Unpin),
    most: usize,
    time: Duration,
) -> Result<Opening, Reason> {
    let reading = async {
        let mut bytes = BytesMut::with_capacity(2048);
        let mut scan = Scan::default();
        loop {
            let before = bytes.len();
            let read = stream.read_buf(&mut bytes).await;
            match read {
                Ok(0) | Err(_) if before == 0 => return Ok(Opening::Nothing),
                Ok(0) | Err(_) => return Err(Reason::ClientGone),
                Ok(_) => {}
            }
            match scan.end(&bytes)? {
                Some(end) if end > most => return Err(Reason::HeadTooLarge),
                Some(end) => {
                    let head = parse(&bytes[..end])?;
                    return Ok(Opening::Request(head, bytes.freeze()));
                }
                None if bytes.len() > most => return Err(Reason::HeadTooLarge),
                None => {}
            }
        }
    };
    tokio::time::timeout(time, reading)
        .await
        .unwrap_or(Err(Reason::HeadTimeout))
}

/// Incremental search for the end of a request head: it continues as bytes arrive and reads each
/// byte once.
#[derive(Default)]
struct Scan {
    at: usize,
    line_start: usize,
}

impl Scan {
    /// Returns the offset behind the head once the head is complete. Fails at the first byte that
    /// no head can contain, so that a client of another protocol is refused before the timeout.
    fn end(&mut self, bytes: &[u8]) -> Result<Option<usize>, Reason> {
        while let Some(&byte) = bytes.get(self.at) {
            let previous = self.at.checked_sub(1).map(|before| bytes[before]);
            let begins = self.at == self.line_start;
            self.at += 1;
            if previous == Some(b'\r') && byte != b'\n' {
                return Err(Reason::MalformedRequest);
            }
            match byte {
                b'\n' if previous != Some(b'\r') => return Err(Reason::MalformedRequest),
                b'\n' if self.at - self.line_start == 2 => {
                    // An empty line before the request line is refused, because some servers skip
                    // it.
                    return if self.line_start == 0 {
                        Err(Reason::MalformedRequest)
                    } else {
                        Ok(Some(self.at))
                    };
                }
                b'\n' => self.line_start = self.at,
                // A line that starts with a blank is a folded continuation of the previous line.
                b' ' | b'\t' if begins => return Err(Reason::MalformedRequest),
                b'\r' | b'\t' => {}
                0..=0x1f | 0x7f => return Err(Reason::MalformedRequest),
                _ => {}
            }
        }
        Ok(None)
    }
}

/// Parses a complete request head, including the empty line at its end.
pub(super) fn parse(bytes: &[u8]) -> Result<Head, Reason> {
    let bad = Reason::MalformedRequest;
    let mut slots = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut slots);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(end)) if end == bytes.len() => {}
        Err(httparse::Error::TooManyHeaders) => return Err(Reason::HeadTooLarge),
        Ok(_) | Err(_) => return Err(bad),
    }
    let (Some(method), Some(target), Some(version)) =
        (request.method, request.path, request.version)
    else {
        return Err(bad);
    };
    if !is_method(method) || method == "TRACE" {
        return Err(Reason::MethodInvalid);
    }
    if !target.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(bad);
    }
    let mut names: Vec<String> = Vec::with_capacity(request.headers.len());
    let mut host = None;
    let mut length = None;
    let mut chunked = false;
    for header in request.headers.iter() {
        let name = header.name.to_ascii_lowercase();
        if SINGLE.contains(&name.as_str()) && names.contains(&name) {
            return Err(bad);
        }
        match name.as_str() {
            "host" => host = Some(text(header.value).ok_or(bad)?.to_owned()),
            "content-length" => length = Some(length_of(header.value).ok_or(bad)?),
            "transfer-encoding" => {
                if !header.value.eq_ignore_ascii_case(b"chunked") {
                    return Err(bad);
                }
                chunked = true;
            }
            _ => {}
        }
        names.push(name);
    }
    let current = version == 1;
    if (current && host.is_none()) || (chunked && (length.is_some() || !current)) {
        return Err(bad);
    }
    Ok(Head {
        method: method.to_owned(),
        target: target.to_owned(),
        host,
        names,
        body: match (chunked, length) {
            (true, _) => Framing::Chunked,
            (false, Some(bytes)) => Framing::Length(bytes),
            (false, None) => Framing::Empty,
        },
        length: bytes.len(),
    })
}

fn text(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value).ok().filter(|v| v.is_ascii())
}

fn length_of(value: &[u8]) -> Option<u64> {
    let text = text(value)?;
    let plain = (1..=18).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Head, Reason> {
        match Scan::default().end(text.as_bytes())? {
            Some(end) => parse(&text.as_bytes()[..end]),
            None => panic!("no end: {text:?}"),
        }
    }

    #[test]
    fn http_request_head_is_parsed_to_method_target_host_and_body_framing() {
        let head = read(
            "GET http://a.example/x?y HTTP/1.1\r\nHost: a.example\r\nX-Name: v\u{e9}\r\n\r\nrest",
        )
        .unwrap();
        assert_eq!(
            (head.method.as_str(), head.target.as_str()),
            ("GET", "http://a.example/x?y")
        );
        assert_eq!(head.body, Framing::Empty);
        let head = read("POST /https/a.example/ HTTP/1.1\r\nHOST: x\r\nContent-Length: 12\r\n\r\n")
            .unwrap();
        assert_eq!(
            (head.body, head.host.as_deref()),
            (Framing::Length(12), Some("x"))
        );
        let head =
            read("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n").unwrap();
        assert_eq!(head.body, Framing::Chunked);
        assert!(
            read("GET http://a.example/ HTTP/1.0\r\n\r\n").is_ok(),
            "1.0 needs no Host"
        );
    }

    #[test]
    fn ambiguous_http_request_heads_are_refused() {
        let start = "POST / HTTP/1.1\r\nHost: a.example\r\n";
        for rest in [
            "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
            "Content-Length: 3\r\nContent-Length: 3\r\n\r\n",
            "Content-Length: 3\r\ncontent-length: 4\r\n\r\n",
            "Content-Length: 3, 3\r\n\r\n",
            "Content-Length: +3\r\n\r\n",
            "Content-Length: 0x3\r\n\r\n",
            "Content-Length: -1\r\n\r\n",
            "Content-Length:\r\n\r\n",
            "Content-Length: 9999999999999999999\r\n\r\n",
            "Transfer-Encoding: chunked, identity\r\n\r\n",
            "Transfer-Encoding: identity\r\n\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "Transfer-Encoding : chunked\r\n\r\n",
            "Host: b.example\r\n\r\n",
            "X: a\r\n b\r\n\r\n",
            "X: a\r\n\tb\r\n\r\n",
            "X: a\nY: b\r\n\r\n",
            "X: a\rY: b\r\n\r\n",
            "X: a\r\r\n\r\n",
            "X: a\0b\r\n\r\n",
            "X: a\u{7f}\r\n\r\n",
            ": a\r\n\r\n",
            "X Y: a\r\n\r\n",
            "no colon\r\n\r\n",
        ] {
            let text = format!("{start}{rest}");
            let answer = Scan::default()
                .end(text.as_bytes())
                .and_then(|end| parse(&text.as_bytes()[..end.unwrap_or(text.len())]));
            assert_eq!(answer, Err(Reason::MalformedRequest), "{rest:?}");
        }
        for text in [
            "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            " GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
            "GET /\r\nHost: a\r\n\r\n",
            "GET /caf\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n",
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            "\u{16}\u{3}\u{1}",
        ] {
            let answer = Scan::default()
                .end(text.as_bytes())
                .and_then(|end| parse(&text.as_bytes()[..end.unwrap_or(text.len())]));
            assert_eq!(answer, Err(Reason::MalformedRequest), "{text:?}");
        }
        for method in ["get", "TRACE", "G\"T"] {
            let text = format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n");
            assert!(read(&text).is_err(), "{method}");
        }
        let many = format!(
            "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n",
            "X: y\r\n".repeat(100)
        );
        assert_eq!(read(&many), Err(Reason::HeadTooLarge));
    }

    #[tokio::test]
    async fn request_head_size_and_read_time_are_bounded_and_an_empty_connection_is_no_error() {
        let (mut client, mut server) = tokio::io::duplex(1024 * 1024);
        use tokio::io::AsyncWriteExt;
        client.write_all(&[b'A'; 5000]).await.unwrap();
        let answer = read_head(&mut server, 4096, Duration::from_secs(5)).await;
        assert!(matches!(answer, Err(Reason::HeadTooLarge)));
        let (mut client, mut server) = tokio::io::duplex(1024);
        client.write_all(b"GET / HTTP/1.1\r\nHost:").await.unwrap();
        let answer = read_head(&mut server, 4096, Duration::from_millis(50)).await;
        assert!(matches!(answer, Err(Reason::HeadTimeout)));
        drop(client);
        let answer = read_head(&mut server, 4096, Duration::from_secs(5)).await;
        assert!(matches!(answer, Ok(Opening::Nothing)));
    }
}
