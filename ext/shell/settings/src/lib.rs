//! The settings of this host and its users, and what a host needs to run sandboxes.
//!
//! [`Settings`] has the value of each setting and where it comes from: an option, the environment, the
//! configuration file, a place where it was found, or a default. It chooses the WordPress core of guests
//! and creates the state directory at the first use. [`diagnose`] checks whether this host can run
//! sandboxes. [`add_user`], [`list_users`] and [`Removal`] change which users of this host may use the
//! runner socket. [`collect_leftovers`] removes leftovers of runs from the state directory. Nothing here
//! prints.
#![forbid(unsafe_code)]

mod accounts;
mod doctor;
mod gc;
mod settings;
mod user_directories;
mod user_state;
mod users;

pub use accounts::{Account, group_id};
pub use doctor::{Check, Diagnosis, Status, diagnose};
pub use gc::{collect_leftovers, reap_dead_cgroups};
pub use settings::{CoreInstaller, PathArgs, ProgramArgs, Settings, host_config, prepare_state};
pub use user_directories::user_directories;
pub use users::{HostUser, RUNNER_GROUP, Removal, StateRemoval, add_user, list_users};
