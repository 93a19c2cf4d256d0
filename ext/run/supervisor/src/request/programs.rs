//! Checks the programs of a request against its policy, before any program starts.

use wp_codebox_contracts::{
    Agent, CodedError, CommandCall, ErrorBody, ErrorCode, RunRequest, RuntimePolicy, WasiTool,
    WorkflowStep,
};
use wp_codebox_policy::{self as policy, CommandDescriptor, Handler};
use wp_codebox_runtime::{command_program, working_directory};

/// Command id that the policy must allow for running an agent or a check.
pub(crate) const AGENT_COMMAND: &str = "command-agent-run";

/// Returns the tools that the built-in agent loop may offer to the model.
pub(crate) fn tool_set(
    request: &RunRequest,
    runtime: &RuntimePolicy,
    wasi: &[WasiTool],
) -> Result<policy::ToolSet, ErrorBody> {
    let allowed = request.task.as_ref().map(|task| &task.allowed_tools[..]);
    policy::ToolSet::resolve(
        request.tool_policy.as_ref(),
        allowed.unwrap_or_default(),
        policy::HostTools {
            parent: request.parent_tools.as_ref(),
            wasi,
        },
        runtime,
    )
    .map_err(ErrorBody::from)
}

/// Checks every program of the run against the policy before any program starts.
pub(crate) fn check_programs(
    request: &RunRequest,
    policy: &RuntimePolicy,
    wasi: &[WasiTool],
) -> Result<(), ErrorBody> {
    let idle = request.agent.is_none()
        && request.commands.is_empty()
        && request.workflow.is_none()
        && request.hold.is_none();
    if idle {
        return Err(ErrorBody::new(
            ErrorCode::AgentMissing,
            "the request runs nothing: add an agent or a command",
        ));
    }
    for call in &request.commands {
        check_call(call, policy::assert_command(policy, call))?;
    }
    for step in request.workflow.iter().flat_map(|w| &w.steps) {
        check_call(&step.call, policy::assert_step(policy, &step.call))?;
    }
    check_agent_steps(request)?;
    if agent_step(request).is_none() {
        check_agent(request, policy)?;
    }
    if let Some(agent) = request.agent.as_ref().and_then(Agent::command) {
        for name in agent.env.keys() {
            policy::check_env_name(name).map_err(|e| e.body(name))?;
        }
    }
    if let Some(Agent::Model(_)) = request.agent {
        tool_set(request, policy, wasi)?;
    }
    for check in &request.checks {
        let argv = policy::command_words(check)?;
        assert_agent(policy, argv.first().map_or("", String::as_str))?;
    }
    Ok(())
}

/// Fails if `asserted`, the result of [`policy::assert_command`] or [`policy::assert_step`] for
/// this call, is an error, or if the arguments of the guest program are invalid together.
fn check_call(
    call: &CommandCall,
    asserted: Result<&CommandDescriptor, policy::CommandError>,
) -> Result<(), ErrorBody> {
    if policy::descriptor(&call.command).is_none() {
        return Err(policy::CommandError::Unknown {
            command: call.command.clone(),
        }
        .body());
    }
    let found = asserted?;
    // The code that builds the program's command line also validates how its arguments are combined.
    let target = policy::target_call(call);
    for call in std::iter::once(call).chain(&target) {
        let handler = policy::descriptor(&call.command).map_or(found.handler, |c| c.handler);
        if let Handler::Program(_) = handler {
            command_program(call, &[], &working_directory(&[])?)?;
        }
    }
    Ok(())
}

fn agent_steps(request: &RunRequest) -> impl Iterator<Item = &WorkflowStep> {
    let steps = request.workflow.iter().flat_map(|w| &w.steps);
    steps.filter(|step| {
        policy::descriptor(&step.call.command).is_some_and(|c| c.handler == Handler::Agent)
    })
}

/// Returns the step of the recipe that runs the agent, if the agent is a step.
pub(crate) fn agent_step(request: &RunRequest) -> Option<&WorkflowStep> {
    agent_steps(request).next()
}

fn check_agent_steps(request: &RunRequest) -> Result<(), ErrorBody> {
    match (agent_steps(request).count(), &request.agent) {
        (0, _) | (1, Some(_)) => Ok(()),
        (1, None) => Err(ErrorBody::new(
            ErrorCode::AgentMissing,
            "a step runs the agent, but the request has none: name a model or an agent",
        )),
        _ => Err(ErrorBody::new(
            ErrorCode::InputInvalid,
            "the request has several steps that run its agent: keep one",
        )),
    }
}

/// Checks that the policy allows the agent as a program of the guest. Not called if a step of the
/// recipe runs the agent: then the policy must only allow the command of that step.
fn check_agent(request: &RunRequest, policy: &RuntimePolicy) -> Result<(), ErrorBody> {
    match &request.agent {
        Some(Agent::Preset(_)) => assert_agent(policy, wp_codebox_backend_native::AGENTS),
        Some(Agent::Command(agent)) => {
            assert_agent(policy, agent.argv.first().map_or("", String::as_str))
        }
        // The guest's PHP runs the ability, so the policy must allow `php` as a program.
        Some(Agent::Ability(_)) => assert_agent(policy, "php"),
        Some(Agent::Model(_)) | None => Ok(()),
    }
}

fn assert_agent(policy: &RuntimePolicy, program: &str) -> Result<(), ErrorBody> {
    let call = CommandCall {
        command: AGENT_COMMAND.to_owned(),
        args: vec![format!("command={program}")],
    };
    policy::assert_command(policy, &call)
        .map(|_| ())
        .map_err(ErrorBody::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const STEP: &str = "wp-codebox.agent-sandbox-run";

    fn request(agent: Option<Value>, steps: usize) -> RunRequest {
        let step = json!({"phase": "steps", "index": 0,
            "call": {"command": STEP, "args": ["task=x"]}});
        serde_json::from_value(json!({
            "schema": "wp-codebox/run-request/v1",
            "run_id": format!("run_{:032x}", 1),
            "site": "test",
            "paths": {"state_dir": "/s", "share_dir": "/h", "launcher": "/l", "php_binary": "/p",
                "wordpress": "/w"},
            "agent": agent,
            "workflow": {"steps": vec![step; steps]},
        }))
        .unwrap()
    }

    fn checked(request: &RunRequest, commands: &[&str]) -> Result<(), ErrorCode> {
        let commands = commands.iter().map(|id| (*id).to_owned()).collect();
        check_programs(request, &policy::defaults(commands), &[]).map_err(|error| error.code)
    }

    #[test]
    fn request_with_two_agent_steps_or_an_agent_step_without_an_agent_is_refused() {
        let program = || Some(json!({"kind": "command", "argv": ["true"]}));
        let public = [STEP, "wordpress.run-php", "wordpress.wp-cli"];
        assert_eq!(checked(&request(program(), 1), &public), Ok(()));
        let two = checked(&request(program(), 2), &public);
        assert_eq!(two, Err(ErrorCode::InputInvalid));
        assert_eq!(
            checked(&request(None, 1), &public),
            Err(ErrorCode::AgentMissing)
        );
        // Without the step, the policy must allow the agent as a program of the guest.
        let alone = checked(&request(program(), 0), &public);
        assert_eq!(alone, Err(ErrorCode::CommandDisallowed));
        assert_eq!(checked(&request(program(), 0), &[AGENT_COMMAND]), Ok(()));
        let denied = checked(&request(program(), 1), &[AGENT_COMMAND]);
        assert_eq!(denied, Err(ErrorCode::CommandDisallowed));
    }

    #[test]
    fn agent_step_is_refused_as_a_command_of_a_request() {
        let mut request = request(Some(json!({"kind": "command", "argv": ["true"]})), 0);
        request.commands = vec![CommandCall {
            command: STEP.to_owned(),
            args: vec!["task=x".to_owned()],
        }];
        let all = [STEP, "wordpress.run-php", "wordpress.wp-cli", AGENT_COMMAND];
        assert_eq!(checked(&request, &all), Err(ErrorCode::CommandUnsupported));
    }
}
