//! Finds the project for a directory of the host: where to mount it in the guest, how to activate
//! it, which WordPress contains it and which checks its files suggest.
//!
//! Files of the project are only read: headers, names and JSON. No program is started and no code
//! is executed. Reads are bounded, follow no symbolic link out of the directory that is read, and
//! open regular files only.
//!
//! The search goes up the *real* path of a directory, so that a mount always contains the current
//! directory. Names and slugs come from the path by which the user reached that directory: a plugin
//! that is a symbolic link in `wp-content/plugins` has the link's name.
#![forbid(unsafe_code)]

mod checks;
mod code;
mod composer;
mod composer_script;
mod error;
mod find;
mod folder;
mod found;
mod header;
mod place;
mod site;
mod slug;

pub use checks::{NO_CHECKS, ProposedCheck, proposed_checks};
pub use error::ProjectError;
pub use find::{around, of};
pub use found::Project;
pub use place::UserDirectories;
pub use site::site_around;

#[cfg(test)]
use found::Kind;

#[cfg(test)]
mod tests;
