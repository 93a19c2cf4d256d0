//! Layers: the input files of tasks as objects that are named by their content.
//!
//! [`pack`] makes a layer of a directory, [`unpack`] a directory of a layer. [`LayerStore`] uploads
//! what the server does not have, [`LayerCache`] holds the unpacked layers of a node.
//!
//! A digest is the SHA-256 of a layer's canonical stream before compression. Equal trees have equal
//! digests on every host, whatever the order in which their entries were created, and however they
//! are compressed.

mod cache;
mod error;
mod pack;
mod remembered;
mod rules;
mod store;
mod stream;
mod unpack;

pub use cache::{CacheReport, LayerCache, LayerInUse};
pub use error::LayerError;
pub use pack::{Layer, Packed, pack, pack_files, pack_to};
pub use rules::PackRules;
pub use store::{LayerInput, LayerSource, LayerStore};
pub use unpack::{Unpacked, unpack};

#[cfg(test)]
mod tests;
