//! The bridge as a guest sees it: real clients on one side, local servers on the other.
//!
//! No test leaves the machine: names are resolved by a double, and the connector double
//! knows loopback servers only; every other address is refused before a packet is made.

mod clients;
mod limits;
mod model;
mod proxy;
mod rig;
mod secrets;
mod tls;
