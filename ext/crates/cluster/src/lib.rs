//! Runs on many hosts. A submitter writes the record of a run and puts a message into a queue of a
//! message server; a node claims the run, runs it and stores its result. Delivery of messages is at
//! least once; the record changes by compare-and-set only, so each run ends once.
#![forbid(unsafe_code)]

pub mod bus;
pub mod claim;
pub mod held;
mod capped;
pub mod collect;
pub mod host;
pub mod lease;
pub mod names;
pub mod node;
mod capped;
pub mod layers;
pub mod objects;
pub mod record;
pub mod schedule;
pub mod submit;
pub mod work;
pub mod result;
pub mod seal;
pub mod task;
pub mod trust;
pub mod values;
