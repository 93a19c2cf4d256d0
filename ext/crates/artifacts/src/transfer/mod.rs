//! Bundles on their way from host to host: a deterministic archive, and the import of one.
//!
//! Invariants: the same bundle gives the same archive bytes; what comes in is read with
//! bounds, lands in a hidden sibling, is verified there as it lies, and only then gets its
//! name; an import never makes a bundle trusted; importing twice changes nothing.

mod archive;
mod contents;
mod export;
mod import;
mod members;

pub use export::{ArchiveError, ArchiveReport, write_archive};
pub use import::{ImportError, ImportRules, ImportStatus, Imported, Replace, import};
pub use members::{MemberSet, MembersError};
