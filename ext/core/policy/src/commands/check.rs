//! Checks a call of a command against the policy and the command registry, before the command is
//! executed.

use super::call::{arg_value, required_commands};
use super::descriptor;
use super::format::Format;
use super::model::{AcceptedArg, CommandDescriptor, Handler};
use super::target::{line_words, target_call};
use std::collections::BTreeSet;
use wp_codebox_contracts::{CodedError, CommandCall, ErrorBody, RuntimePolicy};

/// Why the call of a command is refused before the command is executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(detail = Self::detail)]
pub enum CommandError {
    /// The registry has no command with this id.
    #[error("there is no command {command:?}; `wp-codebox commands` lists all commands")]
    #[code(CommandUnknown)]
    Unknown {
        /// Command id of the call.
        command: String,
    },
    /// The registry lists the command, but this backend does not support it.
    #[error("the command {command} is not supported: {reason}")]
    #[code(CommandUnsupported)]
    Unsupported {
        /// Command id of the call.
        command: String,
        /// Why the command is not supported, one sentence.
        reason: &'static str,
    },
    /// The command can only be a step of a recipe.
    #[error(
        "the command {command} runs the agent of a recipe and can only be a step of its workflow; use `wp-codebox recipe-run`, or `wp-codebox run --goal` for an agent without other steps"
    )]
    #[code(CommandUnsupported)]
    StepOnly {
        /// Command id of the call.
        command: String,
    },
    /// The policy does not list the command.
    #[error("the policy does not allow the command {command:?}; to allow it, add it to the policy's commands (now: {})", list(.allowed))]
    #[code(CommandDisallowed)]
    Disallowed {
        /// Command id of the call.
        command: String,
        /// Ids of the commands that the policy lists.
        allowed: Vec<String>,
    },
    /// The policy lists the command, but not all commands that it requires.
    #[error(
        "the policy allows the command {command:?}, but not these commands that it requires: {}; add them to the policy's commands",
        list(.missing)
    )]
    #[code(CommandDisallowed)]
    Incomplete {
        /// Command id of the call.
        command: String,
        /// Ids of required commands that the policy does not list.
        missing: Vec<String>,
        /// Ids of the commands that the policy lists.
        allowed: Vec<String>,
    },
    /// An argument of the call is unknown, repeated, missing, malformed or not of the form
    /// `name=value`.
    #[error("the arguments of the command {command} are not valid: {reason}")]
    #[code(InputInvalid)]
    Argument {
        /// Command id of the call.
        command: String,
        /// What is wrong and which values are accepted.
        reason: String,
    },
}

fn list(items: &[String]) -> String {
    if items.is_empty() {
        "none".to_owned()
    } else {
        items.join(", ")
    }
}

impl CommandError {
    fn detail(&self, body: ErrorBody) -> ErrorBody {
        match self {
            Self::Unknown { command }
            | Self::Unsupported { command, .. }
            | Self::StepOnly { command }
            | Self::Argument { command, .. } => body.with("command", command.clone()),
            Self::Disallowed { command, allowed } => body
                .with("command", command.clone())
                .with("allowedCommands", allowed.clone()),
            Self::Incomplete {
                command,
                missing,
                allowed,
            } => body
                .with("command", command.clone())
                .with("missingCommands", missing.clone())
                .with("allowedCommands", allowed.clone()),
        }
    }
}

/// Checks that the policy lists the command's exact id and every command that it requires, and that
/// the registry accepts the arguments. The caller must check every call before it executes it.
pub fn assert_command(
    policy: &RuntimePolicy,
    call: &CommandCall,
) -> Result<&'static CommandDescriptor, CommandError> {
    // This check comes first, because no policy can allow such a call.
    if descriptor(&call.command).is_some_and(|found| found.handler == Handler::Agent) {
        return Err(CommandError::StepOnly {
            command: call.command.clone(),
        });
    }
    assert_step(policy, call)
}

/// Checks a call like [`assert_command`], but for a step of a recipe, which may also run the agent
/// of the run.
pub fn assert_step(
    policy: &RuntimePolicy,
    call: &CommandCall,
) -> Result<&'static CommandDescriptor, CommandError> {
    if !policy.commands.contains(&call.command) {
        return Err(CommandError::Disallowed {
            command: call.command.clone(),
            allowed: policy.commands.clone(),
        });
    }
    let found = descriptor(&call.command).ok_or_else(|| CommandError::Unknown {
        command: call.command.clone(),
    })?;
    if let Some(reason) = found.refusal() {
        return Err(CommandError::Unsupported {
            command: call.command.clone(),
            reason,
        });
    }
    let missing: Vec<String> = required_commands(found.id)
        .into_iter()
        .filter(|id| !policy.commands.iter().any(|c| c == id))
        .map(str::to_owned)
        .collect();
    if !missing.is_empty() {
        return Err(CommandError::Incomplete {
            command: call.command.clone(),
            missing,
            allowed: policy.commands.clone(),
        });
    }
    let invalid = |reason| CommandError::Argument {
        command: call.command.clone(),
        reason,
    };
    check_arguments(found, call).map_err(invalid)?;
    if let Some(target) = target_call(call) {
        if target.command == found.id {
            return Err(invalid(
                "the argument command names this command itself; name a program or another command"
                    .to_owned(),
            ));
        }
        assert_command(policy, &target)?;
    }
    Ok(found)
}

/// Returns whether an argument counts as not given: its value is blank, it is optional, and its
/// format is not text. False for commands of browsers and mails, which accept no blank values.
#[must_use]
pub fn is_blank_option(found: &CommandDescriptor, arg: &AcceptedArg, value: &str) -> bool {
    matches!(
        found.handler,
        Handler::Program(_) | Handler::Checkpoint | Handler::Agent
    ) && !arg.required
        && arg.format != Format::Text
        && value.trim().is_empty()
}

fn check_arguments(found: &CommandDescriptor, call: &CommandCall) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    let words = line_words(found, call);
    for (at, given) in call.args.iter().enumerate() {
        if words.contains(&at) {
            continue;
        }
        let Some((name, value)) = given.split_once('=') else {
            return Err("every argument must be name=value".to_owned());
        };
        let Some(arg) = found.accepted_args.iter().find(|a| a.name == name) else {
            let names: Vec<_> = found.accepted_args.iter().map(|a| a.name).collect();
            return Err(if names.is_empty() {
                format!("there is no argument {name:?}; the command takes none")
            } else {
                format!(
                    "there is no argument {name:?}; accepted are: {}",
                    names.join(", ")
                )
            });
        };
        if !seen.insert(name) && !arg.repeatable {
            return Err(format!("argument {name:?} is given twice"));
        }
        if is_blank_option(found, arg, value) {
            continue;
        }
        arg.format
            .check(value)
            .map_err(|accepted| format!("argument {name:?} {accepted}"))?;
    }
    match found
        .accepted_args
        .iter()
        .find(|a| a.required && arg_value(call, a.name).is_none_or(|v| v.trim().is_empty()))
    {
        Some(missing) => Err(format!("argument {:?} is required", missing.name)),
        None => Ok(()),
    }
}
