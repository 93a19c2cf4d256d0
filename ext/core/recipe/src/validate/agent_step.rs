//! Validates the step that runs the agent of the run.

use super::{Validator, paths};
use crate::agent_step::{self, RequiredPlugin};
use crate::issue::IssueCode;
use crate::layout::{self, PlacedStep};
use crate::model::{LoadAs, SourceKind};
use wp_codebox_contracts::{RuntimeTask, TaskSpec};
use wp_codebox_policy::{
    CommandDescriptor, Handler, check_runtime_task, normalise_task, read_task,
};

/// Why an argument that other implementations accept for this command is refused.
pub(super) fn refused_argument(found: &CommandDescriptor, name: &str) -> Option<&'static str> {
    match (found.handler, name) {
        (Handler::Agent, "code" | "code-file") => Some(
            "the sandbox runs its own agent, not code of the recipe in its place; run the code as a step wordpress.run-php",
        ),
        _ => None,
    }
}

/// Checks number, place and arguments of the steps that run an agent.
pub(super) fn check(validator: &mut Validator<'_>) {
    let steps = layout::workflow(validator.recipe);
    let mut agents = steps
        .iter()
        .filter(|placed| agent_step::is_agent(&placed.step.command));
    if let Some(first) = agents.next() {
        check_task(validator, first);
        for placed in agents {
            let message = format!(
                "a run has one agent, and {} already runs it; put the second task in a recipe of its own, or use `wp-codebox agent-fanout`",
                first.path
            );
            let path = format!("{}.command", placed.path);
            validator.report(IssueCode::UnsupportedCommand, path, message);
        }
    }
    for placed in layout::probes(validator.recipe) {
        if agent_step::is_agent(&placed.step.command) {
            validator.report(
                IssueCode::UnsupportedCommand,
                format!("{}.command", placed.path),
                "a probe checks the result of the steps and cannot run the agent; make it a step of the workflow",
            );
        }
    }
}

fn check_task(validator: &mut Validator<'_>, placed: &PlacedStep<'_>) {
    if placed.step.continuation.is_some() {
        validator.report(
            IssueCode::InvalidContinuation,
            format!("{}.continuation", placed.path),
            "the agent of a run runs once, so its step cannot have a continuation; remove the continuation",
        );
    }
    let call = placed.call();
    for plugin in agent_step::required_plugins(&call) {
        check_plugin(validator, placed, &plugin);
    }
    let args = format!("{}.args", placed.path);
    let read = normalise_task(agent_step::task(&call))
        .and_then(|task| read_task(task, Default::default()));
    match read {
        Ok(task) => check_fields(validator, &args, &task),
        // `check_args` reports a missing task.
        Err(_) if call.args.iter().all(|arg| !arg.starts_with("task=")) => {}
        Err(error) => validator.report(IssueCode::InvalidStep, args, error.message),
    }
}

/// Checks the fields of the task that the step has in addition to its goal.
fn check_fields(validator: &mut Validator<'_>, args: &str, task: &TaskSpec) {
    let mut report = |message: String| validator.report(IssueCode::InvalidStep, args, message);
    if task.policy.is_some() {
        report("the task has a policy, but the policy of the recipe's run applies; remove the task's policy and use --policy".to_owned());
    }
    if !(task.tool_bridge.is_empty() && task.parent_tool_bridge.is_empty()) {
        report("tool_bridge and parent_tool_bridge need tools of a WordPress site; use sandbox-tool-policy-json".to_owned());
    }
    if !task.runtime_task.is_empty() {
        if task.agent.is_some() {
            report(
                "agent and runtime-task-json exclude each other, as each names what does the work; remove one of them"
                    .to_owned(),
            );
        }
        let read = serde_json::from_value::<RuntimeTask>(task.runtime_task.clone().into());
        match read.map(|task| check_runtime_task(&task)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => report(format!("runtime-task-json: {error}")),
            Err(_) => report("runtime-task-json must be {ability, input}".to_owned()),
        }
    }
    for bundle in &task.agent_bundles {
        if let Some(source) = &bundle.source {
            paths::check_given(validator, args, source, SourceKind::File);
        }
    }
}

/// Reports a required plugin that the recipe does not load and activate.
fn check_plugin(validator: &mut Validator<'_>, placed: &PlacedStep<'_>, wanted: &RequiredPlugin) {
    let path = format!("{}.args[{}]", placed.path, wanted.at);
    let slug = match &wanted.slug {
        Ok(slug) => slug,
        Err(why) => {
            let message = format!("{}: {why}", wanted.argument);
            return validator.report(IssueCode::InvalidStep, path, message);
        }
    };
    let recipe = validator.recipe;
    let loads = recipe.inputs.extra_plugins.iter().any(|plugin| {
        let found = layout::place_plugin(plugin, validator.sources);
        let active = found.load_as == LoadAs::MuPlugin || plugin.activate.unwrap_or(true);
        active && (found.slug == *slug || found.directory == *slug)
    });
    if !loads {
        let shown: String = slug.chars().take(100).collect();
        let message = format!(
            "{} requires the plugin {shown:?}, which the recipe does not activate; add {{\"source\": …, \"slug\": {shown:?}}} to inputs.extra_plugins",
            wanted.argument
        );
        validator.report(IssueCode::InvalidReference, path, message);
    }
}
