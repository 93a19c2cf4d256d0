//! Runs on many hosts. A submitter writes the record of a run and puts a message into a queue of a
//! message server; a node claims the run, runs it and stores its result. Delivery of messages is at
//! least once; the record changes by compare-and-set only, so each run ends once.
#![forbid(unsafe_code)]

pub mod bus;
mod capped;
pub mod claim;
pub mod collect;
pub mod held;
pub mod host;
pub mod layers;
pub mod lease;
pub mod names;
pub mod nats;
pub mod node;
pub mod objects;
pub mod record;
mod rest;
pub mod result;
pub mod schedule;
pub mod seal;
pub mod submit;
pub mod sweep;
pub mod task;
pub mod trust;
mod unreadable;
pub mod values;
pub mod work;
