//! Mail capture: an SMTP server that stores what guest programs send and delivers nothing.
//!
//! A socket listens on the guest's 127.0.0.1:25; the server, in a host process, accepts on it. The
//! guest can send further messages, but cannot change or remove an accepted one. Sender and content
//! of a message prove nothing, because the guest chooses them.
//!
//! Invariants: the server never forwards a message; limits on messages, bytes and connections bound
//! its memory whatever the guest sends; no reply repeats bytes of the guest.

mod conversation;
mod mailbox;
mod message;
mod server;

pub use conversation::Received;
pub use mailbox::{Mail, MailCounts, Mailbox};
pub use message::{links, readable};
pub use server::MailServer;
