//! The way from a visitor's browser to the site of a guest, as long as somebody keeps it open.
//!
//! A forwarder listens on an address of the host, on a thread of its own, and speaks HTTP/1.1 to
//! both sides with one library, so that both agree on where a message ends. It asks for each
//! connection to the guest; nobody else of the host gets one.
//!
//! Invariants: a request names this preview as its host, or it is refused (a name that was
//! rebound to this address does not); where a token is needed, nothing of the guest is seen without
//! it; the guest learns neither the token nor cookies of others on the same host; every answer
//! carries [`headers`] that the guest can neither take away nor change; connections, sizes and
//! times are bounded; after the end the port is free.

mod body;
mod connector;
mod cookies;
mod exchange;
mod forwarder;
mod headers;
mod limits;
mod listener;
mod origin;
mod patience;
mod tally;
mod token;

#[cfg(test)]
mod tests;

pub use connector::{ConnectReply, GuestConnector};
pub use forwarder::{Forwarder, ForwarderConfig};
pub use limits::ForwarderLimits;
pub use listener::{Place, Reservation};
pub use origin::Origin;
pub use tally::Counts;
pub use token::{LOGIN_PARAMETER, Logins, PARAMETER, Token};
