//! The PHP classes, one module each. Methods convert arguments, call and convert results; all
//! decisions are made in the other crates or in `request` and `session`.

mod artifacts;
mod changes;
mod extension;
mod group_slot;
mod groups;
mod policy;
mod redactor;
mod run;
mod runs;
mod sandbox;

pub(crate) use artifacts::Artifacts;
pub(crate) use changes::Changes;
pub(crate) use extension::Extension;
pub(crate) use group_slot::GroupSlot;
pub(crate) use groups::{Batch, Fanout};
pub(crate) use policy::Policy;
pub(crate) use redactor::Redactor;
pub(crate) use run::Run;
pub(crate) use runs::Runs;
pub(crate) use sandbox::Sandbox;
