//! `GET /events` on the control socket, for HTTP clients.
//!
//! The server handles one request and then closes the connection. It serves no other path and no
//! other method, and sends no CORS header that would let a page of another origin read the events.

use super::events::{self, SseClient};
use super::handles::ControlHandles;
use super::lines::{Lines, READING, ReaderState, Replies};
use bytes::Bytes;
use http_body_util::{Channel, Either, Full};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io::Cursor;
use std::pin::pin;
use std::time::Duration;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc;
use tokio::time::timeout;
use wp_codebox_contracts::{EventProjection, EventsRequest, Follow, last_event_id};

/// Maximum number of header lines of a request.
const HEADERS: usize = 64;
/// Maximum length of a header line, in bytes.
const LINE: usize = 8 * 1024;
/// Time limit for reading the request line and the headers.
const HEAD_TIMEOUT: Duration = Duration::from_secs(3);
/// Accepted values of the `Host` header.
const HOSTS: [&str; 2] = ["sandbox", "localhost"];
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Passed to hyper in place of a request head that is too long or arrives too late: no HTTP method
/// begins with NUL, so hyper answers 400.
const BEYOND_BOUNDS: &[u8] = b"\0\r\n\r\n";

/// Response that refuses a request: HTTP status and text of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Refusal(StatusCode, &'static str);

const MALFORMED: Refusal = Refusal(StatusCode::BAD_REQUEST, "the request is not valid\n");
const PATH: Refusal = Refusal(StatusCode::NOT_FOUND, "the only path here is /events\n");
const METHOD: Refusal = Refusal(
    StatusCode::METHOD_NOT_ALLOWED,
    "events are read-only: use GET\n",
);
const HOST: Refusal = Refusal(
    StatusCode::MISDIRECTED_REQUEST,
    "set the Host header to sandbox or localhost\n",
);

type Body = Either<Full<Bytes>, Channel<Bytes>>;

/// Returns whether the first line of a connection is an HTTP request line and not a JSON document.
pub(super) fn is_request(line: &[u8]) -> bool {
    line.first().is_some_and(u8::is_ascii_uppercase)
}

/// Answers the request whose first line is `first`.
pub(super) async fn answer(
    first: &[u8],
    mut lines: Lines,
    replies: Replies,
    handles: &ControlHandles,
) {
    // A client that sends no complete head in time must not occupy a connection permit.
    let head = match timeout(HEAD_TIMEOUT, head(first, &mut lines)).await {
        Ok(Some(head)) => head,
        Ok(None) | Err(_) => BEYOND_BOUNDS.to_vec(),
    };
    serve(
        head,
        replies.into_half(),
        READING,
        |wanted, client| async move { events::server_sent(&wanted, client, handles).await },
    )
    .await;
}

/// Answers one request. `follow` sends the events, waits at most `reading` for the client to read
/// each event, and returns whether the client still reads.
async fn serve<F, R>(head: Vec<u8>, half: OwnedWriteHalf, reading: Duration, follow: F)
where
    F: FnOnce(EventsRequest, SseClient) -> R,
    R: Future<Output = ReaderState>,
{
    // hyper reads only the head from memory and writes its response to the socket.
    let stream = tokio::io::join(Cursor::new(head), half);
    let (asked, mut asking) = mpsc::channel(1);
    let service = service_fn(move |request: Request<_>| {
        let response = match parse(&request) {
            Ok(wanted) => {
                let (sender, body) = Channel::new(1);
                // The connection carries one request, so the channel has room for it.
                let _ = asked.try_send((wanted, SseClient::new(sender, reading)));
                events_response(body)
            }
            Err(refusal) => refuse(refusal),
        };
        std::future::ready(Ok::<_, Infallible>(response))
    });
    let mut connection = pin!(
        http1::Builder::new()
            .half_close(true)
            .keep_alive(false)
            .title_case_headers(true)
            .auto_date_header(false)
            .max_buf_size(HEADERS * LINE)
            .serve_connection(TokioIo::new(stream), service)
    );
    let events = async {
        match asking.recv().await {
            Some((wanted, client)) => follow(wanted, client).await,
            // The request was rejected. `Reading` lets hyper send the response before it closes the
            // connection.
            None => ReaderState::Reading,
        }
    };
    tokio::select! {
        _ = &mut connection => {}
        reader = events => if reader == ReaderState::Reading {
            let _ = timeout(reading, connection).await;
        }
    }
}

/// Returns the request line and the headers as one text; `None` if there are too many lines or a
/// line is too long.
async fn head(first: &[u8], lines: &mut Lines) -> Option<Vec<u8>> {
    let mut head = first.to_vec();
    for _ in 0..HEADERS {
        head.extend_from_slice(b"\n");
        match lines.next().await {
            Ok(Some(line)) if line.is_empty() || line == b"\r" => {
                head.extend_from_slice(b"\r\n");
                return Some(head);
            }
            Ok(Some(line)) if line.len() < LINE => head.extend_from_slice(&line),
            Ok(_) | Err(_) => return None,
        }
    }
    None
}

fn response(
    status: StatusCode,
    body: Body,
    headers: &[(HeaderName, &'static str)],
) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    for (name, value) in headers {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name.clone(), value);
    }
    response
}

fn events_response(body: Channel<Bytes>) -> Response<Body> {
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    response(StatusCode::OK, Either::Right(body), &headers)
}

fn refuse(Refusal(status, why): Refusal) -> Response<Body> {
    let headers = [
        (header::CONTENT_TYPE, "text/plain"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    let mut refused = response(status, Either::Left(why.into()), &headers);
    if status == StatusCode::METHOD_NOT_ALLOWED {
        refused
            .headers_mut()
            .insert(header::ALLOW, HeaderValue::from_static("GET"));
    }
    refused
}

/// Validates a request and returns which events it asks for.
fn parse<B>(request: &Request<B>) -> Result<EventsRequest, Refusal> {
    if request.version() != Version::HTTP_11 {
        return Err(MALFORMED);
    }
    let values = |name: HeaderName| {
        let found = request.headers().get_all(name).into_iter();
        found
            .map(|value| value.to_str().map_err(|_| MALFORMED))
            .collect::<Result<Vec<_>, _>>()
    };
    match values(header::HOST)?.as_slice() {
        [host] if HOSTS.contains(host) => {}
        [_] => return Err(HOST),
        _ => return Err(MALFORMED),
    }
    if request.method() != Method::GET {
        return Err(METHOD);
    }
    // A request body would be ignored, so a request with one is rejected.
    let has = |name| request.headers().contains_key(name);
    if has(header::CONTENT_LENGTH) || has(header::TRANSFER_ENCODING) {
        return Err(MALFORMED);
    }
    let target = request.uri();
    if target.authority().is_some() || target.path() != "/events" {
        return Err(PATH);
    }
    let query = target.query().unwrap_or_default();
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
    // `Last-Event-ID`, which a client sends when it reconnects, takes precedence over the `after`
    // parameter of the original URL.
    match values(LAST_EVENT_ID)?.as_slice() {
        [] => {}
        [header] => wanted.after = last_event_id(header).map_err(|_| MALFORMED)?,
        _ => return Err(MALFORMED),
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::super::events::EventSink as _;
    use super::*;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::UnixStream;
    use wp_codebox_contracts::SseFrame;

    fn read(line: &str, headers: &[(&str, &str)]) -> Result<EventsRequest, u16> {
        let (method, target) = line.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        parse(&request.body(()).unwrap()).map_err(|refusal| refusal.0.as_u16())
    }

    #[test]
    fn http_request_is_accepted_only_as_get_of_the_events_path() {
        let host = ("Host", "sandbox");
        let bus = read(
            "GET /events?projection=bus&after=3&follow=now",
            &[host, ("Last-Event-ID", "7")],
        );
        let wanted = EventsRequest {
            after: 7,
            projection: EventProjection::Bus,
            follow: Follow::Now,
        };
        assert_eq!(bus, Ok(wanted));
        assert_eq!(
            read("GET /events", &[("host", "localhost")]),
            Ok(EventsRequest::default())
        );
        for (line, status) in [
            ("POST /events", 405),
            ("HEAD /events", 405),
            ("GET /", 404),
            ("GET /events/", 404),
            ("GET http://sandbox/events", 404),
            ("GET /events?projection=other", 400),
            ("GET /events?x", 400),
            ("GET /events?after=-1", 400),
            ("OPTIONS *", 405),
        ] {
            assert_eq!(read(line, &[host]), Err(status), "{line}");
        }
        for (headers, status) in [
            (&[("Host", "example.org")][..], 421),
            (&[], 400),
            (&[host, host], 400),
            (&[host, ("Content-Length", "3")], 400),
            (&[host, ("Transfer-Encoding", "chunked")], 400),
            (&[host, ("Last-Event-ID", "x")], 400),
        ] {
            assert_eq!(read("GET /events", headers), Err(status), "{headers:?}");
        }
        assert!(is_request(b"GET / HTTP/1.1") && !is_request(b"{\"live\":1}"));
    }

    async fn answered(head: &[u8]) -> String {
        let (mut client, server) = UnixStream::pair().unwrap();
        let (_, half) = server.into_split();
        let follow = |_, mut client: SseClient| async move {
            for number in 1..=3 {
                client.send(&SseFrame::retry(number)).await;
            }
            client.reader()
        };
        serve(head.to_vec(), half, READING, follow).await;
        let mut text = String::new();
        client.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn event_stream_is_one_http_response_in_chunked_encoding() {
        let text = answered(b"GET /events HTTP/1.1\r\nHost: sandbox\r\n\r\n").await;
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let mut head = head.split("\r\n");
        assert_eq!(head.next(), Some("HTTP/1.1 200 OK"));
        for line in [
            "Content-Type: text/event-stream",
            "Cache-Control: no-store",
            "X-Content-Type-Options: nosniff",
            "Connection: close",
        ] {
            assert!(
                head.clone().any(|found| found.eq_ignore_ascii_case(line)),
                "{text}"
            );
        }
        let chunk = |number| format!("A\r\nretry: {number}\n\n\r\n");
        assert_eq!(
            body,
            format!("{}{}{}0\r\n\r\n", chunk(1), chunk(2), chunk(3))
        );
    }

    #[tokio::test]
    async fn malformed_and_http_1_0_requests_get_status_400() {
        for head in [
            BEYOND_BOUNDS,
            b"GET /events HTTP/1.0\r\nHost: sandbox\r\n\r\n",
            b"GET /events\r\nHost: sandbox\r\n\r\n",
            b"GET /events HTTP/1.1\r\nHost: sandbox\r\nbroken\r\n\r\n",
        ] {
            let text = answered(head).await;
            let status = text.split(' ').nth(1);
            assert_eq!(status, Some("400"), "{text}");
        }
        let text = answered(b"PUT /events HTTP/1.1\r\nHost: sandbox\r\n\r\n").await;
        assert!(
            text.contains("\r\nAllow: GET\r\n") && text.ends_with("use GET\n"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn http_client_that_does_not_read_events_is_disconnected() {
        let (_client, server) = UnixStream::pair().unwrap();
        let (_, half) = server.into_split();
        let head = b"GET /events HTTP/1.1\r\nHost: sandbox\r\n\r\n".to_vec();
        let follow = |_, mut client: SseClient| async move {
            while client.reader() == ReaderState::Reading {
                client.send(&SseFrame::keep_alive()).await;
            }
            client.reader()
        };
        serve(head, half, Duration::from_millis(100), follow).await;
    }
}
