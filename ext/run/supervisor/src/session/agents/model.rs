//! Runs the built-in agent loop: connects it with the guest, the recorder, the deadline and the
//! model.

use super::executor::{RunExecutor, tools};
use super::notes::project_notes;
use crate::journal::agent_log::{AgentLog, ToolType};
use crate::journal::agent_output::AgentOutputStream;
use crate::journal::inactive::Inactive;
use crate::journal::wasi_facts::WasiToolFacts;
use crate::prepared::context::RunContext;
use crate::request::programs::tool_set;
use crate::session::ending::{AgentEnd, ProgramsEnd};
use crate::session::guest::GuestContext;
use serde_json::{Value, json};
use std::time::Instant;
use wp_codebox_agent::{
    Assignment, BriefedMount, Briefing, CallRecord, CallStatus, Ended, Halt, LoopObserver,
    ModelClient, ParentTools, ToolAnswer, ToolCall, ToolSpec, Toolbox, Tools, TurnRecord, drive,
    first_message, system_prompt,
};
use wp_codebox_contracts::{
    CodedError, ErrorBody, ErrorCode, ModelAgent, ModelEndpoint, ModelUsage,
};
use wp_codebox_policy::{self as policy, OfferedTool, ToolKind, ToolSet};
use wp_codebox_runtime::{Cancellation, Stop};

/// Size of the model's context window in tokens, unless the request sets another.
const CONTEXT_TOKENS: u64 = 128_000;
/// Maximum number of output tokens of one response, unless the request sets another; at most a
/// quarter of the context window.
const OUTPUT_TOKENS: u64 = 8_192;

pub(super) fn run(
    agent: &ModelAgent,
    mut guest: GuestContext<'_, '_>,
) -> Result<ProgramsEnd, ErrorBody> {
    let context = guest.run;
    let request = &context.prepared.request;
    let cancellation = context.cancellation;
    let missing = || policy::ModelError::Missing.body();
    let endpoint = request.model.as_ref().ok_or_else(missing)?;
    let set = tool_set(
        request,
        &context.prepared.policy,
        context.prepared.wasi.tools(),
    )?;
    let notes = match project_notes(&mut guest, &set)? {
        Ok(notes) => notes,
        Err(stop) => return Ok((Some(stop), AgentEnd::Failure)),
    };
    let deadline = guest.deadline();
    let inactive: Vec<String> = guest
        .recorder
        .evidence
        .inactive
        .iter()
        .map(Inactive::sentence)
        .collect();
    let quoted = Quoted {
        notes: notes.as_deref(),
        inactive: &inactive,
    };
    let mut assignment = assignment(agent, endpoint, context, &set, &quoted);
    assignment.deadline = deadline;
    let key = key(context, endpoint)?;
    let mut client = ModelClient::open(endpoint, key, cancellation)?;
    let name = format!("{}/{}", endpoint.provider, endpoint.model);
    let words = AgentOutputStream::begin(guest.recorder, &name)?;
    guest.recorder.evidence.agent = Some(AgentLog::default());
    guest.recorder.evidence.model_usage = Some(ModelUsage::default());
    let mut place = Workbench {
        specs: set.offered().iter().map(spec).collect(),
        parent: parent(context, &set, deadline),
        tools: tools(guest, set.clone()),
        set,
        wasi: &context.wasi.facts,
        words,
        cancellation,
        deadline,
    };
    let ended = drive(&mut client, &mut place, context.redactor, assignment)?;
    place.end(&ended)?;
    let end = match ended.stop {
        None => AgentEnd::Success,
        Some(_) => AgentEnd::Failure,
    };
    Ok((ended.stop, end))
}

fn key(
    context: &RunContext<'_>,
    endpoint: &ModelEndpoint,
) -> Result<Option<zeroize::Zeroizing<String>>, ErrorBody> {
    let Some(name) = &endpoint.secret else {
        return Ok(None);
    };
    let value = context.prepared.secrets.value(name);
    value.map(Some).ok_or_else(|| {
        ErrorBody::new(
            ErrorCode::ProviderCredentialsUnavailable,
            format!("the model needs the secret {name}, which this run does not have; give the run this secret"),
        )
    })
}

/// Texts of the guest that the first message to the model contains.
struct Quoted<'a> {
    /// Content of `AGENTS.md`.
    notes: Option<&'a str>,
    /// Sentences on plugins and themes that could not be activated.
    inactive: &'a [String],
}

fn assignment(
    agent: &ModelAgent,
    endpoint: &ModelEndpoint,
    context: &RunContext<'_>,
    set: &ToolSet,
    quoted: &Quoted<'_>,
) -> Assignment {
    let request = &context.prepared.request;
    let mounts: Vec<BriefedMount> = context
        .guest_mounts
        .iter()
        .map(|mount| BriefedMount {
            path: mount.target.as_str().to_owned(),
            access: mount.access,
        })
        .collect();
    let tools: Vec<String> = set.offered().iter().map(|tool| tool.id.clone()).collect();
    let earlier = context.prepared.earlier.as_ref();
    // In a follow-up run, the task's context contains the reviewers' comments and the summary of
    // the earlier run. The briefing contains both as text (`follow_up`), so they are removed here.
    let task = request.task.clone().map(|mut task| {
        if earlier.is_some() {
            task.context.shift_remove(policy::FOLLOW_UP_CONTEXT);
        }
        task
    });
    let briefing = Briefing {
        task: task.as_ref(),
        follow_up: earlier.map(|earlier| earlier.text.as_str()),
        mounts: &mounts,
        directory: context.cwd.as_str(),
        checks: &request.checks,
        budget: agent.budget,
        instructions: agent.instructions.as_deref(),
        inactive: quoted.inactive,
        notes: quoted.notes,
        tools: &tools,
    };
    let context_tokens = endpoint.context_tokens.unwrap_or(CONTEXT_TOKENS);
    Assignment {
        system: system_prompt(&briefing),
        task: first_message(&briefing),
        budget: agent.budget,
        prices: endpoint.prices,
        context_tokens,
        max_output_tokens: endpoint
            .max_output_tokens
            .unwrap_or_else(|| OUTPUT_TOKENS.min(context_tokens / 4)),
        deadline: context.clock.deadline,
    }
}

fn spec(tool: &OfferedTool) -> ToolSpec {
    let by = match &tool.kind {
        ToolKind::Builtin(_) | ToolKind::Wasi(_) => "",
        ToolKind::Parent(_) => " (Answered by the host, outside of the sandbox.)",
    };
    ToolSpec {
        id: tool.id.clone(),
        name: tool.name.clone(),
        description: format!("{}{by}", tool.description),
        parameters: tool.parameters.clone(),
    }
}

fn parent<'a>(context: &'a RunContext<'a>, set: &ToolSet, deadline: Instant) -> ParentTools<'a> {
    let request = &context.prepared.request;
    let ids = set
        .offered()
        .iter()
        .filter(|tool| matches!(tool.kind, ToolKind::Parent(_)))
        .map(|tool| tool.id.clone())
        .collect();
    ParentTools::new(
        context.parent,
        &request.run_id,
        context.redactor,
        ids,
        request.parent_tools.as_ref().and_then(|p| p.timeout_ms),
        deadline,
    )
}

/// What the agent loop works with: tools in the guest, tools of the process that started the run,
/// and the recorder.
struct Workbench<'a, 'r> {
    tools: Tools<RunExecutor<'a, 'r>>,
    parent: ParentTools<'a>,
    set: ToolSet,
    specs: Vec<ToolSpec>,
    wasi: &'a [WasiToolFacts],
    words: AgentOutputStream<'r>,
    cancellation: &'a Cancellation,
    deadline: Instant,
}

impl Workbench<'_, '_> {
    fn end(self, ended: &Ended) -> Result<(), ErrorBody> {
        let Self {
            mut tools, words, ..
        } = self;
        let recorder = &mut *tools.executor().guest.recorder;
        if let Some(log) = &mut recorder.evidence.agent {
            log.end(ended);
        }
        words.end(recorder, ended)
    }
}

impl Toolbox for Workbench<'_, '_> {
    fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer, Halt> {
        match self.set.find(&call.name) {
            Ok(OfferedTool {
                id,
                kind: ToolKind::Parent(_),
                ..
            }) => Ok(self.parent.call(id, call)),
            // Also for `Err`: the tool executor rejects a call of a tool that is not offered, and
            // states the reason.
            Ok(OfferedTool {
                kind: ToolKind::Builtin(_) | ToolKind::Wasi(_),
                ..
            })
            | Err(_) => self.tools.call(call),
        }
    }
}

impl LoopObserver for Workbench<'_, '_> {
    fn text(&mut self, piece: &str) {
        self.words.say(self.tools.executor().guest.recorder, piece);
    }

    fn called(&mut self, mut call: CallRecord) -> Result<(), ErrorBody> {
        let kind = match self.set.find(&call.tool) {
            Ok(tool) => {
                call.tool.clone_from(&tool.id);
                match &tool.kind {
                    ToolKind::Builtin(_) => ToolType::Sandbox,
                    ToolKind::Parent(_) => ToolType::Parent,
                    ToolKind::Wasi(id) => self
                        .wasi
                        .iter()
                        .find(|facts| facts.id == *id)
                        .map_or(ToolType::Unknown, ToolType::Wasi),
                }
            }
            // The run does not offer this tool. A built-in tool of this name may exist
            // nevertheless.
            Err(_) => match policy::builtin_tool(&call.tool) {
                Some(row) => {
                    row.id.clone_into(&mut call.tool);
                    ToolType::Sandbox
                }
                None => ToolType::Unknown,
            },
        };
        let recorder = &mut *self.tools.executor().guest.recorder;
        // The output of a call's guest programs is recorded when they run. A line is added only for
        // a call without guest programs and for the reason of a failed call.
        let why = failure(&call);
        if call.executions.is_empty() || why.is_some() {
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            let line = format!("[{}: {}{why}]\n", call.tool, call.status.name());
            self.words.say(recorder, &line);
            self.words.pause(recorder)?;
        }
        if let Some(log) = &mut recorder.evidence.agent {
            log.call(call, kind);
        }
        Ok(())
    }

    fn turned(&mut self, turn: TurnRecord, usage: ModelUsage) -> Result<(), ErrorBody> {
        let recorder = &mut *self.tools.executor().guest.recorder;
        recorder.evidence.model_usage = Some(usage);
        self.words.pause(recorder)?;
        let seen = json!({
            "turn": turn.turn,
            "stop": turn.stop,
            "model": turn.model,
            "usage": turn.usage(),
            "calls": turn.calls,
        });
        let detail = match &seen {
            Value::Object(members) => members.clone(),
            _ => serde_json::Map::new(),
        };
        if let Some(log) = &mut recorder.evidence.agent {
            log.turn(turn, usage);
        }
        recorder.observe("agent-turn", seen, detail)
    }

    fn interrupted(&self) -> Option<Stop> {
        if self.cancellation.reason().is_some() {
            Some(Stop::Cancelled)
        } else if Instant::now() >= self.deadline {
            Some(Stop::Timeout)
        } else {
            None
        }
    }
}

/// Maximum length of a failure reason in the agent's output, in characters.
const REASON: usize = 300;

/// Returns why a call failed, in one line: the beginning of the result that the model received.
fn failure(call: &CallRecord) -> Option<String> {
    match call.status {
        CallStatus::Ok | CallStatus::Skipped => None,
        CallStatus::Failed | CallStatus::Denied => {
            let line = call.answer.lines().find(|line| !line.trim().is_empty())?;
            // Some results begin with the tool name. It is removed, because the output line already
            // begins with it.
            let own = line
                .strip_prefix(&call.tool)
                .and_then(|rest| rest.strip_prefix(": "));
            Some(own.unwrap_or(line).trim().chars().take(REASON).collect())
        }
    }
}
