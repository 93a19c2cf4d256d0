//! Runs the agent as a program in the guest.

use crate::journal::agent_steps::AgentSteps;
use crate::journal::inactive::Inactive;
use crate::prepared::context::RunContext;
use crate::request::preset::{self, PresetAgentProgram, PresetFacts};
use crate::session::ending::{AgentEnd, ProgramsEnd, stop_of};
use crate::session::guest::GuestContext;
use wp_codebox_contracts::{AgentCommand, ErrorBody};
use wp_codebox_policy::final_message;
use wp_codebox_runtime::agent_program;

/// Environment variable of agent programs: what is mounted but could not be activated and why, one
/// line each.
const INACTIVE: &str = "CODEBOX_INACTIVE";

pub(super) fn run(
    agent: &AgentCommand,
    mut guest: GuestContext<'_, '_>,
) -> Result<ProgramsEnd, ErrorBody> {
    let run = guest.run;
    let preset = run.prepared.preset.as_ref();
    let inactive: Vec<String> = guest
        .recorder
        .evidence
        .inactive
        .iter()
        .map(Inactive::sentence)
        .collect();
    let (agent, stdin) = match preset {
        None => (agent.clone(), Vec::new()),
        Some(program) if inactive.is_empty() => (agent.clone(), program.stdin.clone()),
        Some(program) => with_addition(program, run, &inactive.join("\n"))?,
    };
    let mut call = guest.equipped(agent_program(&agent, &run.cwd));
    call.stdin = Some(stdin).filter(|stdin| !stdin.is_empty());
    if !inactive.is_empty() {
        call.env.insert(INACTIVE.to_owned(), inactive.join("\n"));
    }
    guest.recorder.steps = preset.and_then(|program| AgentSteps::new(&program.preset.steps));
    let step = guest.execute(&call)?;
    guest.recorder.evidence.final_message =
        preset.and_then(|program| final_message(&program.preset.result, &step.stdout));
    match stop_of(&call, &step, &agent.success_codes)? {
        None => Ok((None, AgentEnd::Success)),
        Some(stop) => Ok((Some(stop), AgentEnd::Failure)),
    }
}

/// Returns command line and standard input of the preset's program for the goal with an addition.
fn with_addition(
    program: &PresetAgentProgram,
    run: &RunContext<'_>,
    addition: &str,
) -> Result<(AgentCommand, Vec<u8>), ErrorBody> {
    let facts = PresetFacts {
        model: run.prepared.guest_model.as_ref(),
        secrets: &run.prepared.secrets,
        workspace: &run.cwd,
    };
    let goal = format!("{}\n\n{addition}", program.goal.trim_end());
    let resolved = preset::resolve(&program.preset, &goal, facts)?;
    Ok((resolved.command, resolved.stdin))
}
