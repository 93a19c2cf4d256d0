//! Whoever does the work in the guest: a program, the built-in loop, or an ability.

mod ability;
mod answer;
mod bundles;
mod command;
mod components;
mod executor;
mod model;
mod notes;

pub(super) use components::load as load_components;

#[cfg(test)]
mod tests;

use super::ending::ProgramsEnd;
use super::guest::GuestContext;
use wp_codebox_contracts::{Agent, ErrorBody, ErrorCode};

/// Runs the agent to its end.
pub(super) fn run(agent: &Agent, guest: GuestContext<'_, '_>) -> Result<ProgramsEnd, ErrorBody> {
    match agent {
        Agent::Command(agent) => command::run(agent, guest),
        // Preparing the run made a program of it.
        Agent::Preset(agent) => Err(ErrorBody::new(
            ErrorCode::Internal,
            format!("the preset {} was not resolved", agent.name),
        )),
        #[cfg(test)]
        Agent::Model(_) if tests::is_in_place() => tests::instead_of_the_model(guest),
        Agent::Model(agent) => model::run(agent, guest),
        Agent::Ability(task) => ability::run(task, guest),
    }
}
