//! The PHP classes, one module each. A method converts its arguments, calls another module or
//! crate, which makes all decisions, and converts the result.

mod agent_task;
mod artifacts;
mod change_lock;
mod changes;
mod extension;
mod group_slot;
mod groups;
mod policy;
mod redactor;
mod run;
mod runs;
mod sandbox;

pub(crate) use agent_task::AgentTask;
pub(crate) use artifacts::Artifacts;
pub(crate) use change_lock::ChangeLock;
pub(crate) use changes::Changes;
pub(crate) use extension::Extension;
pub(crate) use group_slot::GroupSlot;
pub(crate) use groups::{Batch, Fanout};
pub(crate) use policy::Policy;
pub(crate) use redactor::Redactor;
pub(crate) use run::Run;
pub(crate) use runs::Runs;
pub(crate) use sandbox::Sandbox;
