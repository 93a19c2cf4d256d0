//! The rows of the command table, by group, in catalogue order.

mod args;
mod browser;
mod checkpoint;
mod core;
mod discovery;
mod fuzz;
mod host;
mod measure;
mod state;

use super::model::CommandDescriptor;

/// Returns every command, in catalogue order.
pub fn registry() -> impl Iterator<Item = &'static CommandDescriptor> {
    [
        core::ROWS,
        checkpoint::ROWS,
        state::ROWS,
        discovery::ROWS,
        measure::ROWS,
        fuzz::ROWS,
        browser::ROWS,
        host::ROWS,
    ]
    .into_iter()
    .flatten()
}
