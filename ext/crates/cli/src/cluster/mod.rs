//! The message server of a cluster: options of the commands that use it.

mod access;

pub(crate) use access::{NatsArgs, options_of};
