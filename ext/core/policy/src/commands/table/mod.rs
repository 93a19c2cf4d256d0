//! The rows of the command registry, by group, in the order of the catalogue.

mod args;
mod browser;
mod checkpoint;
mod core;
mod discovery;
mod editor;
mod fuzz;
mod host;
mod measure;
mod state;

use super::model::CommandDescriptor;

/// Returns the row of every command, in the order of the catalogue.
pub fn registry() -> impl Iterator<Item = &'static CommandDescriptor> {
    [
        core::ROWS,
        checkpoint::ROWS,
        state::ROWS,
        discovery::ROWS,
        measure::ROWS,
        fuzz::ROWS,
        browser::ROWS,
        editor::ROWS,
        host::ROWS,
    ]
    .into_iter()
    .flatten()
}
