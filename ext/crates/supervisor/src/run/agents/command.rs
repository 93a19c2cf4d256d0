//! A program in the guest.

use super::super::agent_steps::AgentSteps;
use super::super::ending::{AgentEnd, ProgramsEnd, stop_of};
use super::super::guest::GuestContext;
use wp_codebox_contracts::{AgentCommand, ErrorBody};
use wp_codebox_policy::final_message;
use wp_codebox_runtime::agent_program;

pub(super) fn run(
    agent: &AgentCommand,
    mut guest: GuestContext<'_, '_>,
) -> Result<ProgramsEnd, ErrorBody> {
    let run = guest.run;
    let mut call = guest.equipped(agent_program(agent, &run.cwd));
    let manner = run.prepared.manner.as_ref();
    call.stdin = manner
        .map(|manner| manner.stdin.clone())
        .filter(|stdin| !stdin.is_empty());
    guest.recorder.steps = manner.and_then(|manner| AgentSteps::new(&manner.steps));
    let step = guest.execute(&call)?;
    guest.recorder.evidence.final_message =
        manner.and_then(|manner| final_message(&manner.result, &step.stdout));
    match stop_of(&call, &step, &agent.success_codes)? {
        None => Ok((None, AgentEnd::Success)),
        Some(stop) => Ok((Some(stop), AgentEnd::Failure)),
    }
}
