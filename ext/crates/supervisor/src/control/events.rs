//! The journal as a stream, line by line or as server-sent events.
//!
//! It is read from its file, a page at a time: who reads slowly holds up nobody and nothing.

use super::handles::ControlHandles;
use super::lines::{Reader, Replies};
use bytes::Bytes;
use http_body_util::channel::Sender;
use serde_json::json;
use std::time::Duration;
use wp_codebox_contracts::{
    BusProjection, EventProjection, EventsRequest, Follow, LifecycleEvent, LiveReply, SseFrame,
    project_to_bus,
};
use wp_codebox_runtime::{PageLimits, read_events};

/// One page.
const PAGE: PageLimits = PageLimits {
    count: 256,
    bytes: 1024 * 1024,
};
/// How often a silent stream says that it lives.
const ALIVE: Duration = Duration::from_secs(15);
/// When a client of server-sent events is to come back, milliseconds.
const RETRY: u32 = 1000;

/// As replies, then an answer with the position reached.
pub(super) async fn lines(wanted: &EventsRequest, replies: &mut Replies, handles: &ControlHandles) {
    let cursor = stream(wanted, replies, handles).await;
    let answer = json!({"cursor": cursor});
    replies.send(&LiveReply::Answer { answer }).await;
}

/// As server-sent events; answers how the client read them.
pub(super) async fn server_sent(
    wanted: &EventsRequest,
    mut client: SseClient,
    handles: &ControlHandles,
) -> Reader {
    client.send(&SseFrame::retry(RETRY)).await;
    stream(wanted, &mut client, handles).await;
    client.state
}

/// Where the events go.
pub(super) trait EventSink {
    async fn event(&mut self, event: &LifecycleEvent, projection: EventProjection);
    /// Nothing happened for a while.
    async fn alive(&mut self);
    fn reader(&self) -> Reader;
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

    fn reader(&self) -> Reader {
        Replies::reader(self)
    }
}

/// The body of an HTTP response.
pub(super) struct SseClient {
    body: Sender<Bytes>,
    reading: Duration,
    state: Reader,
}

impl SseClient {
    /// The client may take `reading` for each event.
    pub(super) fn new(body: Sender<Bytes>, reading: Duration) -> Self {
        Self {
            body,
            reading,
            state: Reader::Reads,
        }
    }

    pub(super) async fn send(&mut self, frame: &SseFrame) {
        if self.state != Reader::Reads {
            return;
        }
        let bytes = Bytes::copy_from_slice(frame.as_str().as_bytes());
        match tokio::time::timeout(self.reading, self.body.send_data(bytes)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => self.state = Reader::Gone,
            Err(_) => self.state = Reader::Slow,
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

    fn reader(&self) -> Reader {
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
        if client.reader() != Reader::Reads {
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
                        if client.reader() != Reader::Reads {
                            return cursor;
                        }
                    }
                }
            },
        }
    }
}
