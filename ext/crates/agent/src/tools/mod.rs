//! The tools of the built-in loop, carried out in the guest.
//!
//! Every call is one or more programs in the guest, run and recorded as any other. What they
//! answer is untrusted: sizes are bounded before anything is parsed, and an answer that cannot
//! be read is a failure of that one call. A call has a time of its own; when it is up the program
//! is ended and the guest lives on. Whatever the model gets is bounded and redacted.

mod arguments;
mod changing;
mod hands;
mod programs;
mod reading;
mod shown;

#[cfg(test)]
mod tests;

pub use hands::{Hands, MountChange, Taken};

use super::{Halt, TaskEnd, ToolAnswer, ToolCall, ToolSpec, ToolStatus, Toolbox};
use arguments::Arguments;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, GuestPath};
use wp_codebox_policy::{BuiltinTool, ToolKind, ToolSet};
use wp_codebox_runtime::{Call, ExecutionEnd, GuestMount, Step, Stop};

/// Longest answer to the model, bytes.
const ANSWER_BYTES: usize = 48 * 1024;

/// Where the tools work.
#[derive(Debug, Clone)]
pub struct Place {
    /// Mounts as programs of the guest see them.
    pub mounts: Vec<GuestMount>,
    /// Where programs start.
    pub cwd: GuestPath,
    /// The task's checks.
    pub checks: Vec<String>,
    /// What programs of the guest hold of the run's secrets.
    pub environment: BTreeMap<String, String>,
}

/// The tools that act in the guest. Those of the parent are not among them.
pub struct Tools<H> {
    hands: H,
    set: ToolSet,
    specs: Vec<ToolSpec>,
    place: Place,
}

/// What one call came to, before it is bounded.
#[derive(Debug)]
struct Said {
    text: String,
    status: ToolStatus,
    end: Option<TaskEnd>,
}

impl Said {
    fn ok(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            status: ToolStatus::Ok,
            end: None,
        }
    }

    fn failed(text: impl Into<String>) -> Self {
        Self {
            status: ToolStatus::Failed,
            ..Self::ok(text)
        }
    }
}

/// Why a call came to nothing.
#[derive(Debug)]
enum Trouble {
    /// The model is told, and can do something about it.
    Told(String),
    /// No further call is possible.
    Halt(Halt),
}

impl From<Halt> for Trouble {
    fn from(halt: Halt) -> Self {
        Self::Halt(halt)
    }
}

impl From<ErrorBody> for Trouble {
    fn from(error: ErrorBody) -> Self {
        Self::Halt(Halt::Failure(error))
    }
}

impl From<String> for Trouble {
    fn from(text: String) -> Self {
        Self::Told(text)
    }
}

impl<H: Hands> Tools<H> {
    /// The tools of a set, without those of the parent.
    pub fn new(hands: H, set: ToolSet, place: Place) -> Self {
        let specs = set
            .offered()
            .iter()
            .filter(|tool| matches!(tool.kind, ToolKind::Builtin(_)))
            .map(|tool| ToolSpec {
                id: tool.id.clone(),
                name: tool.name.clone(),
                description: tool.description.clone(),
                parameters: tool.parameters.clone(),
            })
            .collect();
        Self {
            hands,
            set,
            specs,
            place,
        }
    }

    /// Whoever carries the calls out, e.g. for its record.
    pub fn hands(&mut self) -> &mut H {
        &mut self.hands
    }

    fn carry_out(
        &mut self,
        tool: BuiltinTool,
        id: &str,
        arguments: &Arguments<'_>,
    ) -> Result<Said, Trouble> {
        match tool {
            BuiltinTool::Read => self.read(id, arguments),
            BuiltinTool::List => self.list(id, arguments),
            BuiltinTool::Search => self.search(id, arguments),
            BuiltinTool::Write => self.write(id, arguments),
            BuiltinTool::Edit => self.edit(id, arguments),
            BuiltinTool::Patch => self.patch(id, arguments),
            BuiltinTool::Delete => self.delete(id, arguments),
            BuiltinTool::Diff => self.diff(arguments),
            BuiltinTool::Terminal => self.terminal(id, arguments),
            BuiltinTool::Program => self.one_program(id, arguments),
            BuiltinTool::RunPhp => self.run_php(id, arguments),
            BuiltinTool::WpCli => self.wp_cli(id, arguments),
            BuiltinTool::Ability => self.ability(id, arguments),
            BuiltinTool::HttpRequest => self.http_request(id, arguments),
            BuiltinTool::Tests => self.tests(id, arguments),
            BuiltinTool::Finish => {
                let summary = arguments.text("summary")?.to_owned();
                Ok(Said {
                    end: Some(TaskEnd::Finished { summary }),
                    ..Said::ok("The task is ended as finished; its checks decide.")
                })
            }
            BuiltinTool::Blocked => {
                let reason = arguments.text("reason")?.to_owned();
                Ok(Said {
                    end: Some(TaskEnd::Blocked { reason }),
                    ..Said::ok("The task is ended as blocked.")
                })
            }
        }
    }

    fn answer(&mut self, call: &ToolCall) -> Result<Said, Trouble> {
        let tool = match self.set.find(&call.name) {
            Ok(tool) => tool,
            Err(refusal) => {
                return Ok(Said {
                    status: ToolStatus::Denied,
                    ..Said::ok(refusal.body().to_string())
                });
            }
        };
        let ToolKind::Builtin(kind) = tool.kind else {
            return Err(Trouble::Told(format!(
                "{}: the host answers for it, and nobody is there who could",
                tool.id
            )));
        };
        let id = tool.id.clone();
        let given = call.arguments.as_ref().map_err(|why| {
            Trouble::Told(format!("{id}: the arguments are not a JSON object: {why}"))
        })?;
        let arguments = Arguments::of(&id, given, &tool.parameters)?;
        self.carry_out(kind, &id, &arguments)
    }

    /// The frame of a program's call.
    fn program(&self, tool: &str, shown: Vec<String>, argv: Vec<String>) -> Call {
        Call {
            command: tool.to_owned(),
            args: shown,
            phase: "tool",
            argv,
            env: self.place.environment.clone(),
            cwd: self.place.cwd.clone(),
            stdin: None,
        }
    }

    /// Runs a program; an end that ends the guest ends the work.
    fn run(&mut self, call: &Call, timeout: Duration) -> Result<Step, Trouble> {
        let step = self.hands.run(call, timeout)?;
        self.go_on(&step)?;
        Ok(step)
    }

    /// Whether the guest is still there.
    fn go_on(&mut self, step: &Step) -> Result<(), Trouble> {
        let stop = match &step.result.end {
            ExecutionEnd::Exited { .. } | ExecutionEnd::Signalled { .. } => return Ok(()),
            ExecutionEnd::NotStarted { error } => return Err(Trouble::Told(error.message.clone())),
            ExecutionEnd::TimedOut => Stop::Timeout,
            ExecutionEnd::Cancelled => Stop::Cancelled,
            // One program can be at a limit and the guest alive: then the model may try another way.
            ExecutionEnd::LimitReached { error } if self.hands.is_alive()? => {
                return Err(Trouble::Told(error.message.clone()));
            }
            ExecutionEnd::LimitReached { error } => Stop::Failed(error.clone()),
            ExecutionEnd::GuestDied { death } => Stop::Failed(death.told_in(ErrorBody::new(
                wp_codebox_contracts::ErrorCode::RunFailed,
                format!("the sandbox was lost while a tool was at work: {death}"),
            ))),
        };
        Err(Trouble::Halt(Halt::Stop(stop)))
    }
}

impl<H: Hands> Toolbox for Tools<H> {
    fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer, Halt> {
        let started = Instant::now();
        let before = self.hands.executions();
        let said = match self.answer(call) {
            Ok(said) => said,
            Err(Trouble::Told(text)) => Said::failed(text),
            Err(Trouble::Halt(halt)) => return Err(halt),
        };
        let text = self.hands.clean(&said.text);
        Ok(ToolAnswer {
            text: shown::bounded(&text, ANSWER_BYTES),
            status: said.status,
            end: said.end,
            executions: self.hands.executions_since(before),
            duration: started.elapsed(),
        })
    }
}
