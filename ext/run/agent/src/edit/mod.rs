//! Changes of texts: exact-match replacement and patches. Pure functions without I/O.
//!
//! A replacement requires the old text exactly, except for line ends. A hunk of a patch without an
//! exact match is also applied where the lines differ only in line ends or leading and trailing
//! blanks; a note in the result reports a difference in blanks. An edit with several possible
//! positions is refused with their line numbers, except for a hunk below a heading, which gets the
//! first one. Line ends, byte order mark and a missing final line end are preserved.

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
