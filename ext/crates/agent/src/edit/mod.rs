//! Changes of texts: exact-match replacement and patches. Pure.
//!
//! A change is made where it is meant or not at all. A text must match exactly; where it does
//! not, a place that differs in line ends or in blanks only is taken when it is the only one,
//! and the answer says so. Whatever is ambiguous is refused with the lines in question. Line
//! ends, byte order mark and a missing last line end stay as they are.

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
