//! The SMTP server that captures a guest's mail, and the captured messages.
//!
//! The same bytes give the same replies and the same messages, however they are split. Replies
//! are lines of SMTP that repeat no bytes of the guest. Captured messages stay within their
//! limits, and so do the displayed subject and links of each message.
#![no_main]

#[allow(dead_code)]
#[path = "../../../ext/run/proxy/src/mail/conversation.rs"]
mod conversation;
#[allow(dead_code)]
#[path = "../../../ext/run/proxy/src/mail/message.rs"]
mod message;

use conversation::{Bounds, Conversation, Next, Received};
use libfuzzer_sys::fuzz_target;

/// Size limits of a message in bytes, so small that short inputs exceed them.
const BOUNDS: Bounds = Bounds {
    message: 1024,
    stored: 512,
};

fn talk<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<u8>, Vec<Received>, Next) {
    let mut conversation = Conversation::new(BOUNDS);
    let (mut out, mut messages) = (Vec::new(), Vec::new());
    for piece in pieces {
        let next = conversation.feed(piece, &mut out, &mut |message| messages.push(message));
        if next == Next::Close {
            return (out, messages, next);
        }
    }
    (out, messages, Next::Read)
}

fn assert_replies(out: &[u8]) {
    let out = std::str::from_utf8(out).expect("replies are ASCII");
    assert!(out.is_ascii());
    assert!(out.is_empty() || out.ends_with("\r\n"));
    for line in out.split_terminator("\r\n") {
        assert!((4..=510).contains(&line.len()) && !line.contains(['\r', '\n']));
        assert!(line.as_bytes()[..3].iter().all(u8::is_ascii_digit));
        assert!(matches!(line.as_bytes()[3], b' ' | b'-'));
    }
}

fn assert_message(message: &Received) {
    assert!(message.bytes <= BOUNDS.message);
    assert!(message.content.len() <= BOUNDS.stored);
    assert!(message.content.len() as u64 <= message.bytes);
    assert!((1..=100).contains(&message.to.len()));
    let addresses = message.to.iter().chain([&message.from]);
    assert!(addresses.clone().all(|address| address.len() <= 256));
    assert!(message.to.iter().all(|address| !address.is_empty()));
    assert!(message::subject(&message.content).chars().count() <= 1000);
    message::readable(&message.content);
    let text = String::from_utf8_lossy(&message.content);
    let links = message::links(&text, 10, |_| true);
    assert!(links.len() <= 10);
    for link in links {
        assert!(link.starts_with("http://") || link.starts_with("https://"));
        assert!(!link.chars().any(|c| c.is_control() || c.is_whitespace()));
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&size, data)) = data.split_first() else {
        return;
    };
    let whole = talk(std::iter::once(data));
    let pieces = talk(data.chunks(usize::from(size % 32) + 1));
    assert_eq!(whole, pieces);
    let (out, messages, _) = whole;
    assert_replies(&out);
    messages.iter().for_each(assert_message);
});
