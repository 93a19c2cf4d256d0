//! How a reviewed change reaches the files of a developer or of a site.
//!
//! - [`History`] finds the runs of a directory, applies the change of one to the files of the
//!   directory, and undoes it.
//! - [`change_site`] does the same for the PHP extension, as a process of its own, and checks that the
//!   pages of the site still work. It can also commit the change on a branch of a git repository.
//! - [`sync()`] copies files between a local directory and a held sandbox.
//!
//! An apply verifies the bundle, checks the syntax of new PHP files with the configured PHP, and then
//! exchanges the files with the crate `apply`. This crate starts only PHP and git.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods)]

mod applying;
mod child;
mod directory;
mod git_branch;
mod history;
mod site_change;
mod sync;
mod syntax;

pub use applying::browser_origin;
pub use directory::{ApplyDecisions, ProposedChange, check_success};
pub use history::{Choice, ChosenRun, History, PURPOSE, Wanted, changed, member};
pub use site_change::change_site;
pub use sync::{
    Ask, Carried, Content, Direction, OnConflict, SyncReport, Verdict, Way, file_content, sync,
};
