//! Changes of texts: exact-match replacement and patches. Pure functions without I/O.
//!
//! An edit is applied at an unambiguous position or not at all. The old text must match exactly.
//! Otherwise the edit accepts a position that differs only in line ends or blanks if it is the
//! only one, and the result says so. An ambiguous edit is refused with the line numbers of all
//! candidates. Line ends, byte order mark and a missing final line end are preserved.

mod apply;
mod begin;
mod lines;
mod locate;
mod parse;
mod patch;
mod replace;
mod unified;

#[cfg(test)]
mod tests;

pub(crate) use apply::{Files, apply};
pub(crate) use parse::parse;
pub(crate) use replace::{Scope, replace};
