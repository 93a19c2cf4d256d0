//! The loop: ask the model, carry its calls out, until it is done or something is used up.
//!
//! It knows the model, the tools and the record by their traits only, so that each way to end
//! is tested with stand-ins. Whatever comes back from model and tools is data. Everything that
//! leaves for the model went through the redactor first, so that a known secret in a file of
//! the guest goes no further than to this process. Every way to end says which it was, and none
//! of them says anything about the checks: those run later, elsewhere.

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

/// How often a conversation that the provider finds too long is shortened for one turn.
const SHORTER: u32 = 3;

/// Where the loop's work is seen: by whoever follows the run and in the bundle.
pub trait Witness {
    /// Words of the model as they come.
    fn text(&mut self, piece: &str);
    /// A call was carried out, refused or left out.
    fn called(&mut self, call: CallRecord) -> Result<(), ErrorBody>;
    /// A turn is over. `usage` is that of the run so far.
    fn turned(&mut self, turn: TurnRecord, usage: ModelUsage) -> Result<(), ErrorBody>;
    /// Why the work must stop now, if it must.
    fn interrupted(&self) -> Option<Stop>;
}

/// Tools and record in one: both write the run's journal.
pub trait Workplace: Toolbox + Witness {}

impl<T: Toolbox + Witness> Workplace for T {}

/// What the loop is given.
#[derive(Debug, Clone)]
pub struct Assignment {
    /// The system prompt.
    pub system: String,
    /// First message: the task.
    pub task: String,
    /// Turns, tokens and cost at most.
    pub budget: AgentBudget,
    /// Prices of the model, for the cost.
    pub prices: Option<ModelPrices>,
    /// Tokens of the model's window.
    pub context_tokens: u64,
    /// Most tokens of one answer.
    pub max_output_tokens: u64,
    /// When the loop must end.
    pub deadline: Instant,
}

/// How the loop ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// Why it is not done; absent when the model says that it is.
    pub stop: Option<Stop>,
    /// Why the loop ended.
    pub how: Ending,
    /// What the model says of the whole task, redacted and bounded; may be empty.
    pub summary: String,
}

/// What ended the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// `task.finish`.
    Finished,
    /// The model said that it is done, twice, without `task.finish`.
    Said,
    /// `task.blocked`.
    Blocked,
    /// Anything else; the run's error says what.
    Stopped,
}

impl Ending {
    /// Name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Said => "said",
            Self::Blocked => "blocked",
            Self::Stopped => "stopped",
        }
    }
}

/// Runs the loop to its end. An error means that our own evidence cannot be written.
pub fn drive(
    model: &mut dyn Model,
    workplace: &mut dyn Workplace,
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

/// Calls of one answer that are carried out.
const CALLS: usize = 32;
/// Of what the model says of the whole task, bytes that are kept.
const SUMMARY_BYTES: usize = 4 * 1024;

struct Turns<'a> {
    model: &'a mut dyn Model,
    workplace: &'a mut dyn Workplace,
    redactor: &'a Redactor,
    assignment: Assignment,
    system: String,
    task: String,
    messages: Vec<Message>,
    tools: Vec<ToolSpec>,
    budget: Budget,
    window: Window,
    progress: Progress,
    /// Bytes sent with every question.
    fixed: usize,
}

impl Turns<'_> {
    /// One turn; an end when there is one.
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

    /// Something of the loop's own for the model.
    fn say(&mut self, text: impl Into<String>) {
        self.messages.push(Message::User(text.into()));
    }

    /// One answer, of a conversation that is shortened when the provider finds it too long.
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

    /// One answer; none when the question is too long for the provider.
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

    /// Takes an answer in, and carries out what it asks for.
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

    /// An answer that asks for nothing.
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
                how: Ending::Said,
                summary: window::head(&clean, SUMMARY_BYTES).to_owned(),
            }));
        }
        self.say("You called no tool. If the task is done, call task.finish with a summary; if something is in the way, call task.blocked; else go on with the next call.");
        Ok(None)
    }
}

/// Tokens of an answer whose provider does not count: a quarter of its bytes.
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

/// Arguments as the model wrote them, or why they are none.
fn arguments_text(call: &ToolCall) -> String {
    match &call.arguments {
        Ok(map) => serde_json::to_string(map).unwrap_or_default(),
        Err(why) => why.clone(),
    }
}

impl Turns<'_> {
    /// Calls of one answer in their order. Once the task is ended, nothing more is done.
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
                    // What is in the way now matters more than that this cannot be written.
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
                let message = format!("the agent says that it cannot go on: {reason}");
                Ended {
                    stop: Some(Stop::Blocked(ErrorBody::new(
                        ErrorCode::AgentBlocked,
                        message,
                    ))),
                    how: Ending::Blocked,
                    summary: reason,
                }
            }
        }
    }

    /// One call; how the task ended when it was one of those that end it.
    fn carry_out(&mut self, call: &ToolCall, index: usize) -> Result<Option<TaskEnd>, Halt> {
        let answer = match &call.arguments {
            Err(why) => refused(format!(
                "The arguments cannot be read: {why}. Send one JSON object that fits the tool's schema."
            )),
            Ok(_) if index >= CALLS => refused(format!(
                "At most {CALLS} calls of one answer are carried out. Ask again for this one."
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

    /// Id of the tool that a call names; the name itself when no such tool is offered.
    fn tool_id(&self, call: &ToolCall) -> String {
        let found = self.workplace.specs().iter().find(|s| s.name == call.name);
        let id = found.map_or(call.name.as_str(), |spec| &spec.id);
        window::head(&self.redactor.redact(id), 128).to_owned()
    }

    /// The call without secrets, as it goes back to the model.
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

/// An answer of the loop itself.
fn refused(text: String) -> ToolAnswer {
    ToolAnswer {
        text,
        status: ToolStatus::Failed,
        end: None,
        executions: Vec::new(),
        duration: Duration::ZERO,
    }
}
