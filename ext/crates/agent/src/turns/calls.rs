//! Carries the calls of one answer out, one after the other, and writes each of them down.

use super::record::CallRecord;
use super::{Ended, Ending, Turns, window};
use crate::{Halt, Message, TaskEnd, ToolAnswer, ToolCall, ToolStatus};
use serde_json::Value;
use std::time::Duration;
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_runtime::Stop;

/// Calls of one answer that are carried out.
pub(super) const CALLS: usize = 32;
/// Of what the model says of the whole task, bytes that are kept.
pub(super) const SUMMARY_BYTES: usize = 4 * 1024;

impl Turns<'_> {
    /// Calls of one answer in their order. Once the task is ended, nothing more is done.
    pub(super) fn carry_out_all(&mut self, calls: &[ToolCall]) -> Result<Option<Ended>, Halt> {
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

    pub(super) fn skip_all(&mut self, calls: &[ToolCall]) -> Result<(), Halt> {
        calls.iter().try_for_each(|call| self.skip(call))
    }

    pub(super) fn skip(&mut self, call: &ToolCall) -> Result<(), Halt> {
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
    pub(super) fn clean(&self, call: &ToolCall) -> ToolCall {
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

pub(super) fn arguments_text(call: &ToolCall) -> String {
    match &call.arguments {
        Ok(map) => serde_json::to_string(map).unwrap_or_default(),
        Err(why) => why.clone(),
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
