//! The supervisor: one run, from a request to a signed bundle.
//!
//! One process supervises one run: it gives up root, owns the deadline, the
//! journal, the capture and the bundle, and is the only one that talks to the
//! guest. It reads no environment variable: its caller gives it everything.
#![forbid(unsafe_code)]

mod cgroup_reaper;
mod control;
mod outbox;
mod parent;
mod peer;
mod run;
mod supervise;
pub mod workspace;

pub use cgroup_reaper::keep as keep_cgroups;
pub use peer::Caller;
pub use run::{
    MAIL_LIST, SYNC_FILE_BYTES, copy_bundle, default_policy, group, identity, list_archive,
    mail_path, plugin_header, preset, task_document,
};
pub use supervise::{spawn_detached, supervise};
