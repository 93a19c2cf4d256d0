//! A program in the guest.

use super::super::agent_steps::AgentSteps;
use super::super::ending::{AgentEnd, ProgramsEnd, stop_of};
use super::bench::Bench;
use wp_codebox_contracts::{AgentCommand, ErrorBody};
use wp_codebox_policy::last_word;
use wp_codebox_runtime::agent_program;

pub(super) fn run(agent: &AgentCommand, bench: Bench<'_, '_>) -> Result<ProgramsEnd, ErrorBody> {
    let Bench {
        context,
        recorder,
        runtime,
        ..
    } = bench;
    let mut call = context.work_call(agent_program(agent, &context.cwd));
    let manner = context.prepared.manner.as_ref();
    call.stdin = manner
        .map(|manner| manner.stdin.clone())
        .filter(|stdin| !stdin.is_empty());
    recorder.steps = manner.and_then(|manner| AgentSteps::new(&manner.steps));
    let step = recorder.run(runtime, &call, context.clock.deadline)?;
    recorder.last_word = manner.and_then(|manner| last_word(&manner.result, &step.stdout));
    match stop_of(&call, &step, &agent.success_codes)? {
        None => Ok((None, AgentEnd::Success)),
        Some(stop) => Ok((Some(stop), AgentEnd::Failure)),
    }
}
