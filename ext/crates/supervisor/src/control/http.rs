//! `GET /events` on the control socket, for clients that speak nothing but HTTP.
//!
//! One request, one answer, then the connection is closed. There is nothing else here: no
//! other path, no other method, no header that would let a page of another origin read it.

use super::lines::{Lines, Replies};
use super::{ControlHandles, events};
use std::time::Duration;
use wp_codebox_contracts::{EventProjection, EventsRequest, Follow, last_event_id};

/// Most lines of a head.
const HEADERS: usize = 64;
/// Longest line of a head.
const LINE: usize = 8 * 1024;
/// How long a head may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// Names by which the socket may be called.
const HOSTS: [&str; 2] = ["sandbox", "localhost"];

/// A status and what it means here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Refusal(u16, &'static str, &'static str);

const MALFORMED: Refusal = Refusal(
    400,
    "Bad Request",
    "this is no request that is understood here",
);
const PATH: Refusal = Refusal(404, "Not Found", "there is nothing here but /events");
const METHOD: Refusal = Refusal(
    405,
    "Method Not Allowed",
    "events can be read only: use GET",
);
const HOST: Refusal = Refusal(421, "Misdirected Request", "this socket is called sandbox");

/// Whether a first line is the beginning of an HTTP request rather than a document.
pub(super) fn is_request(line: &[u8]) -> bool {
    line.first().is_some_and(u8::is_ascii_uppercase)
}

/// Answers the request that begins with `first`.
pub(super) async fn answer(
    first: &[u8],
    mut lines: Lines,
    mut replies: Replies,
    handles: &ControlHandles,
) {
    // Nobody who says nothing keeps a place.
    let head = match tokio::time::timeout(PATIENCE, head(first, &mut lines)).await {
        Ok(Some(head)) => head,
        Ok(None) | Err(_) => return refuse(&mut replies, MALFORMED).await,
    };
    match parse(&head) {
        Ok(wanted) => {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n";
            replies.bytes(head.as_bytes()).await;
            events::server_sent(&wanted, &mut replies, handles).await;
        }
        Err(refusal) => refuse(&mut replies, refusal).await,
    }
}

/// All lines before the empty one; none when there are too many, or too long ones.
async fn head(first: &[u8], lines: &mut Lines) -> Option<Vec<Vec<u8>>> {
    let mut head = vec![first.to_vec()];
    loop {
        match lines.next().await {
            Ok(Some(line)) if line.is_empty() || line == b"\r" => return Some(head),
            Ok(Some(line)) if head.len() < HEADERS && line.len() < LINE => head.push(line),
            Ok(_) | Err(_) => return None,
        }
    }
}

async fn refuse(replies: &mut Replies, Refusal(status, reason, why): Refusal) {
    let allow = if status == 405 { "Allow: GET\r\n" } else { "" };
    let text = format!(
        "HTTP/1.1 {status} {reason}\r\n{allow}Content-Type: text/plain\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n{why}\n",
        why.len() + 1
    );
    replies.bytes(text.as_bytes()).await;
}

/// Reads a head, one line each.
fn parse(head: &[Vec<u8>]) -> Result<EventsRequest, Refusal> {
    let mut bytes = Vec::new();
    for line in head {
        bytes.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    let mut slots = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut slots);
    match request.parse(&bytes) {
        Ok(httparse::Status::Complete(end)) if end == bytes.len() => {}
        Ok(_) | Err(_) => return Err(MALFORMED),
    }
    let (Some(method), Some(target), Some(1)) = (request.method, request.path, request.version)
    else {
        return Err(MALFORMED);
    };
    let values = |name: &str| {
        let found = request
            .headers
            .iter()
            .filter(|h| h.name.eq_ignore_ascii_case(name));
        found
            .map(|h| std::str::from_utf8(h.value).map_err(|_| MALFORMED))
            .collect::<Result<Vec<_>, _>>()
    };
    match values("host")?.as_slice() {
        [host] if HOSTS.contains(host) => {}
        [_] => return Err(HOST),
        _ => return Err(MALFORMED),
    }
    if method != "GET" {
        return Err(METHOD);
    }
    // A body would be read as nothing, and be nothing that was asked for.
    if !values("content-length")?.is_empty() || !values("transfer-encoding")?.is_empty() {
        return Err(MALFORMED);
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if path != "/events" {
        return Err(PATH);
    }
    let mut wanted = EventsRequest::default();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("projection", "journal")) => wanted.projection = EventProjection::Journal,
            Some(("projection", "bus")) => wanted.projection = EventProjection::Bus,
            Some(("follow", "end")) => wanted.follow = Follow::End,
            Some(("follow", "now")) => wanted.follow = Follow::Now,
            Some(("after", number)) => {
                wanted.after = last_event_id(number).map_err(|_| MALFORMED)?;
            }
            _ => return Err(MALFORMED),
        }
    }
    // Where a client says that it was wins over where it once began.
    match values("last-event-id")?.as_slice() {
        [] => {}
        [header] => wanted.after = last_event_id(header).map_err(|_| MALFORMED)?,
        _ => return Err(MALFORMED),
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<EventsRequest, u16> {
        let lines: Vec<Vec<u8>> = text.lines().map(|l| l.as_bytes().to_vec()).collect();
        parse(&lines).map_err(|refusal| refusal.0)
    }

    #[test]
    fn only_events_are_here() {
        let host = "\nHost: sandbox";
        let bus = read(&format!(
            "GET /events?projection=bus&after=3&follow=now HTTP/1.1{host}\nLast-Event-ID: 7"
        ))
        .unwrap();
        let wanted = EventsRequest {
            after: 7,
            projection: EventProjection::Bus,
            follow: Follow::Now,
        };
        assert_eq!(bus, wanted);
        assert_eq!(
            read("GET /events HTTP/1.1\r\nhost: localhost\r").unwrap(),
            EventsRequest::default()
        );
        for (line, status) in [
            ("POST /events HTTP/1.1", 405),
            ("HEAD /events HTTP/1.1", 405),
            ("GET / HTTP/1.1", 404),
            ("GET /events/ HTTP/1.1", 404),
            ("GET /events?projection=other HTTP/1.1", 400),
            ("GET /events?x HTTP/1.1", 400),
            ("GET /events?after=-1 HTTP/1.1", 400),
            ("GET /events HTTP/1.0", 400),
            ("GET /events", 400),
            ("OPTIONS * HTTP/1.1", 405),
        ] {
            assert_eq!(read(&format!("{line}{host}")), Err(status), "{line}");
        }
        for (headers, status) in [
            ("Host: example.org", 421),
            ("", 400),
            ("Host: sandbox\nHost: sandbox", 400),
            ("Host: sandbox\nContent-Length: 3", 400),
            ("Host: sandbox\nTransfer-Encoding: chunked", 400),
            ("Host: sandbox\nLast-Event-ID: x", 400),
            ("Host: sandbox\nbroken", 400),
        ] {
            let text = format!("GET /events HTTP/1.1\n{headers}");
            assert_eq!(read(text.trim_end()), Err(status), "{headers}");
        }
        assert!(is_request(b"GET / HTTP/1.1") && !is_request(b"{\"live\":1}"));
    }
}
