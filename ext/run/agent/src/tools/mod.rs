//! Tools of the built-in agent, executed in the guest.
//!
//! Most calls run programs in the guest, which are recorded like all other programs of the run. The
//! output of these programs is untrusted: it is size-limited before parsing, and output that cannot
//! be parsed fails only this call. Every call has a timeout, which ends the program but not the
//! guest. Every result for the model is redacted and cut to a maximum length.

mod arguments;
mod changing;
mod executor;
mod programs;
mod reading;
mod shown;
mod wasi;
mod wasi_tool;

#[cfg(test)]
mod tests;

pub use executor::{GuestExecutor, MountChange, RawOutput};
pub use wasi_tool::GuestWasiTool;

use super::{Halt, TaskEnd, ToolAnswer, ToolCall, ToolSpec, ToolStatus, Toolbox};
use arguments::Arguments;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{CodedError, ErrorBody, GuestPath};
use wp_codebox_policy::{BuiltinTool, ToolKind, ToolSet};
use wp_codebox_runtime::{Call, ExecutionEnd, GuestMount, Step, Stop};

/// Maximum length of a tool's result for the model, in bytes.
const ANSWER_BYTES: usize = 48 * 1024;

/// Facts about the guest and the task that the tools need.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// Host directories that the guest sees, with their guest paths.
    pub mounts: Vec<GuestMount>,
    /// Working directory of the programs that the tools run.
    pub cwd: GuestPath,
    /// Command lines that check the agent's work, for the tool that runs tests.
    pub checks: Vec<String>,
    /// Environment variables of the programs that the tools run: secrets, or placeholders for them.
    pub environment: BTreeMap<String, String>,
    /// Registered WASI tools that are mounted in the guest.
    pub wasi: Vec<GuestWasiTool>,
}

/// The tools that run in the guest. [`crate::ParentTools`] has those that the caller's process
/// executes.
pub struct Tools<H> {
    executor: H,
    set: ToolSet,
    specs: Vec<ToolSpec>,
    context: ToolContext,
}

/// Result of one tool call before it is cut to the maximum length.
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

/// Reason why a tool call has no result.
#[derive(Debug)]
enum ToolError {
    /// The call is wrong, or its result is missing or unusable; the model gets this text with the
    /// tool's id in front.
    InvalidCall(String),
    /// The program that executes the call could not start, or reached a limit; the text says which.
    ProgramEnded(String),
    /// The agent loop must end.
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
        Self::InvalidCall(text)
    }
}

impl From<&str> for ToolError {
    fn from(text: &str) -> Self {
        Self::InvalidCall(text.to_owned())
    }
}

/// Puts the tool's id in front of the reason of an invalid call.
fn with_id(id: &str, error: ToolError) -> ToolError {
    match error {
        ToolError::InvalidCall(why) => ToolError::InvalidCall(format!("{id}: {why}")),
        other => other,
    }
}

impl<H: GuestExecutor> Tools<H> {
    /// Creates the tools of `set`, except those that the caller's process executes.
    pub fn new(executor: H, set: ToolSet, context: ToolContext) -> Self {
        let specs = set
            .offered()
            .iter()
            .filter(|tool| matches!(tool.kind, ToolKind::Builtin(_) | ToolKind::Wasi(_)))
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
            context,
        }
    }

    /// Returns the executor that runs the guest programs.
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
                    ..ToolOutput::ok(
                        "The task is ended as finished; its checks decide whether it succeeded.",
                    )
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
        if let ToolKind::Wasi(wasi) = &tool.kind {
            let wasi = wasi.clone();
            return self.wasi(&wasi, call).map_err(|error| with_id(&id, error));
        }
        let read = match (&tool.kind, &call.arguments) {
            (ToolKind::Builtin(kind), Ok(given)) => {
                Arguments::of(&id, given, &tool.parameters).map(|arguments| (*kind, arguments))
            }
            (ToolKind::Builtin(_), Err(why)) => {
                Err(format!("the arguments are not a JSON object: {why}"))
            }
            (ToolKind::Parent(_) | ToolKind::Wasi(_), _) => Err(
                "this tool runs in the parent process, but no parent process is connected"
                    .to_owned(),
            ),
        };
        let answer = match read {
            Ok((kind, arguments)) => self.carry_out(kind, &arguments),
            Err(why) => Err(ToolError::InvalidCall(why)),
        };
        answer.map_err(|error| with_id(&id, error))
    }

    /// Returns the program to run in the guest for a tool. `shown` is what the journal records as
    /// its arguments.
    fn program(&self, tool: &str, shown: Vec<String>, argv: Vec<String>) -> Call {
        Call {
            command: tool.to_owned(),
            args: shown,
            phase: "tool",
            argv,
            env: self.context.environment.clone(),
            cwd: self.context.cwd.clone(),
            stdin: None,
        }
    }

    /// Runs a program; fails with [`ToolError::Halt`] when the guest has ended.
    fn run(&mut self, call: &Call, timeout: Duration) -> Result<Step, ToolError> {
        let step = self.executor.run(call, timeout)?;
        self.go_on(&step)?;
        Ok(step)
    }

    /// Fails with [`ToolError::Halt`] when the guest or the run has ended, and with
    /// [`ToolError::ProgramEnded`] when only this program could not start or reached a limit.
    fn go_on(&mut self, step: &Step) -> Result<(), ToolError> {
        let stop = match &step.result.end {
            ExecutionEnd::Exited { .. } | ExecutionEnd::Signalled { .. } => return Ok(()),
            ExecutionEnd::NotStarted { error } => {
                return Err(ToolError::ProgramEnded(error.message.clone()));
            }
            ExecutionEnd::TimedOut => Stop::Timeout,
            ExecutionEnd::Cancelled => Stop::Cancelled,
            // A limit can end one program while the guest continues to run; the model may then try
            // something else.
            ExecutionEnd::LimitReached { error } if self.executor.is_alive()? => {
                return Err(ToolError::ProgramEnded(error.message.clone()));
            }
            ExecutionEnd::LimitReached { error } => Stop::Failed(error.clone()),
            ExecutionEnd::GuestDied { death } => Stop::Failed(death.attach_to(ErrorBody::new(
                wp_codebox_contracts::ErrorCode::RunFailed,
                format!("the sandbox ended while a tool was running: {death}"),
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
            Err(ToolError::InvalidCall(text) | ToolError::ProgramEnded(text)) => {
                ToolOutput::failed(text)
            }
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
