//! The record that every later layer writes, output of programs, and the queue of live requests.

pub(crate) mod agent_log;
pub(crate) mod agent_output;
pub(crate) mod agent_steps;
pub(crate) mod inactive;
pub(crate) mod output;
pub(crate) mod queue;
pub(crate) mod recorder;
pub(crate) mod retained_output;
pub(crate) mod shown;
pub(crate) mod wasi_facts;
