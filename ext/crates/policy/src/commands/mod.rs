//! The command registry: one table drives discovery, policy and dispatch.
//!
//! The table is data (`table`), its rows are described in `model`, what an argument's value must
//! look like in `format`, what a browser's steps have in `browser_steps`. `check` judges a call
//! before anything starts, `catalog` shows the table.

mod browser_steps;
mod catalog;
mod check;
mod format;
mod model;
mod table;

pub use browser_steps::{StepIssue, browser_duration, check_browser_scenario, check_browser_steps};
pub use catalog::{catalog, catalog_entry};
pub use check::{CommandError, arg_value, arg_values, assert_command, required_commands};
pub use format::{Format, is_true};
pub use model::{
    AcceptedArg, CommandDescriptor, CommandGroup, GuestProgram, Handler, MailOperation,
};
pub use table::registry;

/// The descriptor of a command id.
#[must_use]
pub fn descriptor(id: &str) -> Option<&'static CommandDescriptor> {
    registry().find(|c| c.id == id)
}

#[cfg(test)]
mod tests;
