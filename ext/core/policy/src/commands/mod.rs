//! The registry of commands that a run can execute. The catalogue, the policy checks and the
//! execution of commands all use its one table.
//!
//! `table` holds the rows, `model` their types, `format` the formats of argument values,
//! `browser_steps` the members of browser steps. `call` reads a call, `target` finds the commands
//! that it executes, `check` validates it before it is executed, and `catalog` exports the table as
//! JSON.

mod browser_steps;
mod call;
mod catalog;
mod check;
mod format;
mod model;
mod table;
mod target;

pub use browser_steps::{
    StepIssue, browser_duration, check_browser_scenario, check_browser_steps, check_editor_steps,
};
pub use call::{arg_value, arg_values, required_commands};
pub use catalog::{catalog, catalog_entry};
pub use check::{CommandError, assert_command, assert_step, is_blank_option};
pub use format::{Format, is_true, named_file};
pub use model::{
    AcceptedArg, CommandDescriptor, CommandGroup, GuestProgram, Handler, MailOperation,
};
pub use table::registry;
pub use target::{
    call_commands, command_line, line_words, list_words, runs_block_editor, target_call,
};

/// Returns the row of the command with this id.
#[must_use]
pub fn descriptor(id: &str) -> Option<&'static CommandDescriptor> {
    registry().find(|c| c.id == id)
}

#[cfg(test)]
mod tests;
