//! The stream of events.
//!
//! A stream reads pages of stored events and sends them when the client reads. No event is queued
//! in memory for a slow client. A client that sends `Last-Event-ID` continues without a loss or a
//! repetition, because event ids are those of the stored events.

use super::guard::Caller;
use super::records::visible;
use crate::auth::{Principal, Scope};
use crate::clock::now_ms;
use crate::core::Core;
use crate::problem::{ApiResult, Problem};
use crate::store::{Event, EventFilter};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// Media type of the stream.
pub(crate) const STREAM: &str = "text/event-stream";
/// Maximum number of events that are read from the store at once.
const PAGE: usize = 100;
/// Pause after which a comment keeps the connection open.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Whether the stream waits for new events (`End`) or ends after the stored ones (`Now`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follow {
    End,
    Now,
}

/// A stream in progress.
struct Reader {
    core: Arc<Core>,
    principal: Principal,
    filter: EventFilter,
    after: u64,
    follow: Follow,
    changes: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    _counted: Counted,
}

/// Lowers the gauge of open streams when it is dropped.
struct Counted(Arc<Core>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.metrics.streams.down();
    }
}

pub(super) async fn stream(
    State(core): State<Arc<Core>>,
    caller: Caller,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let Caller { principal, args } = caller;
    let sandbox = args.text("sandbox").map(str::to_owned);
    if let Some(id) = &sandbox {
        visible(&core, &principal, Scope::EventsRead, id).await?;
    }
    // A browser that reconnects repeats the query and adds the header, so the header takes
    // precedence.
    let last = match headers.get("last-event-id") {
        None => args.number("after"),
        Some(id) => {
            let id = id.to_str().ok().and_then(|id| id.trim().parse().ok());
            Some(id.ok_or_else(|| Problem::invalid("Last-Event-ID must be the id of an event"))?)
        }
    };
    let changes = core.store.watch_events();
    let after = match (last, &sandbox) {
        (Some(after), _) => after,
        // One sandbox has few events, so its stream starts at the first one.
        (None, Some(_)) => 0,
        (None, None) => core.records(|store| store.last_event()).await?,
    };
    let first = core.records(|store| store.first_event()).await?;
    let follow = match args.text("follow") {
        Some("now") => Follow::Now,
        _ => Follow::End,
    };
    core.metrics.streams.up();
    let reader = Reader {
        principal,
        filter: EventFilter { sandbox },
        after,
        follow,
        changes,
        stopping: core.stopping.subscribe(),
        _counted: Counted(Arc::clone(&core)),
        core,
    };
    // A client that was away too long must know that events are missing.
    let greeting = match after > 0 && after.saturating_add(1) < first {
        true => format!("event: gap\ndata: {{\"first\":{first}}}\n\n"),
        false => ":\n\n".to_owned(),
    };
    let pages = stream::unfold((Some(greeting), reader), |(greeting, mut reader)| async {
        let text = match greeting {
            Some(greeting) => greeting,
            None => reader.next().await?,
        };
        Some((Ok::<_, Infallible>(Bytes::from(text)), (None, reader)))
    });
    let headers = [
        (header::CONTENT_TYPE, STREAM),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, Body::from_stream(pages)).into_response())
}

impl Reader {
    /// Returns the next part of the stream; `None` at its end.
    async fn next(&mut self) -> Option<String> {
        loop {
            if *self.stopping.borrow() || !self.is_valid().await {
                return None;
            }
            self.changes.mark_unchanged();
            let (after, filter) = (self.after, self.filter.clone());
            let page = self
                .core
                .records(move |store| store.events(after, &filter, PAGE))
                .await
                .ok()?;
            if let Some(last) = page.last() {
                self.after = last.id;
                let text = self.text(&page);
                if !text.is_empty() {
                    return Some(text);
                }
                continue;
            }
            if self.follow == Follow::Now {
                return None;
            }
            let changed = async {
                tokio::select! {
                    changed = self.changes.changed() => changed.is_ok(),
                    _ = self.stopping.changed() => false,
                }
            };
            match timeout(HEARTBEAT, changed).await {
                Err(_) => return Some(":\n\n".to_owned()),
                Ok(true) => {}
                Ok(false) => return None,
            }
        }
    }

    /// Returns whether the token may still be used. A revoked one ends its streams.
    async fn is_valid(&self) -> bool {
        if self.principal.token.is_empty() {
            return true;
        }
        let id = self.principal.token.clone();
        let found = self.core.records(move |store| store.token(&id)).await;
        matches!(found, Ok(Some((row, _))) if row.is_valid(now_ms()))
    }

    fn text(&self, page: &[Event]) -> String {
        let mut text = String::new();
        for event in page.iter().filter(|event| may_read(&self.principal, event)) {
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
}

/// Returns whether a principal may read an event.
pub(crate) fn may_read(principal: &Principal, event: &Event) -> bool {
    match (&event.profile, &event.owner) {
        (Some(profile), Some(owner)) => principal.may(Scope::EventsRead, profile, owner),
        _ => principal.scopes.allow_any(Scope::HostsRead),
    }
}
