//! Runs the agent of a run in its guest. The agent is a program, the built-in agent loop, or an
//! ability (a function registered in WordPress).

mod ability;
mod answer;
mod bundles;
mod command;
mod components;
mod executor;
mod model;
mod notes;
mod seeds;

#[cfg(test)]
mod tests;

use super::ending::{AgentEnd, ProgramsEnd};
use super::guest::GuestContext;
use wp_codebox_contracts::{Agent, ErrorBody, ErrorCode};
use wp_codebox_runtime::Stop;

/// Loads the components of the request into a new guest, then creates the content of its site seeds
/// there. Returns the reason to stop the run, if any.
pub(super) fn prepare(guest: &mut GuestContext<'_, '_>) -> Result<Option<Stop>, ErrorBody> {
    match components::load(guest)? {
        None => seeds::create(guest),
        stop => Ok(stop),
    }
}

/// Runs the agent as a step of a recipe. Imports its agent bundles before, because earlier steps may
/// have activated the plugin that imports them.
pub(super) fn run_step(
    agent: &Agent,
    mut guest: GuestContext<'_, '_>,
) -> Result<ProgramsEnd, ErrorBody> {
    match bundles::import(&mut guest)? {
        Some(stop) => Ok((Some(stop), AgentEnd::Failure)),
        None => run(agent, guest),
    }
}

/// Runs the agent until it ends.
pub(super) fn run(agent: &Agent, guest: GuestContext<'_, '_>) -> Result<ProgramsEnd, ErrorBody> {
    match agent {
        Agent::Command(agent) => command::run(agent, guest),
        // Preparing the run replaces a preset by a program, so this is unreachable.
        Agent::Preset(agent) => Err(ErrorBody::new(
            ErrorCode::Internal,
            format!("the preset {} was not resolved", agent.name),
        )),
        #[cfg(test)]
        Agent::Model(_) if tests::is_model_replaced() => tests::run_test_agent(guest),
        Agent::Model(agent) => model::run(agent, guest),
        Agent::Ability(task) => ability::run(task, guest),
    }
}
