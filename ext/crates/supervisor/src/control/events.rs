//! The journal as a stream, line by line or as server-sent events.
//!
//! It is read from its file, a page at a time: who reads slowly holds up nobody and nothing.

use super::ControlHandles;
use super::lines::{Reader, Replies};
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
    let cursor = stream(wanted, replies, handles, Form::Lines).await;
    let answer = json!({"cursor": cursor});
    replies.send(&LiveReply::Answer { answer }).await;
}

/// As server-sent events.
pub(super) async fn server_sent(
    wanted: &EventsRequest,
    replies: &mut Replies,
    handles: &ControlHandles,
) {
    replies
        .bytes(SseFrame::retry(RETRY).as_str().as_bytes())
        .await;
    stream(wanted, replies, handles, Form::ServerSent).await;
}

#[derive(Clone, Copy)]
enum Form {
    Lines,
    ServerSent,
}

async fn stream(
    wanted: &EventsRequest,
    replies: &mut Replies,
    handles: &ControlHandles,
    form: Form,
) -> u64 {
    let mut follower = handles.queue.follow();
    let mut cursor = wanted.after;
    loop {
        let run_dir = handles.run_dir.clone();
        let page = tokio::task::spawn_blocking(move || read_events(&run_dir, cursor, PAGE)).await;
        let Ok(Ok(page)) = page else { return cursor };
        for event in &page.events {
            one(event, wanted.projection, replies, form).await;
        }
        cursor = page.cursor;
        if replies.reader() != Reader::Reads {
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
                        if let Form::ServerSent = form {
                            let alive = SseFrame::keep_alive();
                            replies.bytes(alive.as_str().as_bytes()).await;
                        }
                        if replies.reader() != Reader::Reads {
                            return cursor;
                        }
                    }
                }
            },
        }
    }
}

async fn one(
    event: &LifecycleEvent,
    projection: EventProjection,
    replies: &mut Replies,
    form: Form,
) {
    match (form, projection) {
        (Form::ServerSent, EventProjection::Journal) => {
            replies
                .bytes(SseFrame::of_event(event).as_str().as_bytes())
                .await;
        }
        (Form::ServerSent, EventProjection::Bus) => {
            replies
                .bytes(SseFrame::of_projection(event).as_str().as_bytes())
                .await;
        }
        (Form::Lines, EventProjection::Journal) => {
            let event = json!(event);
            replies.send(&LiveReply::Event { event }).await;
        }
        (Form::Lines, EventProjection::Bus) => match project_to_bus(event) {
            BusProjection::Event(event) => {
                let event = json!(event);
                replies.send(&LiveReply::Event { event }).await;
            }
            BusProjection::Nothing(_) => {}
        },
    }
}
