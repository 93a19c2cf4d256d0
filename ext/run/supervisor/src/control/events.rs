//! Streams the event journal to a client, as JSON lines or as server-sent events.
//!
//! The journal is read from its file page by page, so a slow client delays neither the run nor
//! other clients.

use super::handles::ControlHandles;
use super::lines::{ReaderState, Replies};
use bytes::Bytes;
use http_body_util::channel::Sender;
use serde_json::json;
use std::time::Duration;
use wp_codebox_contracts::{
    BusProjection, EventProjection, EventsRequest, Follow, LifecycleEvent, LiveReply, SseFrame,
    project_to_bus,
};
use wp_codebox_runtime::{PageLimits, read_events};

/// Maximum number and total size of the events that are read from the journal at once.
const PAGE: PageLimits = PageLimits {
    count: 256,
    bytes: 1024 * 1024,
};
/// Interval of keep-alive messages while there are no events to send.
const ALIVE: Duration = Duration::from_secs(15);
/// Reconnection delay for clients of server-sent events, in milliseconds.
const RETRY: u32 = 1000;

/// Sends the events as replies, then a final reply with the sequence number of the last event that
/// was read from the journal.
pub(super) async fn lines(wanted: &EventsRequest, replies: &mut Replies, handles: &ControlHandles) {
    let cursor = stream(wanted, replies, handles).await;
    let answer = json!({"cursor": cursor});
    replies.send(&LiveReply::Answer { answer }).await;
}

/// Sends the journal as server-sent events. Returns the state of the client at the end: it still
/// reads, did not read in time, or has disconnected.
pub(super) async fn server_sent(
    wanted: &EventsRequest,
    mut client: SseClient,
    handles: &ControlHandles,
) -> ReaderState {
    client.send(&SseFrame::retry(RETRY)).await;
    stream(wanted, &mut client, handles).await;
    client.state
}

/// A client that receives journal events, as JSON lines or as server-sent events.
pub(super) trait EventSink {
    async fn event(&mut self, event: &LifecycleEvent, projection: EventProjection);
    /// Sends a keep-alive message if the format has one.
    async fn alive(&mut self);
    fn reader(&self) -> ReaderState;
}

impl EventSink for Replies {
    async fn event(&mut self, event: &LifecycleEvent, projection: EventProjection) {
        let event = match projection {
            EventProjection::Journal => json!(event),
            EventProjection::Bus => match project_to_bus(event) {
                BusProjection::Event(event) => json!(event),
                BusProjection::Nothing(_) => return,
            },
        };
        self.send(&LiveReply::Event { event }).await;
    }

    async fn alive(&mut self) {}

    fn reader(&self) -> ReaderState {
        Replies::reader(self)
    }
}

/// Body of an HTTP response that carries server-sent events.
pub(super) struct SseClient {
    body: Sender<Bytes>,
    reading: Duration,
    state: ReaderState,
}

impl SseClient {
    /// Creates the sink; the client must read each event within `reading`.
    pub(super) fn new(body: Sender<Bytes>, reading: Duration) -> Self {
        Self {
            body,
            reading,
            state: ReaderState::Reading,
        }
    }

    pub(super) async fn send(&mut self, frame: &SseFrame) {
        if self.state != ReaderState::Reading {
            return;
        }
        let bytes = Bytes::copy_from_slice(frame.as_str().as_bytes());
        match tokio::time::timeout(self.reading, self.body.send_data(bytes)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => self.state = ReaderState::Gone,
            Err(_) => self.state = ReaderState::TimedOut,
        }
    }
}

impl EventSink for SseClient {
    async fn event(&mut self, event: &LifecycleEvent, projection: EventProjection) {
        let frame = match projection {
            EventProjection::Journal => SseFrame::of_event(event),
            EventProjection::Bus => SseFrame::of_projection(event),
        };
        self.send(&frame).await;
    }

    async fn alive(&mut self) {
        self.send(&SseFrame::keep_alive()).await;
    }

    fn reader(&self) -> ReaderState {
        self.state
    }
}

async fn stream(
    wanted: &EventsRequest,
    client: &mut impl EventSink,
    handles: &ControlHandles,
) -> u64 {
    let mut follower = handles.queue.follow();
    let mut cursor = wanted.after;
    loop {
        let run_dir = handles.run_dir.clone();
        let page = tokio::task::spawn_blocking(move || read_events(&run_dir, cursor, PAGE)).await;
        let Ok(Ok(page)) = page else { return cursor };
        for event in &page.events {
            client.event(event, wanted.projection).await;
        }
        cursor = page.cursor;
        if client.reader() != ReaderState::Reading {
            return cursor;
        }
        if page.more {
            continue;
        }
        match wanted.follow {
            Follow::Now => return cursor,
            Follow::End => loop {
                match tokio::time::timeout(ALIVE, follower.more_than(cursor)).await {
                    Ok(true) => break,
                    Ok(false) => return cursor,
                    Err(_) => {
                        client.alive().await;
                        if client.reader() != ReaderState::Reading {
                            return cursor;
                        }
                    }
                }
            },
        }
    }
}
