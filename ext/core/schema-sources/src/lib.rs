//! Sources of the JSON Schemas in `abilities/schemas/`, and how they become the schemas that ship.
//!
//! `NAME.v1.schema.json` is the source of a schema; `parts/NAME.json` is an object that several
//! schemas share. A member `"$ref": "parts/NAME.json"` of any object, a schema or a list of
//! properties, stands for the members of that part, in this place; a member beside it replaces the
//! part's member of the same name, and `null` removes it.
//!
//! A replacement keeps the place of the part's member unless it is written before `$ref`. A part may
//! use other parts. Every other `$ref` is JSON Schema's own and stays as it is.
//!
//! Build scripts and `xtask` use this crate. Programs use `wp-codebox-schemas`, which embeds the
//! flattened schemas.
#![forbid(unsafe_code)]

mod findings;
mod flatten;
mod schema;
mod sources;

pub use flatten::FlattenError;
pub use schema::{SUFFIX, Schema, contract_digest};
pub use sources::{ReadError, Sources};
