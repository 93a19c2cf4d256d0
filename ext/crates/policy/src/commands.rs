//! The command registry: one table drives discovery, policy and dispatch.

use serde::Serialize;
use serde_json::{Value, json};
use wp_codebox_contracts::{CommandCall, ErrorBody, ErrorCode, RuntimePolicy, schema_id};

/// An argument of a command, given as `name=value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AcceptedArg {
    /// Name before the first `=`.
    pub name: &'static str,
    /// What it means.
    pub description: &'static str,
    /// Whether it must be there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
}

/// Who carries a command out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handler {
    /// A program of the working guest.
    Program,
    /// A browser in a guest of its own, looking at the working guest's site.
    Browser,
    /// The runner, which keeps and replaces the state of the working guest.
    Checkpoint,
    /// Nobody here.
    Unsupported {
        /// Why, one sentence.
        reason: &'static str,
    },
}

/// One command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandDescriptor {
    /// Stable id.
    pub id: &'static str,
    /// One sentence.
    pub description: &'static str,
    /// Arguments; any other name is refused.
    pub accepted_args: &'static [AcceptedArg],
    /// Who carries it out.
    pub handler: Handler,
    /// What it prints.
    pub output_shape: &'static str,
    /// Schema of its output, when it has one.
    pub output_schema: Option<&'static str>,
}

const fn arg(name: &'static str, description: &'static str) -> AcceptedArg {
    AcceptedArg {
        name,
        description,
        required: false,
    }
}

const fn required(name: &'static str, description: &'static str) -> AcceptedArg {
    AcceptedArg {
        name,
        description,
        required: true,
    }
}

/// Every command of this backend, in catalogue order.
pub const REGISTRY: &[CommandDescriptor] = &[
    CommandDescriptor {
        id: "inspect-mounted-inputs",
        description: "Lists what the guest sees at each mount target.",
        accepted_args: &[],
        handler: Handler::Program,
        output_shape: "JSON {command, mounts: [{target, mode, exists, entries: [names], entryCount}]}",
        output_schema: None,
    },
    CommandDescriptor {
        id: "command-agent-run",
        description: "Runs a program as the agent, without a shell, in the first writable mount.",
        accepted_args: &[
            required(
                "command",
                "Program; a bare name is looked up in the guest's PATH.",
            ),
            arg("args-json", "JSON list of argument strings."),
            arg("parse-json", "1 to parse stdout as JSON into the result."),
        ],
        handler: Handler::Program,
        output_shape: "The program's stdout and stderr; JSON result with exit code",
        output_schema: Some(schema_id::COMMAND_AGENT_RUN),
    },
    CommandDescriptor {
        id: "wordpress.run-php",
        description: "Runs PHP in the guest with WordPress loaded.",
        accepted_args: &[
            arg("code", "PHP without an opening tag, at most 1 MiB."),
            arg("code-file", "Guest path of a PHP file."),
            arg("bootstrap", "wordpress (default) or none."),
        ],
        handler: Handler::Program,
        output_shape: "What the code prints",
        output_schema: None,
    },
    CommandDescriptor {
        id: "wordpress.wp-cli",
        description: "Runs WP-CLI on the guest's WordPress.",
        accepted_args: &[required(
            "command",
            "Command line without the leading wp; split like a shell would, run without one.",
        )],
        handler: Handler::Program,
        output_shape: "What WP-CLI prints",
        output_schema: None,
    },
];

/// Why a command is refused before anything starts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The id is not in the registry.
    #[error("there is no command {command:?}; `wp-codebox commands` lists them")]
    Unknown {
        /// As given.
        command: String,
    },
    /// It is in the registry, but this backend cannot do it.
    #[error("{command} is not offered by this backend: {reason}")]
    Unsupported {
        /// As given.
        command: String,
        /// Why.
        reason: &'static str,
    },
    /// The policy does not list it.
    #[error("the policy does not allow {command:?}; it allows {}", list(.allowed))]
    Disallowed {
        /// As given.
        command: String,
        /// What the policy lists.
        allowed: Vec<String>,
    },
    /// An argument is not `name=value`, unknown, repeated or missing.
    #[error("{command}: {reason}")]
    Argument {
        /// The command.
        command: String,
        /// What is wrong and what is accepted.
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
    /// The error as it crosses a border.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        match self {
            CommandError::Unknown { command } => {
                ErrorBody::new(ErrorCode::CommandUnknown, self.to_string())
                    .with("command", command.clone())
            }
            CommandError::Unsupported { command, .. } => {
                ErrorBody::new(ErrorCode::CommandUnsupported, self.to_string())
                    .with("command", command.clone())
            }
            CommandError::Disallowed { command, allowed } => {
                ErrorBody::new(ErrorCode::CommandDisallowed, self.to_string())
                    .with("command", command.clone())
                    .with("allowedCommands", allowed.clone())
            }
            CommandError::Argument { command, .. } => {
                ErrorBody::new(ErrorCode::InputInvalid, self.to_string())
                    .with("command", command.clone())
            }
        }
    }
}

/// The descriptor of a command id.
#[must_use]
pub fn descriptor(id: &str) -> Option<&'static CommandDescriptor> {
    REGISTRY.iter().find(|c| c.id == id)
}

/// The value of an argument: the text after the first `=` of the first match.
#[must_use]
pub fn arg_value<'a>(call: &'a CommandCall, name: &str) -> Option<&'a str> {
    call.args
        .iter()
        .find_map(|a| a.strip_prefix(name)?.strip_prefix('='))
}

/// Checks a call against registry and policy, exact match. Runs before dispatch.
pub fn assert_command(
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
    if let Handler::Unsupported { reason } = found.handler {
        return Err(CommandError::Unsupported {
            command: call.command.clone(),
            reason,
        });
    }
    let fail = |reason: String| CommandError::Argument {
        command: call.command.clone(),
        reason,
    };
    let mut seen = Vec::new();
    for given in &call.args {
        let Some((name, _)) = given.split_once('=') else {
            return Err(fail("every argument must be name=value".to_owned()));
        };
        if !found.accepted_args.iter().any(|a| a.name == name) {
            let names: Vec<_> = found.accepted_args.iter().map(|a| a.name).collect();
            return Err(fail(format!(
                "there is no argument {name:?}; accepted are: {}",
                names.join(", ")
            )));
        }
        if seen.contains(&name) {
            return Err(fail(format!("argument {name:?} is given twice")));
        }
        seen.push(name);
    }
    if let Some(missing) = found
        .accepted_args
        .iter()
        .find(|a| a.required && arg_value(call, a.name).is_none_or(|v| v.trim().is_empty()))
    {
        return Err(fail(format!("argument {:?} is required", missing.name)));
    }
    Ok(found)
}

/// The catalogue as JSON, `wp-codebox/command-catalog/v1`.
#[must_use]
pub fn catalog() -> Value {
    let commands: Vec<Value> = REGISTRY
        .iter()
        .map(|c| {
            let mut row = json!({
                "id": c.id,
                "description": c.description,
                "acceptedArgs": c.accepted_args,
                "outputShape": c.output_shape,
                "policyRequirement": format!("Runtime policy commands must include {}", c.id),
                "recipe": true,
            });
            if let Some(schema) = c.output_schema {
                row["outputSchema"] = json!(schema);
            }
            row
        })
        .collect();
    json!({"schema": schema_id::COMMAND_CATALOG, "commands": commands})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::defaults;

    fn call(command: &str, args: &[&str]) -> CommandCall {
        CommandCall {
            command: command.to_owned(),
            args: args.iter().map(|a| (*a).to_owned()).collect(),
        }
    }

    #[test]
    fn policy_comes_before_the_registry() {
        let policy = defaults(vec!["wordpress.run-php".to_owned(), "nope".to_owned()]);
        assert!(assert_command(&policy, &call("wordpress.run-php", &["code=echo 1=1;"])).is_ok());
        let denied = assert_command(&policy, &call("wordpress.wp-cli", &["command=option list"]))
            .unwrap_err();
        assert_eq!(denied.body().code, ErrorCode::CommandDisallowed);
        let unknown = assert_command(&policy, &call("nope", &[])).unwrap_err();
        assert_eq!(unknown.body().code, ErrorCode::CommandUnknown);
        let prefix = assert_command(&policy, &call("wordpress.run", &[])).unwrap_err();
        assert_eq!(prefix.body().code, ErrorCode::CommandDisallowed);
    }

    #[test]
    fn arguments_are_checked() {
        let policy = defaults(REGISTRY.iter().map(|c| c.id.to_owned()).collect());
        for (command, args) in [
            ("wordpress.wp-cli", vec![]),
            ("wordpress.wp-cli", vec!["command= "]),
            ("wordpress.run-php", vec!["cod=1"]),
            ("wordpress.run-php", vec!["code=1", "code=2"]),
            ("inspect-mounted-inputs", vec!["x"]),
        ] {
            let error = assert_command(&policy, &call(command, &args)).unwrap_err();
            assert_eq!(
                error.body().code,
                ErrorCode::InputInvalid,
                "{command} {args:?}"
            );
        }
        let good = call("wordpress.run-php", &["code=a=b"]);
        assert_eq!(arg_value(&good, "code"), Some("a=b"));
    }

    #[test]
    fn catalogue_lists_every_command_once() {
        let catalogue = catalog();
        let rows = catalogue["commands"].as_array().unwrap();
        assert_eq!(rows.len(), REGISTRY.len());
        for row in REGISTRY {
            assert_eq!(REGISTRY.iter().filter(|c| c.id == row.id).count(), 1);
        }
    }
}
