//! What a run needs of its host, whatever it does: its caller, programs, places, control groups.

pub(crate) mod cgroup_reaper;
pub(crate) mod host_programs;
pub(crate) mod outbox;
pub(crate) mod parent;
pub(crate) mod peer;
pub(crate) mod places;
pub(crate) mod wasi_registry;
pub mod workspace;
