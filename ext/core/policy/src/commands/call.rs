//! Values of the arguments of a call, and commands that a command requires.

use super::descriptor;
use wp_codebox_contracts::CommandCall;

/// Returns the value of the first argument with this name: the text after its first `=`.
#[must_use]
pub fn arg_value<'a>(call: &'a CommandCall, name: &str) -> Option<&'a str> {
    arg_values(call, name).next()
}

/// Returns the values of all arguments with this name, in the order of the call.
pub fn arg_values<'a>(call: &'a CommandCall, name: &str) -> impl Iterator<Item = &'a str> {
    call.args
        .iter()
        .filter_map(move |a| a.strip_prefix(name)?.strip_prefix('='))
}

/// Returns the ids that a policy must list for a command: its own id and those of the commands
/// that it requires, directly or through another one. An id that is not in the registry is
/// returned alone.
#[must_use]
pub fn required_commands(id: &str) -> Vec<&str> {
    let mut found = vec![id];
    let mut next = 0;
    while let Some(id) = found.get(next).copied() {
        next += 1;
        for more in descriptor(id).map_or(&[][..], |c| c.requires) {
            if !found.contains(more) {
                found.push(more);
            }
        }
    }
    found
}
