//! Types of the rows of the command registry.

use super::format::Format;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// An argument that a command accepts, given as `name=value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedArg {
    /// Name of the argument, the text before the first `=`.
    pub name: &'static str,
    /// Meaning of the argument, for the catalogue.
    pub description: &'static str,
    /// Whether the argument is required.
    pub required: bool,
    /// Whether the argument may be given several times.
    pub repeatable: bool,
    /// Format that the value must have.
    pub format: Format,
}

impl AcceptedArg {
    /// Returns the argument as a required one.
    pub(super) const fn required(self) -> Self {
        Self {
            required: true,
            ..self
        }
    }

    /// Returns the argument as one that may be given several times.
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

/// Group that a command belongs to; the catalogue is ordered by group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandGroup {
    /// Commands for programs, PHP, WP-CLI, requests, sessions and tests.
    Core,
    /// Commands that save and restore the state of the sandbox.
    Checkpoint,
    /// Commands that read and change one object of the site.
    State,
    /// Commands that list what the site has registered.
    Discovery,
    /// Commands that measure one request.
    Observation,
    /// Commands that measure workloads.
    Benchmark,
    /// Commands that try the site with many generated inputs.
    Fuzz,
    /// Commands that open the site in a browser.
    Browser,
    /// Commands for programs of the host, for agents and for the mails of a run.
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

/// What a command does with the mails that the guest sent and the runner captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailOperation {
    /// Lists the mails that were captured since the last reset.
    Inspect,
    /// Hides the mails that were captured so far from later listings.
    Reset,
}

/// Which program executes a command, or why none does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handler {
    /// A program in the work guest, in which the agent runs.
    Program(GuestProgram),
    /// A browser in a separate guest, which opens the site of the work guest.
    Browser,
    /// The runner, which saves and restores the state of the work guest.
    Checkpoint,
    /// The runner, which captured the mails of the run's guests.
    Mail(MailOperation),
    /// The agent of the run, which the runner starts in the work guest. Only a step of a recipe can
    /// call it.
    Agent,
    /// No program: the id is a permission that a policy can list, and it cannot be called.
    Right {
        /// Id of the command that needs the permission.
        of: &'static str,
    },
    /// No program: the registry lists the command, but this backend does not support it.
    Unsupported {
        /// Why the command is not supported, one sentence.
        reason: &'static str,
    },
}

/// One row of the command registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandDescriptor {
    /// Stable id of the command, e.g. `wordpress.run-php`.
    pub id: &'static str,
    /// Group of the command in the catalogue.
    pub group: CommandGroup,
    /// Description of the command for the catalogue, one sentence.
    pub description: &'static str,
    /// Arguments that the command accepts; any other name is refused.
    pub accepted_args: &'static [AcceptedArg],
    /// Which program executes the command.
    pub handler: Handler,
    /// Description of what the command prints, for the catalogue.
    pub output_shape: &'static str,
    /// Schema id of the output document, if it has one.
    pub output_schema: Option<&'static str>,
    /// Ids of other commands that a policy must also list, because this command executes them.
    pub requires: &'static [&'static str],
}

impl CommandDescriptor {
    /// Returns why the command cannot be called on this backend; `None` if it can.
    #[must_use]
    pub fn refusal(&self) -> Option<&'static str> {
        match self.handler {
            Handler::Program(_)
            | Handler::Browser
            | Handler::Checkpoint
            | Handler::Mail(_)
            | Handler::Agent => None,
            Handler::Right { .. } => {
                Some("it is a right that a policy can list, not a command that can be called")
            }
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
