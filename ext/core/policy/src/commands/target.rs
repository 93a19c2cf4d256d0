//! Commands that a call executes beyond the one that it names, and words of its command line.

use super::call::{arg_value, required_commands};
use super::descriptor;
use super::format::Format;
use super::model::CommandDescriptor;
use serde_json::Value;
use wp_codebox_contracts::{CommandCall, parse_json};

/// Id of the command that executes a program, or another command of the registry as its target.
const AGENT_RUN: &str = "command-agent-run";

/// Returns the registry command that a call of `command-agent-run` executes; `None` for any other
/// call, and for one that names a program of the guest.
#[must_use]
pub fn target_call(call: &CommandCall) -> Option<CommandCall> {
    if call.command != AGENT_RUN {
        return None;
    }
    let target = descriptor(arg_value(call, "command")?.trim())?;
    let args = arg_value(call, "args-json").and_then(list_words);
    Some(CommandCall {
        command: target.id.to_owned(),
        args: args.unwrap_or_default(),
    })
}

/// Returns whether a call exercises a block in the block editor of a browser. A program of the
/// guest executes every other call of the same command.
#[must_use]
pub fn runs_block_editor(call: &CommandCall) -> bool {
    call.command == "wordpress.block-exercise"
        && arg_value(call, "mode") == Some("editor-insert-save")
}

/// Returns the ids that a policy must list for a call: those of its command and, for
/// `command-agent-run`, those of its target.
#[must_use]
pub fn call_commands(call: &CommandCall) -> Vec<String> {
    let target = target_call(call);
    let ids = std::iter::once(call).chain(&target);
    ids.flat_map(|call| required_commands(&call.command))
        .map(str::to_owned)
        .collect()
}

/// Returns the items of a JSON list of strings, numbers and booleans as text; `None` for any other
/// text. A blank text is an empty list.
#[must_use]
pub fn list_words(text: &str) -> Option<Vec<String>> {
    if text.trim().is_empty() {
        return Some(Vec::new());
    }
    let items: Vec<Value> = parse_json(text.as_bytes()).ok()?;
    items
        .into_iter()
        .map(|item| match item {
            Value::String(text) => Some(text),
            Value::Number(_) | Value::Bool(_) => Some(item.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        })
        .collect()
}

/// Returns the positions of the arguments that continue the command line of the call. The command
/// line begins with the first argument of the format [`Format::CommandLine`]; every later argument
/// without an accepted name continues it.
#[must_use]
pub fn line_words(found: &CommandDescriptor, call: &CommandCall) -> Vec<usize> {
    let named = |arg: &str| {
        let name = arg.split_once('=').map(|(name, _)| name);
        found.accepted_args.iter().find(|a| Some(a.name) == name)
    };
    let line = |arg: &String| named(arg).is_some_and(|a| a.format == Format::CommandLine);
    let Some(first) = call.args.iter().position(line) else {
        return Vec::new();
    };
    (first + 1..call.args.len())
        .filter(|at| named(&call.args[*at]).is_none())
        .collect()
}

/// Returns the words of a command line and of the arguments that continue it, split by the rules
/// of a shell, without a leading `wp`.
///
/// # Errors
///
/// A quotation mark is not closed.
pub fn command_line(
    found: &CommandDescriptor,
    call: &CommandCall,
) -> Result<Vec<String>, shell_words::ParseError> {
    let arg = found
        .accepted_args
        .iter()
        .find(|a| a.format == Format::CommandLine);
    let line = arg.and_then(|a| arg_value(call, a.name));
    let mut words = shell_words::split(line.unwrap_or_default())?;
    for at in line_words(found, call) {
        let word = &call.args[at];
        // An argument is one word even if it has blanks, unless it contains quotes or backslashes.
        if word.contains(['\'', '"', '\\']) {
            words.extend(shell_words::split(word)?);
        } else {
            words.push(word.clone());
        }
    }
    if words.first().is_some_and(|word| word == "wp") {
        words.remove(0);
    }
    Ok(words)
}
