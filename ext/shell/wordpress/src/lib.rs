//! Finds, downloads, verifies and unpacks WordPress cores, and keeps them in a cache from which guests
//! get their WordPress.
//!
//! Archives, directories and the answers of servers are untrusted: they are checked and bounded,
//! and no code from them is executed on the host. PHP code of a core runs only inside guests.
#![forbid(unsafe_code)]

mod archive;
mod cache;
mod directory;
mod document;
mod fetch;
mod install;
mod layout;
mod progress;
mod release;
mod source;
mod store;
#[cfg(test)]
mod tests;
mod unpack;
mod version;

pub use cache::{Core, Cores, nearest};
pub use document::{core_document, list_document};
pub use progress::{Progress, Silent, Step};
pub use source::{Network, ORIGIN_VARIABLE, Origins, Source};
pub use version::{Version, wordpress_version};
