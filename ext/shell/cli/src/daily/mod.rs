//! Commands for a developer in a project directory: run an agent, look at its change, apply, undo.
//!
//! `again` and `up` build the arguments of `run`; `shell`, `wp`, `php` and `test` start a sandbox,
//! unless one of `up` runs, and use `exec`; `apply` and `undo` call the apply engine.

mod again;
mod apply;
mod args;
mod diff;
mod guest;
mod history;
mod log;
mod test;
mod up;

pub(crate) use again::again;
pub(crate) use apply::{apply, undo};
pub(crate) use args::{
    AgainArgs, ApplyArgs, DiffArgs, LogArgs, Program, ProgramArgs, ShellArgs, TestArgs, UndoArgs,
    UpArgs,
};
pub(crate) use diff::diff;
pub(crate) use guest::{program, shell};
pub(crate) use history::next_steps;
pub(crate) use log::log;
pub(crate) use test::test;
pub(crate) use up::up;
