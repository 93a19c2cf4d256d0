//! Tests of the bridge from the guest's side: real clients, and local servers as hosts.
//!
//! No test sends a packet off this machine: a fake resolver answers names, and the fake connector
//! connects only to loopback servers and refuses every other address.

mod clients;
mod limits;
mod model;
mod proxy;
mod rig;
mod secrets;
mod tls;
