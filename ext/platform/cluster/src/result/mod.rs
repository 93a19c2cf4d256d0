//! The result of a run as an object: what the node answers, and the run's bundle.
//!
//! A line names the format. The length of the head follows (32 bits, little-endian), then the head, then
//! the bundle as the gzipped archive of an export. The head is a document with run, epoch, task and
//! [`RunResult`](wp_codebox_contracts::RunResult), signed by the key that signed the bundle. The
//! record has the SHA-256 and the size of the whole object.
//!
//! [`pack_result`] runs on the node, [`fetch_result`] on the submitting host.

mod error;
mod fetch;
mod format;
mod pack;

pub use error::{Refusal, ResultError};
pub use fetch::{Expected, FetchedResult, LocalStore, fetch_result};
pub use pack::{Claim, PackedResult, pack_result};

#[cfg(test)]
mod tests;
