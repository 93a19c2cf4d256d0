//! `wp-codebox again`: a follow-up run with comments on the last change of this directory.

use super::args::AgainArgs;
use super::history::open;
use crate::output::Output;
use crate::{project, run};
use std::process::ExitCode;
use wp_codebox_changes::Wanted;
use wp_codebox_contracts::{Agent, ErrorBody, ErrorCode};
use wp_codebox_runtime::RecordedWork;

/// Starts a run that continues the change of an earlier run. Agent, checks and mounts are those of
/// the earlier run unless the arguments name others.
pub(crate) fn again(output: &Output, mut args: AgainArgs) -> ExitCode {
    match complete(&mut args) {
        Ok(()) => run::run(output, args.run),
        Err(error) => output.failure("again", &error),
    }
}

fn complete(args: &mut AgainArgs) -> Result<(), ErrorBody> {
    let run = &mut args.run;
    if run.follow_up.comments.is_empty() && run.follow_up.remarks.is_empty() {
        let message = "again needs a comment: say what should be different";
        return Err(ErrorBody::new(ErrorCode::InputInvalid, message)
            .hint("wp-codebox again --with 'what to change'"));
    }
    let (history, _) = open(&run.store)?;
    let named = args.earlier.take().or(run.follow_up.follow_up.take());
    let earlier = history.run(named.as_deref(), Wanted::Bundle)?.run;
    let view = history.view(&earlier)?;
    run.follow_up.follow_up = Some(earlier.run_id.to_string());
    if run.goal.is_none() {
        run.goal = view.facts.goal().map(str::to_owned);
    }
    let work = history.work(&earlier)?.unwrap_or_default();
    if run.guest.mounts.is_empty() {
        let mounts = work.directories.iter();
        // Without its guest path, a project is recognised and activated again.
        let mounts = mounts.map(|(target, source)| match project::of(source) {
            Ok(project) if project.target == *target => source.display().to_string(),
            Ok(_) | Err(_) => format!("{}:{target}", source.display()),
        });
        run.guest.mounts = mounts.collect();
    }
    if run.checks.is_empty() {
        run.checks.clone_from(&work.checks);
    }
    let names_agent = run.agent_command.is_some() || run.agent.is_some();
    if !names_agent && run.model.model.is_none() {
        same_agent(run, work)?;
    }
    Ok(())
}

/// Uses the agent command of the earlier run. For a run with a model, fails and asks for the
/// model's options again: no record contains the API key.
fn same_agent(run: &mut crate::run_args::RunArgs, work: RecordedWork) -> Result<(), ErrorBody> {
    let again = |what: &str| {
        let message = format!("the earlier run had {what}; choose the agent for this run");
        Err(ErrorBody::new(ErrorCode::AgentMissing, message)
            .hint("give --model with its options, --agent or --agent-command"))
    };
    match work.agent {
        Some(Agent::Command(agent)) => {
            run.agent_command = Some(shell_words::join(&agent.argv));
            run.agent_success_codes = agent.success_codes;
            Ok(())
        }
        Some(Agent::Preset(_)) => again("an agent with a model"),
        Some(_) => again("a model or an ability as its agent"),
        None => again("no agent"),
    }
}
