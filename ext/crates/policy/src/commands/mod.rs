//! The registry of commands that a run can execute. The catalogue, the policy checks and the
//! execution of commands all use its one table.
//!
//! `table` holds the rows, `model` their types, `format` the formats of argument values,
//! `browser_steps` the members of browser steps. `check` validates a call before it is executed,
//! `target` finds the commands that a call executes, and `catalog` exports the table as JSON.

mod browser_steps;
mod catalog;
mod check;
mod format;
mod model;
mod table;
mod target;

pub use browser_steps::{
    StepIssue, browser_duration, check_browser_scenario, check_browser_steps, check_editor_steps,
};
pub use catalog::{catalog, catalog_entry};
pub use check::{
    CommandError, arg_value, arg_values, assert_command, is_blank_option, required_commands,
};
pub use format::{Format, is_true, named_file};
pub use model::{
    AcceptedArg, CommandDescriptor, CommandGroup, GuestProgram, Handler, MailOperation,
};
pub use table::registry;
pub use target::{call_commands, command_line, line_words, list_words, target_call};

/// Returns the row of the command with this id.
#[must_use]
pub fn descriptor(id: &str) -> Option<&'static CommandDescriptor> {
    registry().find(|c| c.id == id)
}

#[cfg(test)]
mod tests;
