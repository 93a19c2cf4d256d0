//! The launcher as a command for a process wrapper (crate `wp-codebox-process-wrapper`).
//!
//! The guest must reach level `full` inside the wrapper. The launcher and its probes run unchanged,
//! and a wrapper that prevents the launcher from building its guest makes the run fail.

mod launcher_command;
mod views;

pub use launcher_command::LauncherCommand;
pub use wp_codebox_process_wrapper::{
    Bubblewrap, Choice, GuestKind, Gvisor, HostCommand, NoSandbox, ProcessSandbox, Unwrapped,
    WrappedCommand, WrapperError, choose, guest_audit,
};

#[cfg(test)]
mod tests;
