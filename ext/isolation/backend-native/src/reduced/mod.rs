//! Level `reduced` on the supervisor's side: the guest's own directories are a tree on the host's disk.
//!
//! At this level the guest has no mounts of its own. What a launch plan would mount is copied into
//! a directory of the run. Guest paths in arguments, environment and working directory are
//! rewritten to paths below that directory. The launch plan allows access to that tree and to the
//! system directories only. The tree contains copies, never a file that other processes use: the
//! guest runs as the owner of these files, so it could change their mode and times.

mod disk;
mod root;
mod steps;
mod tree;

pub(crate) use disk::DiskWatch;
pub use root::GuestRoot;
pub(crate) use tree::open_source;
pub use tree::{GuestTree, LayoutError};
