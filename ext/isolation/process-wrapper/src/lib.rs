//! Process wrappers: programs such as bubblewrap that start another program inside a sandbox.
//!
//! [`ProcessSandbox::wrap`] only computes a command: the same input gives the same command and audit
//! record, and no file is touched. [`choose`] and [`find_program`] read the host to find the
//! wrapper's program; [`prepare_root`] makes the directory that gVisor shows as its root.
//!
//! The launcher of guests is one caller (`backend-native`), the runner of WASI tools on the host
//! another ([`ToolCall`]).
#![forbid(unsafe_code)]

mod audit;
mod bubblewrap;
mod choice;
mod command;
mod gvisor;
mod none;
mod root;
mod tool_call;

pub use audit::{GuestKind, LAUNCHER, guest_audit, kind_name};
pub use bubblewrap::Bubblewrap;
pub use choice::{Choice, WrapperError, choose, find_program};
pub use command::{
    HostCommand, Link, Mount, MountAccess, Presence, ProcessSandbox, WrappedCommand,
};
pub use gvisor::{Gvisor, GvisorRoot};
pub use none::{NoSandbox, Unwrapped};
pub use root::{RootError, prepare_root};
pub use tool_call::{TOOL_FILES, TOOL_WORK, ToolCall, ToolDirectory};

#[cfg(test)]
mod tests;
