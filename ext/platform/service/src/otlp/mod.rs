//! Spans of requests and of the life of sandboxes, exported by OTLP over HTTP with JSON bodies
//! (opentelemetry.io, "OTLP/HTTP"). Off unless the operator names a collector.
//!
//! A span has the operation, times, the status, and ids. It never has a body, a header, a query, a
//! path of a file, or a token. Spans wait in a bounded queue; when the collector is slower, new ones
//! are dropped and counted.

mod document;
mod export;

pub(crate) use export::run;

use crate::auth::random;
use axum::http::HeaderMap;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Maximum number of spans that wait for the exporter.
const QUEUE: usize = 4096;

/// Address of a collector: its base URL, without the path `/v1/traces`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpEndpoint(String);

impl OtlpEndpoint {
    /// Reads `http://HOST:PORT` or `https://HOST:PORT`, with or without a path.
    ///
    /// # Errors
    /// `wp_codebox_input_invalid`. The message does not show the address, which may have a password.
    pub fn parse(text: &str) -> Result<Self, ErrorBody> {
        let base = text.trim_end_matches('/');
        let rest = base
            .strip_prefix("http://")
            .or_else(|| base.strip_prefix("https://"));
        let fits = rest.is_some_and(|rest| {
            !rest.is_empty() && !rest.starts_with('/') && !rest.contains(['@', '?', '#', ' '])
        });
        match fits {
            true => Ok(Self(base.to_owned())),
            false => Err(ErrorBody::new(
                ErrorCode::InputInvalid,
                "the address of the collector must be http://HOST:PORT or https://HOST:PORT, without user, query and fragment",
            )),
        }
    }

    fn traces(&self) -> String {
        format!("{}/v1/traces", self.0)
    }
}

/// Kind of a span, as OTLP numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Work that the server does on its own.
    Internal = 1,
    /// An answered request.
    Server = 2,
}

/// Whether the work of a span succeeded, as OTLP numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Unset = 0,
    Error = 2,
}

/// One finished piece of work.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub parent: Parent,
    pub name: &'static str,
    pub kind: Kind,
    pub began: SystemTime,
    pub status: Status,
    /// Text attributes, named by OpenTelemetry's conventions.
    pub texts: Vec<(&'static str, String)>,
    pub numbers: Vec<(&'static str, i64)>,
}

/// Trace to which a span belongs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Parent {
    /// No parent: the span begins a trace.
    #[default]
    None,
    /// The span of the caller, from the header `traceparent`.
    Remote { trace: [u8; 16], span: [u8; 8] },
}

impl Parent {
    /// Reads `traceparent` (W3C Trace Context, version 00). A header that is not valid begins a new
    /// trace, as the specification says.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let text = headers.get("traceparent").and_then(|v| v.to_str().ok());
        text.and_then(Self::read).unwrap_or_default()
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace) = (parts.next()?, parts.next()?);
        let (span, flags) = (parts.next()?, parts.next()?);
        if version != "00" || flags.len() != 2 || parts.next().is_some() {
            return None;
        }
        let (trace, span) = (bytes::<16>(trace)?, bytes::<8>(span)?);
        let zero = trace.iter().all(|byte| *byte == 0) || span.iter().all(|byte| *byte == 0);
        (!zero).then_some(Self::Remote { trace, span })
    }
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != 2 * N || !text.bytes().all(lower) {
        return None;
    }
    let mut found = [0; N];
    for (at, byte) in found.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(found)
}

/// A span with its ids and its end.
#[derive(Debug, Clone)]
struct Finished {
    span: Span,
    trace: [u8; 16],
    id: [u8; 8],
    ended: SystemTime,
}

/// Sends finished spans to the queue of the exporter; `None` without a collector.
#[derive(Debug)]
pub(crate) struct Tracer(Option<Sender<Finished>>);

/// The other end of the queue, for the exporter.
pub(crate) struct Queue {
    receiver: Receiver<Finished>,
    endpoint: OtlpEndpoint,
}

impl Tracer {
    /// Returns the tracer, and the queue for [`run`] if there is a collector.
    pub(crate) fn new(endpoint: Option<OtlpEndpoint>) -> (Self, Option<Queue>) {
        let Some(endpoint) = endpoint else {
            return (Self(None), None);
        };
        let (sender, receiver) = channel(QUEUE);
        (Self(Some(sender)), Some(Queue { receiver, endpoint }))
    }

    /// Returns whether spans are exported.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Ends a span now. Returns false if it was dropped, for example because the queue is full.
    pub(crate) fn end(&self, span: Span) -> bool {
        let Some(sender) = &self.0 else { return true };
        let (Ok(fresh), Ok(id)) = (random::<16>(), random::<8>()) else {
            return false;
        };
        let trace = match &span.parent {
            Parent::None => fresh,
            Parent::Remote { trace, .. } => *trace,
        };
        let finished = Finished {
            trace,
            id,
            ended: SystemTime::now(),
            span,
        };
        sender.try_send(finished).is_ok()
    }
}

/// Returns a time as the text of nanoseconds since 1970, the form in OTLP's JSON.
fn nanoseconds(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traceparent_of_version_00_is_the_parent_and_every_other_text_begins_a_trace() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", text.parse().unwrap());
            Parent::of(&headers)
        };
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        let Parent::Remote { trace: t, span: s } = read(&format!("00-{trace}-{span}-01")) else {
            panic!("not read");
        };
        assert_eq!((t[0], t[15], s[0], s[7]), (0x0a, 0x9c, 0xb7, 0x31));
        let zero = "0".repeat(32);
        for wrong in [
            format!("ff-{trace}-{span}-01"),
            format!("00-{zero}-{span}-01"),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{trace}-{span}"),
            format!("00-{trace}-{span}-01-x"),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-{span}-{trace}-01"),
            "é".to_owned(),
        ] {
            assert_eq!(read(&wrong), Parent::None, "{wrong}");
        }
        assert_eq!(Parent::of(&HeaderMap::new()), Parent::None);
    }

    #[test]
    fn collector_address_is_a_base_url_and_parse_errors_do_not_show_it() {
        let traces = |text: &str| OtlpEndpoint::parse(text).unwrap().traces();
        assert_eq!(
            traces("http://127.0.0.1:4318"),
            "http://127.0.0.1:4318/v1/traces"
        );
        assert_eq!(
            traces("https://c.example/x/"),
            "https://c.example/x/v1/traces"
        );
        for wrong in [
            "",
            "127.0.0.1:4318",
            "ftp://secret",
            "http://",
            "http://u:secret@h",
            "http://h?secret",
        ] {
            let error = OtlpEndpoint::parse(wrong).unwrap_err();
            assert!(!error.message.contains("secret"), "{error}");
        }
    }

    #[test]
    fn span_is_dropped_when_the_queue_is_full_and_ignored_without_a_collector() {
        let span = || Span {
            parent: Parent::None,
            name: "getSandbox",
            kind: Kind::Server,
            began: SystemTime::now(),
            status: Status::Unset,
            texts: Vec::new(),
            numbers: Vec::new(),
        };
        let endpoint = OtlpEndpoint::parse("http://127.0.0.1:1").unwrap();
        let (tracer, _queue) = Tracer::new(Some(endpoint));
        assert!((0..QUEUE).all(|_| tracer.end(span())));
        assert!(!tracer.end(span()));
        let (off, queue) = Tracer::new(None);
        assert!(queue.is_none() && !off.is_on() && off.end(span()));
    }
}
