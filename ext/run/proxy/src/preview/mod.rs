//! Preview: forwards HTTP from a visitor's browser to the web site of a guest while the preview is
//! open.
//!
//! A forwarder listens on an address of the host, on its own thread, and speaks HTTP/1.1 to both
//! sides with one library, so that both sides agree on message boundaries. It requests each
//! connection to the guest's web server from its [`GuestConnector`].
//!
//! Invariants:
//!
//! - The forwarder refuses a request whose `Host` is not this preview, which defeats DNS
//!   rebinding.
//! - A preview with a token shows nothing of the guest without the token.
//! - The guest sees neither the token nor cookies of other programs on the same host.
//! - Every response has the forced [`headers`], which the guest can neither remove nor change.
//! - [`ForwarderLimits`] bounds connections, sizes and times.
//! - The port is free after the preview has closed.

mod body;
mod connector;
mod cookies;
mod counters;
mod exchange;
mod forwarder;
mod headers;
mod limits;
mod listener;
mod origin;
mod stall_timeout;
mod token;

#[cfg(test)]
mod tests;

pub use connector::{ConnectReply, GuestConnector};
pub use counters::Counts;
pub use forwarder::{Forwarder, ForwarderConfig};
pub use limits::ForwarderLimits;
pub use listener::{ListenAddress, Reservation};
pub use origin::Origin;
pub use token::{LOGIN_PARAMETER, Logins, PARAMETER, Token};
