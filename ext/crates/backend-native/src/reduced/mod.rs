//! Level `reduced` seen from the runner's side: the guest's own directories as a tree on
//! the host's disk.
//!
//! There is no private view of files there. What a plan would mount is copied into a
//! directory of the run; guest paths in arguments, environment and working directory
//! become paths below it. The launch plan names that tree, the system's directories and
//! nothing else. No file that belongs to the guest's user is shared with anything: modes
//! and times of a file can be changed by whoever can open it and owns it.

mod disk;
mod root;
mod steps;
mod tree;

pub(crate) use disk::DiskWatch;
pub use root::GuestRoot;
pub(crate) use tree::open_source;
pub use tree::{GuestTree, LayoutError};
