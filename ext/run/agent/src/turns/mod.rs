//! Agent loop: sends requests to the model and executes its tool calls until the task ends or a
//! limit is reached.
//!
//! The loop uses model, tools and journal only through traits, so that tests can replace them with
//! doubles and cover every way in which the loop can end. Output of model and tools is untrusted
//! data. Everything sent to the model is redacted first, so a known secret in a guest's file
//! reaches this process but not the provider. The result states why the loop ended, and nothing
//! about the checks, which run later in another guest.

mod budget;
mod outside;
mod progress;
mod prompt;
mod record;
mod summary;
mod window;

pub use outside::{Parent, ParentAnswer, ParentTools, unavailable as parent_unavailable};
pub use prompt::{BriefedMount, Briefing, first_message, system_prompt};
pub use record::{CallRecord, CallStatus, Counted, TurnRecord};

use super::{
    Halt, Message, Model, ModelError, Reply, StopReason, TaskEnd, TokenUsage, ToolAnswer, ToolCall,
    ToolSpec, ToolStatus, Toolbox, TurnRequest,
};
use budget::{Budget, Exhausted};
use progress::{Advice, Progress};
use serde_json::Value;
use std::time::{Duration, Instant};
use window::Window;
use wp_codebox_contracts::{AgentBudget, ErrorBody, ErrorCode, ModelPrices, ModelUsage};
use wp_codebox_policy::Redactor;
use wp_codebox_runtime::Stop;

/// Maximum number of times that the provider may reject a request of one turn as too long; after
/// each time the loop shortens the conversation.
const SHORTER: u32 = 3;

/// Receives what happens in the loop, for live output and for the bundle (the run's result
/// directory).
pub trait LoopObserver {
    /// Called with each piece of the model's text as it arrives.
    fn text(&mut self, piece: &str);
    /// Called after a tool call was executed, refused or skipped.
    fn called(&mut self, call: CallRecord) -> Result<(), ErrorBody>;
    /// Called at the end of a turn. `usage` counts the model's tokens and cost of the whole run so
    /// far.
    fn turned(&mut self, turn: TurnRecord, usage: ModelUsage) -> Result<(), ErrorBody>;
    /// Returns why the loop must stop now, if it must.
    fn interrupted(&self) -> Option<Stop>;
}

/// Tools and observer in one object, because both write the run's journal.
pub trait LoopBackend: Toolbox + LoopObserver {}

impl<T: Toolbox + LoopObserver> LoopBackend for T {}

/// What the agent loop works on, and its limits.
#[derive(Debug, Clone)]
pub struct Assignment {
    /// System prompt.
    pub system: String,
    /// First message of the conversation, which states the task.
    pub task: String,
    /// Limits of turns, tokens and cost.
    pub budget: AgentBudget,
    /// Prices of the model's tokens; without them no cost is computed.
    pub prices: Option<ModelPrices>,
    /// Size of the model's context window, in tokens.
    pub context_tokens: u64,
    /// Maximum number of output tokens of one response.
    pub max_output_tokens: u64,
    /// Time at which the loop must end.
    pub deadline: Instant,
}

/// How the loop ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// Reason why the run ends early; `None` when the model says that the task is done.
    pub stop: Option<Stop>,
    /// What made the loop end.
    pub how: Ending,
    /// The model's summary of the task, redacted and cut to a maximum length; may be empty.
    pub summary: String,
}

/// What made the loop end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The model called `task.finish`.
    Finished,
    /// The model responded twice with text only, without a tool call in between.
    ClaimedDone,
    /// The model called `task.blocked`.
    Blocked,
    /// Any other reason; the error of the run states it.
    Stopped,
}

impl Ending {
    /// Returns the name of this value in JSON documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::ClaimedDone => "said",
            Self::Blocked => "blocked",
            Self::Stopped => "stopped",
        }
    }
}

/// Runs the loop until it ends. An error means that the run's journal cannot be written.
pub fn drive(
    model: &mut dyn Model,
    workplace: &mut dyn LoopBackend,
    redactor: &Redactor,
    assignment: Assignment,
) -> Result<Ended, ErrorBody> {
    let tools = workplace.specs().to_vec();
    let mut turns = Turns {
        system: redactor.redact(&assignment.system).into_owned(),
        task: redactor.redact(&assignment.task).into_owned(),
        messages: Vec::new(),
        budget: Budget::new(assignment.budget, assignment.prices),
        window: Window::new(assignment.context_tokens, assignment.max_output_tokens),
        progress: Progress::default(),
        fixed: window::fixed_bytes(&assignment.system, &tools),
        tools,
        model,
        workplace,
        redactor,
        assignment,
    };
    turns.messages.push(Message::User(turns.task.clone()));
    loop {
        match turns.step() {
            Ok(None) => {}
            Ok(Some(ended)) => return Ok(ended),
            Err(Halt::Stop(stop)) => {
                return Ok(Ended {
                    stop: Some(stop),
                    how: Ending::Stopped,
                    summary: String::new(),
                });
            }
            Err(Halt::Failure(error)) => return Err(error),
        }
    }
}

/// Maximum number of tool calls of one response that the loop executes.
const CALLS: usize = 32;
/// Maximum number of bytes of the model's final summary that the result contains.
const SUMMARY_BYTES: usize = 4 * 1024;

struct Turns<'a> {
    model: &'a mut dyn Model,
    workplace: &'a mut dyn LoopBackend,
    redactor: &'a Redactor,
    assignment: Assignment,
    system: String,
    task: String,
    messages: Vec<Message>,
    tools: Vec<ToolSpec>,
    budget: Budget,
    window: Window,
    progress: Progress,
    /// Number of bytes of a request without its messages: system prompt and tool descriptions.
    fixed: usize,
}

impl Turns<'_> {
    /// Runs one turn; returns the loop's result if this turn was the last, otherwise `None`.
    fn step(&mut self) -> Result<Option<Ended>, Halt> {
        self.interrupted()?;
        if let Some(warning) = self.budget.warning() {
            self.say(warning);
        }
        self.fit()?;
        let reply = self.ask()?;
        self.take(reply)
    }

    fn interrupted(&self) -> Result<(), Halt> {
        self.workplace
            .interrupted()
            .map_or(Ok(()), |stop| Err(Halt::Stop(stop)))
    }

    /// Adds a message of the loop itself, such as a warning, to the conversation.
    fn say(&mut self, text: impl Into<String>) {
        self.messages.push(Message::User(text.into()));
    }

    /// Requests a response; shortens the conversation when the provider rejects it as too long.
    fn ask(&mut self) -> Result<Reply, Halt> {
        for _ in 0..SHORTER {
            let messages = std::mem::take(&mut self.messages);
            let answer = self.ask_about(&messages);
            self.messages = messages;
            match answer? {
                Some(reply) => return Ok(reply),
                None => self.fit()?,
            }
        }
        Err(self.exhausted(Exhausted::Window))
    }

    /// Requests a response; returns `None` when the request is too long for the provider.
    fn ask_about(&mut self, messages: &[Message]) -> Result<Option<Reply>, Halt> {
        let bytes = self.fixed + window::bytes(messages);
        let input = self.window.tokens(bytes);
        self.budget
            .check(input)
            .map_err(|which| self.exhausted(which))?;
        let request = TurnRequest {
            system: &self.system,
            messages,
            tools: &self.tools,
            max_output_tokens: self
                .budget
                .allowance(self.assignment.max_output_tokens, input),
            deadline: self.assignment.deadline,
        };
        let workplace = &mut *self.workplace;
        let reply = match self.model.turn(request, &mut |text| workplace.text(text)) {
            Ok(reply) => reply,
            Err(ModelError::TooLong) => {
                self.window.too_long(bytes);
                return Ok(None);
            }
            Err(
                error @ (ModelError::Unavailable { .. }
                | ModelError::Malformed { .. }
                | ModelError::Unauthorised { .. }
                | ModelError::Rejected { .. }
                | ModelError::Deadline
                | ModelError::Cancelled),
            ) => return Err(Halt::Stop(error.stop())),
        };
        let usage = reply.usage.unwrap_or_else(|| TokenUsage {
            input,
            cached_input: 0,
            output: estimated_output(&reply),
        });
        if reply.usage.is_some() {
            self.window.learn(bytes, usage.input);
        }
        self.budget.spend(usage);
        let turn = TurnRecord::new(self.budget.usage().turns, &reply, usage, self.redactor);
        self.workplace.turned(turn, self.budget.usage())?;
        Ok(Some(reply))
    }

    fn exhausted(&self, which: Exhausted) -> Halt {
        Halt::Stop(self.budget.stop(which))
    }

    /// Adds a response to the conversation and executes its tool calls.
    fn take(&mut self, reply: Reply) -> Result<Option<Ended>, Halt> {
        let Reply {
            text, calls, stop, ..
        } = reply;
        if stop == StopReason::Filtered {
            for call in &calls {
                self.skip(call)?;
            }
            return Err(Halt::Stop(Stop::Blocked(ErrorBody::new(
                ErrorCode::ProviderRejected,
                "the model's provider withheld an answer: its content filter refused it",
            ))));
        }
        if calls.is_empty() {
            return self.without_calls(text, &stop);
        }
        self.messages.push(Message::Assistant {
            text: self.redactor.redact(&text).into_owned(),
            calls: calls.iter().map(|call| self.clean(call)).collect(),
        });
        let ended = self.carry_out_all(&calls)?;
        if ended.is_some() {
            return Ok(ended);
        }
        if stop == StopReason::Length {
            self.say("Your answer was cut at its length limit: the last call may be incomplete. Write large files in several smaller steps.");
        }
        let advice = self.progress.turned();
        self.follow(advice)
    }

    fn follow(&mut self, advice: Advice) -> Result<Option<Ended>, Halt> {
        match advice {
            Advice::GoOn => Ok(None),
            Advice::Say(text) => {
                self.say(text);
                Ok(None)
            }
            Advice::Stop(stop) => Err(Halt::Stop(stop)),
        }
    }

    /// Handles a response without tool calls: asks the model to go on, or ends the loop.
    fn without_calls(&mut self, text: String, stop: &StopReason) -> Result<Option<Ended>, Halt> {
        let clean = self.redactor.redact(&text).into_owned();
        if clean.trim().is_empty() {
            let advice = match stop {
                StopReason::Length => self.progress.cut(),
                StopReason::End | StopReason::Tools | StopReason::Filtered => self.progress.empty(),
            };
            return self.follow(advice);
        }
        self.messages.push(Message::Assistant {
            text: clean.clone(),
            calls: Vec::new(),
        });
        if *stop == StopReason::Length {
            let advice = self.progress.cut();
            return self.follow(advice);
        }
        if self.progress.plain() > 1 {
            return Ok(Some(Ended {
                stop: None,
                how: Ending::ClaimedDone,
                summary: window::head(&clean, SUMMARY_BYTES).to_owned(),
            }));
        }
        self.say("You called no tool. If the task is done, call task.finish with a summary; if something is in the way, call task.blocked; else go on with the next call.");
        Ok(None)
    }
}

/// Estimates the output tokens of a response as a quarter of its bytes; used when the provider
/// sends no count.
fn estimated_output(reply: &Reply) -> u64 {
    let calls = reply.calls.iter();
    let bytes = reply.text.len()
        + calls
            .map(|call| call.name.len() + arguments_text(call).len())
            .sum::<usize>();
    (bytes as u64).div_ceil(4)
}

#[cfg(test)]
mod tests;

/// Returns the arguments of a tool call as JSON text, or why they could not be parsed.
fn arguments_text(call: &ToolCall) -> String {
    match &call.arguments {
        Ok(map) => serde_json::to_string(map).unwrap_or_default(),
        Err(why) => why.clone(),
    }
}

impl Turns<'_> {
    /// Executes the calls of one response in order; skips the calls after the end of the task.
    fn carry_out_all(&mut self, calls: &[ToolCall]) -> Result<Option<Ended>, Halt> {
        for (index, call) in calls.iter().enumerate() {
            let step = self
                .interrupted()
                .and_then(|()| self.carry_out(call, index));
            match step {
                Ok(None) => {}
                Ok(Some(end)) => {
                    self.skip_all(&calls[index + 1..])?;
                    return Ok(Some(self.ended(end)));
                }
                Err(halt) => {
                    // Recording the skipped calls may fail too; the first error is the one to
                    // report.
                    let _ = self.skip_all(&calls[index..]);
                    return Err(halt);
                }
            }
        }
        Ok(None)
    }

    fn ended(&self, end: TaskEnd) -> Ended {
        let clean = |text: &str| {
            let text = self.redactor.redact(text);
            window::head(&text, SUMMARY_BYTES).to_owned()
        };
        match end {
            TaskEnd::Finished { summary } => Ended {
                stop: None,
                how: Ending::Finished,
                summary: clean(&summary),
            },
            TaskEnd::Blocked { reason } => {
                let reason = clean(&reason);
                let message = format!("the agent says that it cannot continue: {reason}");
                Ended {
                    stop: Some(Stop::Blocked(
                        ErrorBody::new(ErrorCode::AgentBlocked, message).hint(
                            "remove what stops the agent, or change the goal, then run again",
                        ),
                    )),
                    how: Ending::Blocked,
                    summary: reason,
                }
            }
        }
    }

    /// Executes one call; returns the end of the task if the call declared the task finished or
    /// blocked.
    fn carry_out(&mut self, call: &ToolCall, index: usize) -> Result<Option<TaskEnd>, Halt> {
        let answer = match &call.arguments {
            Err(why) => refused(format!(
                "The arguments cannot be read: {why}. Send one JSON object that fits the tool's schema."
            )),
            Ok(_) if index >= CALLS => refused(format!(
                "At most {CALLS} tool calls of one answer are executed. Send this call again."
            )),
            Ok(_) => self.workplace.call(call)?,
        };
        let text = self.redactor.redact(&answer.text).into_owned();
        let arguments = arguments_text(call);
        self.progress
            .called(&call.name, &arguments, &text, answer.status);
        self.workplace.called(CallRecord::new(
            self.budget.usage().turns,
            call,
            self.tool_id(call),
            &answer,
            self.redactor,
        ))?;
        self.messages.push(Message::Tool {
            call_id: call.id.clone(),
            text,
            status: answer.status,
        });
        Ok(answer.end)
    }

    fn skip_all(&mut self, calls: &[ToolCall]) -> Result<(), Halt> {
        calls.iter().try_for_each(|call| self.skip(call))
    }

    fn skip(&mut self, call: &ToolCall) -> Result<(), Halt> {
        let turn = self.budget.usage().turns;
        let record = CallRecord::skipped(turn, call, self.tool_id(call), self.redactor);
        Ok(self.workplace.called(record)?)
    }

    /// Returns the id of the called tool, or the called name when no such tool is offered.
    fn tool_id(&self, call: &ToolCall) -> String {
        let found = self.workplace.specs().iter().find(|s| s.name == call.name);
        let id = found.map_or(call.name.as_str(), |spec| &spec.id);
        window::head(&self.redactor.redact(id), 128).to_owned()
    }

    /// Returns the call with secrets redacted, as it is sent back to the model.
    fn clean(&self, call: &ToolCall) -> ToolCall {
        let arguments = call.arguments.clone().map(|map| {
            match self.redactor.redact_value(Value::Object(map)) {
                Value::Object(map) => map,
                _ => serde_json::Map::new(),
            }
        });
        ToolCall {
            arguments: arguments.map_err(|why| self.redactor.redact(&why).into_owned()),
            ..call.clone()
        }
    }
}

/// Returns the result of a tool call that the loop refuses without executing it.
fn refused(text: String) -> ToolAnswer {
    ToolAnswer {
        text,
        status: ToolStatus::Failed,
        end: None,
        executions: Vec::new(),
        duration: Duration::ZERO,
    }
}
