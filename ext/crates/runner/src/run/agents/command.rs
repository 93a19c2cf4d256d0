//! A program in the guest.

use super::super::programs;
use super::super::work::{AgentEnd, ProgramsEnd, stop_of, with_secrets};
use super::Bench;
use wp_codebox_contracts::{AgentCommand, ErrorBody};

pub(super) fn run(agent: &AgentCommand, bench: Bench<'_, '_>) -> Result<ProgramsEnd, ErrorBody> {
    let Bench {
        setting,
        recorder,
        runtime,
        ..
    } = bench;
    let call = with_secrets(setting, programs::agent(agent, &setting.cwd));
    let step = recorder.run(runtime, &call, setting.clock.deadline)?;
    match stop_of(&call, &step, &agent.success_codes)? {
        None => Ok((None, AgentEnd::Success)),
        Some(stop) => Ok((Some(stop), AgentEnd::Failure)),
    }
}
