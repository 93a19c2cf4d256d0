//! Patches in git's format: rendering, parsing and filtering.
//!
//! Invariants: a rendered patch is valid UTF-8 (other bytes are encoded as `GIT binary patch` or
//! C-quoted). `git apply` turns the baseline into the guest's state byte for byte, except for
//! empty directories, which a patch cannot represent. The parser counts lines as the hunks
//! declare them and never searches for text.

mod apply;
mod binary;
mod filter;
mod parse;
mod quote;
mod rename;
mod render;
mod text;

pub(crate) use apply::apply_block;
pub use filter::{FilterError, filter_patch, split_patch};
pub(crate) use filter::{NamedBy, filter_by};
pub use parse::{Block, PatchError, parse_patch};
pub(crate) use quote::{SHOWN_BYTES, shown_name};
pub use quote::{needs_quoting, quote_name, terminal_name, unquote_name};
pub use rename::{Rename, find_renames};
pub use render::{FileStats, RenderedPatch, render_mount_patch};
