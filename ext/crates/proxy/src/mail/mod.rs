//! The mail capture: what programs of a guest send by SMTP ends here and goes nowhere else.
//!
//! A socket listens on the guest's 127.0.0.1:25; the server accepts on it from outside. A message
//! that was taken is out of the guest's reach: it can send further ones, but it cannot change or
//! remove one. Sender and content of a message are whatever the guest chose.
//!
//! Invariants: nothing is ever sent on; memory is bounded whatever the guest does;
//! a reply repeats nothing of what the guest said.

mod conversation;
mod mailbox;
mod message;
mod server;

pub use conversation::Received;
pub use mailbox::{Mail, MailCounts, Mailbox};
pub use message::{links, readable};
pub use server::MailServer;
