//! Supervisor of one run, from the request to the signed bundle.
//!
//! One process supervises one run. It gives up root, enforces the deadline, writes the journal,
//! captures the changes and builds the bundle; no other process talks to the guest. It reads no
//! environment variable: the caller passes every setting.
#![forbid(unsafe_code)]

mod cgroup_reaper;
mod control;
mod host_programs;
mod outbox;
mod parent;
mod peer;
mod places;
mod run;
mod supervise;
mod wasi_registry;
pub mod workspace;

pub use cgroup_reaper::keep as keep_cgroups;
pub use host_programs::HostPrograms;
pub use peer::{Caller, HostConfig, ServiceConfig};
pub use places::HostShares;
pub use run::placed::{PlacedRun, Placer, RecordEvent};
pub use run::{
    MAIL_LIST, SYNC_FILE_BYTES, copy_bundle, default_policy, group, identity, list_archive,
    mail_path, plugin_header, preset, task_document,
};
pub use supervise::{spawn_detached, supervise};
pub use wasi_registry::{
    RegisteredTool, WasiRegistryError, WasiRunner, WasiTools, parse_wasi_tool,
};
