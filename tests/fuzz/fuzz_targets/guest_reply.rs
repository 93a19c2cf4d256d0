//! Packets that a hostile guest sends to the supervisor over its seqpacket channel.
//!
//! Each packet is one message or malformed. Its descriptors are closed or owned by the receiver,
//! and no packet prevents the next one from being read.
#![no_main]

#[allow(dead_code)]
#[path = "../../../ext/isolation/backend-native/src/channel.rs"]
mod channel;

use channel::{Channel, Received};
use libfuzzer_sys::fuzz_target;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, send, sendmsg};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use wp_codebox_contracts::GuestReply;

/// Maximum number of packets of one input: they fit into the socket's buffer without a reader.
const PACKETS: usize = 8;

fuzz_target!(|data: &[u8]| {
    let Ok((mut ours, theirs)) = Channel::pair() else {
        return;
    };
    let mut sent = 0;
    for packet in data.split(|byte| *byte == b'\n').take(PACKETS) {
        // The first byte is the number of descriptors to send with the packet, modulo 8.
        let Some((&count, body)) = packet.split_first().filter(|(_, body)| !body.is_empty()) else {
            continue;
        };
        let passed: Vec<BorrowedFd<'_>> = (0..count % 8).map(|_| theirs.as_fd()).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !passed.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&passed));
        }
        sendmsg(
            &theirs,
            &[IoSlice::new(body)],
            &mut control,
            SendFlags::DONTWAIT,
        )
        .expect("room for a packet");
        sent += 1;
    }
    for _ in 0..sent {
        match ours.receive::<GuestReply>() {
            Received::Message(reply, descriptors) => {
                assert!(descriptors.len() <= 4);
                let text = serde_json::to_vec(&*reply).expect("a reply is JSON");
                let again: GuestReply = serde_json::from_slice(&text).expect("and reads back");
                assert_eq!(again, *reply);
            }
            Received::Malformed => {}
            Received::Empty | Received::Closed => panic!("a packet was lost"),
        }
    }
    assert!(matches!(ours.receive::<GuestReply>(), Received::Empty));
    send(
        &theirs,
        b"{\"type\":\"layer\",\"index\":1,\"directory\":\"u1\"}",
        SendFlags::DONTWAIT,
    )
    .expect("room");
    assert!(matches!(
        ours.receive::<GuestReply>(),
        Received::Message(..)
    ));
});
