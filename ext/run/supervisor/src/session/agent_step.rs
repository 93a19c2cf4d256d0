//! Runs the agent of the run as a step of a recipe, in the guest of the other steps. The steps after
//! it see its work.

use super::agents;
use super::answer::requester;
use super::ending::{AgentEnd, ProgramsEnd};
use super::{Commanded, Session};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{Agent, CommandCall, ErrorBody, ErrorCode, RunRequest, schema_id};
use wp_codebox_policy::assert_step;
use wp_codebox_runtime::Stop;

/// Result of a recipe step that ran the agent.
#[derive(Debug)]
pub(crate) struct AgentStep {
    /// Call, program end and result of the step, as for every other command. `stopped` is set if
    /// the step's own time limit stopped the agent.
    pub commanded: Commanded,
    /// Why the agent ended without success, unless the step's own time limit stopped it.
    pub stop: Option<Stop>,
}

impl Session<'_, '_> {
    /// Runs the agent of the run, at most for `timeout`. An error means that the agent did not run,
    /// or that an event of the run could not be recorded.
    pub(crate) fn agent_step(
        &mut self,
        call: &CommandCall,
        timeout: Duration,
    ) -> Result<AgentStep, ErrorBody> {
        let context = self.context;
        let request = &context.prepared.request;
        assert_step(&context.prepared.policy, call)?;
        let agent = request.agent.as_ref().ok_or_else(|| {
            let message = "the run has no agent for this step: name a model or an agent";
            ErrorBody::new(ErrorCode::AgentMissing, message)
        })?;
        let (started, first) = (Instant::now(), self.recorder.evidence.executions.len());
        let limit = started.checked_add(timeout);
        self.recorder.lost = None;
        self.agent = Some(AgentEnd::Failure);
        let mut guest = self.guest_context();
        guest.limit = limit;
        let (stop, end) = agents::run_step(agent, guest)?;
        self.agent = Some(end);
        let is_late = |at: Option<Instant>| at.is_some_and(|at| Instant::now() >= at);
        // The run's own limit and a dead guest end the run and not only the step.
        let stopped = is_late(limit)
            && !is_late(Some(context.clock.deadline))
            && self.recorder.lost.is_none()
            && matches!(stop, Some(Stop::Timeout | Stop::Failed(_)));
        let error = match stopped {
            true => Some(ErrorBody::new(
                ErrorCode::RunTimeout,
                "the agent was stopped, because the time limit of its step passed",
            )),
            false => error((stop.clone(), end)),
        };
        let word = match stopped {
            true => "timed-out",
            false => end_word(stop.as_ref(), end),
        };
        let document = self.agent_document(call, (request, agent), word, (first, error.as_ref()));
        let mut commanded = self.carried_out(call, started, &document, error)?;
        commanded.step.result.stopped = stopped;
        if let Some(lost) = self.recorder.lost.clone() {
            commanded.step.result.end = lost;
        }
        Ok(AgentStep {
            commanded,
            stop: stop.filter(|_| !stopped),
        })
    }

    /// Returns the document of the step. `first` is the index of the agent's first execution.
    fn agent_document(
        &self,
        call: &CommandCall,
        (request, agent): (&RunRequest, &Agent),
        word: &str,
        (first, error): (usize, Option<&ErrorBody>),
    ) -> Value {
        let evidence = &self.recorder.evidence;
        let executions: Vec<&str> = evidence
            .executions
            .iter()
            .skip(first)
            .map(|row| row.id.as_str())
            .collect();
        let summary = || evidence.agent.as_ref().and_then(|log| log.summary());
        let message = evidence.final_message.as_deref().or_else(summary);
        let mut document = json!({
            "schema": schema_id::AGENT_STEP_RESULT,
            "command": call.command,
            "status": if error.is_none() { "ok" } else { "error" },
            "agent": {"name": name(request, agent), "end": word},
            "executions": executions,
        });
        // Only an ability has a result of its own.
        let last = evidence.transcript.iter().rev();
        let result = last
            .take(evidence.transcript.len().saturating_sub(first))
            .find_map(|entry| entry.parsed.as_ref()?.get("result"));
        for (member, value) in [
            ("message", message.map(|text| json!(text))),
            ("result", result.cloned()),
            ("usage", evidence.model_usage.map(|usage| json!(usage))),
            ("error", error.map(|error| json!(error))),
        ] {
            if let Some(value) = value {
                document[member] = value;
            }
        }
        if let Some(members) = document.as_object_mut() {
            members.extend(requester(call));
        }
        document
    }
}

/// Returns the name of the agent: its preset, program or ability, or provider and model.
fn name(request: &RunRequest, agent: &Agent) -> String {
    match agent {
        Agent::Command(command) => match (&command.preset, command.argv.first()) {
            (Some(preset), _) => preset.clone(),
            (None, program) => program.cloned().unwrap_or_default(),
        },
        Agent::Preset(preset) => preset.name.clone(),
        Agent::Model(_) => match &request.model {
            Some(model) => format!("{}/{}", model.provider, model.model),
            None => String::new(),
        },
        Agent::Ability(task) => task.ability.clone(),
    }
}

/// Returns the word for how the agent ended.
fn end_word(stop: Option<&Stop>, end: AgentEnd) -> &'static str {
    match (stop, end) {
        (None, AgentEnd::Success) => "completed",
        (Some(Stop::Timeout), _) => "timed-out",
        (Some(Stop::Cancelled), _) => "cancelled",
        (Some(Stop::Blocked(_)), _) => "blocked",
        (Some(Stop::Partial(_)), _) => "partial",
        (Some(Stop::Failed(_) | Stop::Uncaptured(_)), _)
        | (None, AgentEnd::Failure | AgentEnd::Tolerated | AgentEnd::None) => "failed",
    }
}

/// Returns the error of an agent that did not succeed.
fn error((stop, end): ProgramsEnd) -> Option<ErrorBody> {
    match (stop, end) {
        (None, AgentEnd::Success) => None,
        (
            Some(
                Stop::Failed(error)
                | Stop::Uncaptured(error)
                | Stop::Blocked(error)
                | Stop::Partial(error),
            ),
            _,
        ) => Some(error),
        (Some(Stop::Timeout), _) => Some(ErrorBody::new(
            ErrorCode::RunTimeout,
            "the agent was killed, because the time limit of the run passed",
        )),
        (Some(Stop::Cancelled), _) => Some(ErrorBody::new(
            ErrorCode::RunCancelled,
            "the agent was killed, because the run was cancelled",
        )),
        (None, AgentEnd::Failure | AgentEnd::Tolerated | AgentEnd::None) => Some(ErrorBody::new(
            ErrorCode::RunFailed,
            "the agent did not succeed",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsuccessful_agent_step_has_an_error_and_a_word_that_says_how_it_ended() {
        let body = || ErrorBody::new(ErrorCode::AgentBlocked, "no");
        for (stop, end, word) in [
            (None, AgentEnd::Failure, "failed"),
            (Some(Stop::Failed(body())), AgentEnd::Failure, "failed"),
            (Some(Stop::Blocked(body())), AgentEnd::Failure, "blocked"),
            (Some(Stop::Partial(body())), AgentEnd::Failure, "partial"),
            (Some(Stop::Timeout), AgentEnd::Failure, "timed-out"),
            (Some(Stop::Cancelled), AgentEnd::Failure, "cancelled"),
        ] {
            assert_eq!(end_word(stop.as_ref(), end), word);
            assert!(error((stop, end)).is_some(), "{word}");
        }
        assert_eq!(end_word(None, AgentEnd::Success), "completed");
        assert_eq!(error((None, AgentEnd::Success)), None);
    }
}
