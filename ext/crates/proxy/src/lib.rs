//! What stands between a guest and everything outside: egress, previews, mail.
//!
//! - [`egress`]: the only way out of a guest, and what it refuses;
//! - [`preview`]: the way from a visitor's browser to the site of a guest;
//! - [`mail`]: an SMTP server whose mail goes nowhere.
//!
//! Nothing here knows a run: a caller gives policies, sockets and limits, and reads logs and counts.
#![forbid(unsafe_code)]

pub mod egress;
pub mod mail;
pub mod preview;
mod relay;
mod server_thread;
