//! Supervisor of one run, from the request to the signed bundle.
//!
//! One process supervises one run. It gives up root, enforces the deadline, writes the journal,
//! captures the changes and builds the bundle; no other process talks to the guest. It reads no
//! environment variable: the caller passes every setting.
//!
//! The modules are layers, lowest first: a file uses its own layer and those above it in this list, which
//! `cargo xtask check` enforces.
#![forbid(unsafe_code)]

mod host;

mod journal;

mod request;

mod prepared;

/// What a guest changed in its mounts.
mod captured;

mod session;

mod work;

mod checks;

mod bundle;

mod run;

/// Live requests of a caller: the control socket.
mod control;

/// The process: its caller, its run, its end.
mod supervise;

pub use bundle::export::copy_bundle;
pub use host::cgroup_reaper::keep as keep_cgroups;
pub use host::host_programs::HostPrograms;
pub use host::peer::{Caller, HostConfig, ServiceConfig};
pub use host::places::HostShares;
pub use host::wasi_registry::{
    RegisteredTool, WasiRegistryError, WasiRunner, WasiTools, parse_wasi_tool,
};
pub use host::workspace;
pub use request::generated::{list as list_archive, plugin_header};
pub use request::placed::{PlacedRun, PlacedRuns, Placer, RecordEvent};
pub use request::prepare::default_policy;
pub use request::request_document::task_document;
pub use request::{group, identity, preset};
pub use session::SYNC_FILE_BYTES;
pub use session::mail::{LIST as MAIL_LIST, path_of as mail_path};
pub use supervise::{FirstFrames, spawn_detached, supervise};
