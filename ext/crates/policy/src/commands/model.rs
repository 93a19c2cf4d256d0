//! Types of the registry's rows.

use super::format::Format;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// An argument of a command, given as `name=value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedArg {
    /// Name before the first `=`.
    pub name: &'static str,
    /// Meaning of the argument.
    pub description: &'static str,
    /// Whether the argument is required.
    pub required: bool,
    /// Whether the argument may be given several times.
    pub repeatable: bool,
    /// Format of the value.
    pub format: Format,
}

impl AcceptedArg {
    /// Marks the argument as required.
    pub(super) const fn required(self) -> Self {
        Self {
            required: true,
            ..self
        }
    }

    /// Marks the argument as repeatable.
    pub(super) const fn repeatable(self) -> Self {
        Self {
            repeatable: true,
            ..self
        }
    }
}

impl Serialize for AcceptedArg {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", self.name)?;
        map.serialize_entry("description", self.description)?;
        if self.required {
            map.serialize_entry("required", &true)?;
        }
        if self.repeatable {
            map.serialize_entry("repeatable", &true)?;
        }
        if self.format != Format::Text {
            map.serialize_entry("format", &self.format.to_string())?;
        }
        map.end()
    }
}

/// Group of a command; the catalogue is ordered by group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandGroup {
    /// Programs, PHP, WP-CLI, requests, sessions, tests.
    Core,
    /// Saving and restoring the state of the sandbox.
    Checkpoint,
    /// Reading and changing one object of the site.
    State,
    /// Listing what the site has registered.
    Discovery,
    /// Measuring one request.
    Observation,
    /// Measuring workloads.
    Benchmark,
    /// Fuzzing with many inputs.
    Fuzz,
    /// Opening the site in a browser.
    Browser,
    /// Programs of the host, and agents.
    Host,
}

/// Program in the guest that executes a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestProgram {
    /// The runner starts the program itself: PHP, WP-CLI or the program that the arguments name.
    Direct,
    /// A PHP file below `guest/commands/` of the share directory. It reads the call as JSON
    /// from standard input and prints one JSON document.
    File(&'static str),
}

/// Operation of a command on the captured mails of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailOperation {
    /// Lists the mails since the last reset.
    Inspect,
    /// Excludes the present mails from later inspections.
    Reset,
}

/// Component that executes a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handler {
    /// A program in the working guest.
    Program(GuestProgram),
    /// A browser in a separate guest that opens the working guest's site.
    Browser,
    /// The runner, which saves and restores the state of the working guest.
    Checkpoint,
    /// The runner, which captured the mails of the run's guests.
    Mail(MailOperation),
    /// None: the id is only a permission in a policy's list and cannot be called.
    Right {
        /// Command that needs the permission.
        of: &'static str,
    },
    /// None: this backend does not support the command.
    Unsupported {
        /// Reason, one sentence.
        reason: &'static str,
    },
}

/// A command of the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandDescriptor {
    /// Stable id.
    pub id: &'static str,
    /// Group of the command.
    pub group: CommandGroup,
    /// Description, one sentence.
    pub description: &'static str,
    /// Arguments; any other name is refused.
    pub accepted_args: &'static [AcceptedArg],
    /// Component that executes the command.
    pub handler: Handler,
    /// Format of the output.
    pub output_shape: &'static str,
    /// Schema id of the output, if it has one.
    pub output_schema: Option<&'static str>,
    /// Commands that a policy must also list, because this command executes them.
    pub requires: &'static [&'static str],
}

impl CommandDescriptor {
    /// Returns why the command cannot be called on this backend; `None` if it can.
    #[must_use]
    pub fn refusal(&self) -> Option<&'static str> {
        match self.handler {
            Handler::Program(_) | Handler::Browser | Handler::Checkpoint | Handler::Mail(_) => None,
            Handler::Right { .. } => Some("it is a right in a policy's list, not a command"),
            Handler::Unsupported { reason } => Some(reason),
        }
    }

    /// Returns whether a step of a recipe may use the command.
    #[must_use]
    pub fn in_recipes(&self) -> bool {
        !matches!(self.handler, Handler::Right { .. })
    }

    /// Returns what a policy must list for the command, as a sentence.
    #[must_use]
    pub fn policy_requirement(&self) -> String {
        let mut sentence = format!("Runtime policy commands must include {}", self.id);
        if !self.requires.is_empty() {
            sentence.push_str(", and ");
            sentence.push_str(&self.requires.join(", "));
        }
        sentence
    }

    pub(super) const fn new(
        id: &'static str,
        group: CommandGroup,
        handler: Handler,
        description: &'static str,
    ) -> Self {
        Self {
            id,
            group,
            description,
            accepted_args: &[],
            handler,
            output_shape: "One JSON document",
            output_schema: None,
            requires: &[],
        }
    }

    pub(super) const fn args(self, accepted_args: &'static [AcceptedArg]) -> Self {
        Self {
            accepted_args,
            ..self
        }
    }

    pub(super) const fn prints(self, output_shape: &'static str) -> Self {
        Self {
            output_shape,
            ..self
        }
    }

    pub(super) const fn schema(self, output_schema: &'static str) -> Self {
        Self {
            output_schema: Some(output_schema),
            ..self
        }
    }

    pub(super) const fn requires(self, requires: &'static [&'static str]) -> Self {
        Self { requires, ..self }
    }
}
