//! Export of bundles as tar archives, import on another host, and zip archives of approved files.
//!
//! Invariants: equal bundles give equal archives. An import reads with limits, writes to a hidden
//! sibling directory, verifies the files there, and only then renames the directory. An import
//! never makes a bundle trusted. A second import of the same bundle changes nothing. [`adopt`] is an
//! import that does: the host adds its own signature, after checks that its caller makes.

mod adopt;
mod archive;
mod contents;
mod download;
mod export;
mod import;
mod members;

pub use adopt::{AdoptError, adopt};
pub use download::DownloadError;
pub use export::{ArchiveError, ArchiveReport, write_archive};
pub use import::{ImportError, ImportRules, ImportStatus, Imported, Replace, import};
pub use members::{MemberSet, MembersError};
