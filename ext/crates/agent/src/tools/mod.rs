//! The tools of the built-in loop, carried out in the guest.
//!
//! Every call is one or more programs in the guest, run and recorded as any other. What they
//! answer is untrusted: sizes are bounded before anything is parsed, and an answer that cannot
//! be read is a failure of that one call. A call has a time of its own; when it is up the program
//! is ended and the guest lives on. Whatever the model gets is bounded and redacted.

mod arguments;
mod changing;
mod executor;
mod programs;
mod reading;
mod shown;

#[cfg(test)]
mod tests;

pub use executor::{GuestExecutor, MountChange, Taken};

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
    executor: H,
    set: ToolSet,
    specs: Vec<ToolSpec>,
    place: Place,
}

/// What one call came to, before it is bounded.
#[derive(Debug)]
struct ToolOutput {
    text: String,
    status: ToolStatus,
    end: Option<TaskEnd>,
}

impl ToolOutput {
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
enum ToolError {
    /// What is wrong with the call. The model reads it behind the tool's id.
    Told(String),
    /// How the call's program ended, in the words of whoever ended it.
    Ended(String),
    /// No further call is possible.
    Halt(Halt),
}

type ToolResult = Result<ToolOutput, ToolError>;

impl From<Halt> for ToolError {
    fn from(halt: Halt) -> Self {
        Self::Halt(halt)
    }
}

impl From<ErrorBody> for ToolError {
    fn from(error: ErrorBody) -> Self {
        Self::Halt(Halt::Failure(error))
    }
}

impl From<String> for ToolError {
    fn from(text: String) -> Self {
        Self::Told(text)
    }
}

impl From<&str> for ToolError {
    fn from(text: &str) -> Self {
        Self::Told(text.to_owned())
    }
}

impl<H: GuestExecutor> Tools<H> {
    /// The tools of a set, without those of the parent.
    pub fn new(executor: H, set: ToolSet, place: Place) -> Self {
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
            executor,
            set,
            specs,
            place,
        }
    }

    /// Whoever carries the calls out, e.g. for its record.
    pub fn executor(&mut self) -> &mut H {
        &mut self.executor
    }

    fn carry_out(&mut self, tool: BuiltinTool, arguments: &Arguments<'_>) -> ToolResult {
        match tool {
            BuiltinTool::Read => self.read(arguments),
            BuiltinTool::List => self.list(arguments),
            BuiltinTool::Search => self.search(arguments),
            BuiltinTool::Write => self.write(arguments),
            BuiltinTool::Edit => self.edit(arguments),
            BuiltinTool::Patch => self.patch(arguments),
            BuiltinTool::Delete => self.delete(arguments),
            BuiltinTool::Diff => self.diff(arguments),
            BuiltinTool::Terminal => self.terminal(arguments),
            BuiltinTool::Program => self.one_program(arguments),
            BuiltinTool::RunPhp => self.run_php(arguments),
            BuiltinTool::WpCli => self.wp_cli(arguments),
            BuiltinTool::Ability => self.ability(arguments),
            BuiltinTool::HttpRequest => self.http_request(arguments),
            BuiltinTool::Tests => self.tests(arguments),
            BuiltinTool::Finish => {
                let summary = arguments.text("summary")?.to_owned();
                Ok(ToolOutput {
                    end: Some(TaskEnd::Finished { summary }),
                    ..ToolOutput::ok("The task is ended as finished; its checks decide.")
                })
            }
            BuiltinTool::Blocked => {
                let reason = arguments.text("reason")?.to_owned();
                Ok(ToolOutput {
                    end: Some(TaskEnd::Blocked { reason }),
                    ..ToolOutput::ok("The task is ended as blocked.")
                })
            }
        }
    }

    fn answer(&mut self, call: &ToolCall) -> ToolResult {
        let tool = match self.set.find(&call.name) {
            Ok(tool) => tool,
            Err(refusal) => {
                return Ok(ToolOutput {
                    status: ToolStatus::Denied,
                    ..ToolOutput::ok(refusal.body().to_string())
                });
            }
        };
        let id = tool.id.clone();
        let read = match (&tool.kind, &call.arguments) {
            (ToolKind::Builtin(kind), Ok(given)) => {
                Arguments::of(&id, given, &tool.parameters).map(|arguments| (*kind, arguments))
            }
            (ToolKind::Builtin(_), Err(why)) => {
                Err(format!("the arguments are not a JSON object: {why}"))
            }
            (ToolKind::Parent(_), _) => {
                Err("the host answers for it, and nobody is there who could".to_owned())
            }
        };
        let answer = match read {
            Ok((kind, arguments)) => self.carry_out(kind, &arguments),
            Err(why) => Err(ToolError::Told(why)),
        };
        answer.map_err(|error| match error {
            ToolError::Told(why) => ToolError::Told(format!("{id}: {why}")),
            other => other,
        })
    }

    /// The call of a program that a tool runs.
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
    fn run(&mut self, call: &Call, timeout: Duration) -> Result<Step, ToolError> {
        let step = self.executor.run(call, timeout)?;
        self.go_on(&step)?;
        Ok(step)
    }

    /// Whether the guest is still there.
    fn go_on(&mut self, step: &Step) -> Result<(), ToolError> {
        let stop = match &step.result.end {
            ExecutionEnd::Exited { .. } | ExecutionEnd::Signalled { .. } => return Ok(()),
            ExecutionEnd::NotStarted { error } => {
                return Err(ToolError::Ended(error.message.clone()));
            }
            ExecutionEnd::TimedOut => Stop::Timeout,
            ExecutionEnd::Cancelled => Stop::Cancelled,
            // One program can be at a limit and the guest alive: then the model may try another way.
            ExecutionEnd::LimitReached { error } if self.executor.is_alive()? => {
                return Err(ToolError::Ended(error.message.clone()));
            }
            ExecutionEnd::LimitReached { error } => Stop::Failed(error.clone()),
            ExecutionEnd::GuestDied { death } => Stop::Failed(death.attach_to(ErrorBody::new(
                wp_codebox_contracts::ErrorCode::RunFailed,
                format!("the sandbox was lost while a tool was at work: {death}"),
            ))),
        };
        Err(ToolError::Halt(Halt::Stop(stop)))
    }
}

impl<H: GuestExecutor> Toolbox for Tools<H> {
    fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer, Halt> {
        let started = Instant::now();
        let before = self.executor.executions();
        let said = match self.answer(call) {
            Ok(said) => said,
            Err(ToolError::Told(text) | ToolError::Ended(text)) => ToolOutput::failed(text),
            Err(ToolError::Halt(halt)) => return Err(halt),
        };
        let text = self.executor.clean(&said.text);
        Ok(ToolAnswer {
            text: shown::bounded(&text, ANSWER_BYTES),
            status: said.status,
            end: said.end,
            executions: self.executor.executions_since(before),
            duration: started.elapsed(),
        })
    }
}
