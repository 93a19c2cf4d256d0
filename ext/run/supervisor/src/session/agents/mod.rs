//! Runs the agent of a run in its guest. The agent is a program, the built-in agent loop, or an
//! ability (a function registered in WordPress).

mod ability;
mod activation;
mod answer;
mod beside;
mod bundles;
mod command;
mod components;
mod executor;
mod model;
mod notes;
mod seeds;

#[cfg(test)]
mod tests;

pub(crate) use activation::compare;
pub(crate) use beside::content;

use super::ending::{AgentEnd, ProgramsEnd};
use super::guest::GuestContext;
use wp_codebox_contracts::{Agent, ErrorBody, ErrorCode};
use wp_codebox_runtime::Stop;

/// Loads the components of the request into a new guest, creates the content of its site seeds there
/// and activates its mounted plugins and themes. Returns the reason to stop the run, if any.
pub(crate) fn prepare(guest: &mut GuestContext<'_, '_>) -> Result<Option<Stop>, ErrorBody> {
    for step in [components::load, seeds::create, activation::run] {
        if let Some(stop) = step(guest)? {
            return Ok(Some(stop));
        }
    }
    Ok(None)
}

/// Runs the agent as a step of a recipe. Imports its agent bundles before, because earlier steps may
/// have activated the plugin that imports them.
pub(crate) fn run_step(
    agent: &Agent,
    mut guest: GuestContext<'_, '_>,
) -> Result<ProgramsEnd, ErrorBody> {
    match bundles::import(&mut guest)? {
        Some(stop) => Ok((Some(stop), AgentEnd::Failure)),
        None => run(agent, guest),
    }
}

/// Runs the agent until it ends, and notes what it changed in the guest's database.
pub(crate) fn run(
    agent: &Agent,
    mut guest: GuestContext<'_, '_>,
) -> Result<ProgramsEnd, ErrorBody> {
    let before = beside::database(&mut guest)?;
    let ended = work(agent, guest.again())?;
    // The programs of a guest that was ended cannot answer.
    let lost = matches!(ended.0, Some(Stop::Timeout | Stop::Cancelled));
    if let (Some(before), false) = (before, lost)
        && let Ok(Some(after)) = beside::database(&mut guest)
        && let Some(notice) = before.difference(&after)
    {
        guest.recorder.evidence.notices.push(notice);
    }
    Ok(ended)
}

fn work(agent: &Agent, guest: GuestContext<'_, '_>) -> Result<ProgramsEnd, ErrorBody> {
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
