//! Tests of the protocol: a model checker over its steps, and the code itself under randomly chosen
//! orders of crashes, late hosts and lost messages.

#![allow(clippy::unwrap_used, clippy::panic)]

mod crashes;
mod isolation;
mod memory;
mod model;
mod nodes;
