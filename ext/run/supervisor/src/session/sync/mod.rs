//! Transfers files into a held sandbox (one kept open for clients) and out of it.

mod program;
mod requests;

pub(super) use program::SyncProgram;
pub use requests::FILE_BYTES;
