//! The stream of events.
//!
//! A stream reads pages of stored events and sends them when the client reads. No event is queued
//! in memory for a slow client. A client that sends `Last-Event-ID` continues without a loss or a
//! repetition, because event ids are those of the stored events.

use crate::access::{Caller, EventPages, Follow};
use crate::problem::{ApiResult, Problem};
use crate::store::Event;
use axum::body::Body;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use std::convert::Infallible;
use std::fmt::Write as _;

/// Media type of the stream.
pub(crate) const STREAM: &str = "text/event-stream";
/// A comment, which keeps the connection open.
const HEARTBEAT: &str = ":\n\n";

pub(super) async fn stream(caller: Caller, headers: HeaderMap) -> ApiResult<Response> {
    // A browser that reconnects repeats the query and adds the header, so the header takes
    // precedence.
    let last = match headers.get("last-event-id") {
        None => caller.args.number("after"),
        Some(id) => {
            let id = id.to_str().ok().and_then(|id| id.trim().parse().ok());
            Some(id.ok_or_else(|| Problem::invalid("Last-Event-ID must be the id of an event"))?)
        }
    };
    let sandbox = caller.args.text("sandbox").map(str::to_owned);
    let follow = match caller.args.text("follow") {
        Some("now") => Follow::Now,
        _ => Follow::End,
    };
    let pages = caller.events(sandbox, last, follow).await?;
    // A client that was away too long must know that events are missing.
    let greeting = match pages.gap() {
        Some(first) => format!("event: gap\ndata: {{\"first\":{first}}}\n\n"),
        None => HEARTBEAT.to_owned(),
    };
    let parts = stream::unfold((Some(greeting), pages), |(greeting, mut pages)| async {
        let text = match greeting {
            Some(greeting) => greeting,
            None => next(&mut pages).await?,
        };
        Some((Ok::<_, Infallible>(Bytes::from(text)), (None, pages)))
    });
    let headers = [
        (header::CONTENT_TYPE, STREAM),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, Body::from_stream(parts)).into_response())
}

/// Returns the next part of the stream; `None` at its end.
async fn next(pages: &mut EventPages) -> Option<String> {
    let page = pages.next().await?;
    Some(match page.is_empty() {
        true => HEARTBEAT.to_owned(),
        false => text(&page),
    })
}

fn text(page: &[Event]) -> String {
    let mut text = String::new();
    for event in page {
        let _ = write!(
            text,
            "id: {}\nevent: {}\ndata: {}\n\n",
            event.id,
            event.kind,
            event.document()
        );
    }
    text
}
