//! What a row of the registry says.

use super::format::Format;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// An argument of a command, given as `name=value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedArg {
    /// Name before the first `=`.
    pub name: &'static str,
    /// What it means.
    pub description: &'static str,
    /// Whether it must be there.
    pub required: bool,
    /// Whether it may be given several times.
    pub repeatable: bool,
    /// What its value must look like.
    pub format: Format,
}

impl AcceptedArg {
    /// It must be there.
    pub(super) const fn required(self) -> Self {
        Self {
            required: true,
            ..self
        }
    }

    /// It may be given several times.
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

/// What a command is about; the catalogue is ordered by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandGroup {
    /// Programs, PHP, WP-CLI, requests, sessions, tests.
    Core,
    /// The state of the sandbox, kept and brought back.
    Checkpoint,
    /// Looks at and changes one thing of the site.
    State,
    /// Lists what the site has.
    Discovery,
    /// Measures one request.
    Observation,
    /// Measures workloads.
    Benchmark,
    /// Tries out many inputs.
    Fuzz,
    /// A browser on the site.
    Browser,
    /// Programs of the host, agents.
    Host,
}

/// The program of the guest that carries a command out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestProgram {
    /// The runner makes its command line of the arguments: PHP, WP-CLI, any program.
    Direct,
    /// A file below `guest/commands/` of the share directory. It takes the call as JSON on
    /// standard input and prints one JSON document.
    File(&'static str),
}

/// What a command does with the captured mails of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailOperation {
    /// Shows those that came since the last reset.
    Inspect,
    /// Lets later inspections begin after those that are there.
    Reset,
}

/// Who carries a command out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handler {
    /// A program of the working guest.
    Program(GuestProgram),
    /// A browser in a guest of its own, looking at the working guest's site.
    Browser,
    /// The runner, which keeps and replaces the state of the working guest.
    Checkpoint,
    /// The runner, which has the mails that the run's guests sent.
    Mail(MailOperation),
    /// Nobody: the id stands for a right in a policy's list and cannot be called.
    Right {
        /// The command that needs it.
        of: &'static str,
    },
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
    /// What it is about.
    pub group: CommandGroup,
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
    /// Commands that a policy must list beside it, because it comes down to them.
    pub requires: &'static [&'static str],
}

impl CommandDescriptor {
    /// Why it cannot be called here; nothing when it can.
    #[must_use]
    pub fn refusal(&self) -> Option<&'static str> {
        match self.handler {
            Handler::Program(_) | Handler::Browser | Handler::Checkpoint | Handler::Mail(_) => None,
            Handler::Right { .. } => Some("it is a right in a policy's list, not a command"),
            Handler::Unsupported { reason } => Some(reason),
        }
    }

    /// Whether a step of a recipe may be this command.
    #[must_use]
    pub fn in_recipes(&self) -> bool {
        !matches!(self.handler, Handler::Right { .. })
    }

    /// What a policy must list for it, as a sentence.
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
