//! Runs the steps of a recipe in order, in the session of their run.
//!
//! A failed step stops the run unless the step allows failure. After a failure that stops the run,
//! only steps of the phase `after` run, as long as the guest lives; all other steps, probes
//! included, are skipped. The result of every step is evidence, including steps that may fail.

mod collect;
mod evidence;
mod rule;
mod step;

pub(crate) use rule::check_changes;

use crate::session::Session;
use crate::session::ending::AgentEnd;
use evidence::Evidence;
use step::Done;
use wp_codebox_contracts::{ErrorBody, OnFailure, Workflow, WorkflowStep};
use wp_codebox_runtime::Stop;

/// Name of the phase that runs even after a failure.
const AFTER: &str = "after";

/// Whether the guest still lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guest {
    Alive,
    Gone,
}

/// Runs every step and collects the files that the recipe declares. Returns the failure that stops
/// the run; permitted failures appear only in the evidence.
pub(crate) fn run(
    session: &mut Session<'_, '_>,
    workflow: &Workflow,
) -> Result<Option<Stop>, ErrorBody> {
    let mut evidence = Evidence::default();
    let ended = run_steps(session, workflow, &mut evidence);
    // An error ends the steps, but the results of earlier steps are still evidence.
    evidence.leave();
    evidence.write(session.recorder);
    ended
}

fn run_steps(
    session: &mut Session<'_, '_>,
    workflow: &Workflow,
    evidence: &mut Evidence,
) -> Result<Option<Stop>, ErrorBody> {
    let mut stopped = None;
    let mut guest = Guest::Alive;
    for step in &workflow.steps {
        if guest == Guest::Gone || (stopped.is_some() && step.phase != AFTER) {
            evidence.skip(step);
            continue;
        }
        evidence.enter(&step.phase);
        let done = step::run(session, step, evidence)?;
        match stop_after(step, done, &mut guest) {
            // The first failure is the one to report.
            Some(stop) => drop(stopped.get_or_insert(stop)),
            None if step::runs_agent(step) && session.agent == Some(AgentEnd::Failure) => {
                session.agent = Some(AgentEnd::Tolerated);
            }
            None => {}
        }
    }
    if guest == Guest::Alive && !workflow.collect.is_empty() {
        evidence.enter("collect");
        if let Some(error) = collect::run(session, &workflow.collect, evidence)? {
            stopped.get_or_insert(Stop::Failed(error));
        }
    }
    Ok(stopped)
}

/// Returns the reason to stop the run that follows from the end of a step, if there is one.
fn stop_after(step: &WorkflowStep, done: Done, guest: &mut Guest) -> Option<Stop> {
    match done {
        Done::Well => None,
        Done::Over(stop) => {
            *guest = Guest::Gone;
            Some(stop)
        }
        Done::Failed(stop) => match step.on_failure {
            OnFailure::Stop => Some(stop),
            OnFailure::Allow | OnFailure::Advise => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::evidence::PROBE;
    use super::step::failed;
    use super::*;
    use wp_codebox_contracts::CommandCall;
    use wp_codebox_contracts::ErrorCode;

    fn step(phase: &str, on_failure: OnFailure) -> WorkflowStep {
        WorkflowStep {
            phase: phase.to_owned(),
            index: 3,
            name: None,
            call: CommandCall {
                command: "wordpress.wp-cli".to_owned(),
                args: Vec::new(),
            },
            timeout_ms: None,
            on_failure,
            expect_json: false,
            continuation: None,
            metadata: serde_json::Map::new(),
        }
    }

    #[test]
    fn run_continues_after_a_failed_step_only_if_the_step_may_fail() {
        let error = || ErrorBody::new(ErrorCode::StepFailed, "exited with 1");
        for (on_failure, stops) in [
            (OnFailure::Stop, true),
            (OnFailure::Allow, false),
            (OnFailure::Advise, false),
        ] {
            let mut guest = Guest::Alive;
            let stop = stop_after(
                &step("steps", on_failure),
                Done::Failed(Stop::Failed(error())),
                &mut guest,
            );
            assert_eq!(stop.is_some(), stops, "{on_failure:?}");
            assert_eq!(guest, Guest::Alive);
            // Even a step that may fail stops the run when the guest is dead.
            let stop = stop_after(
                &step("steps", on_failure),
                Done::Over(Stop::Timeout),
                &mut guest,
            );
            assert_eq!(stop, Some(Stop::Timeout));
            assert_eq!(guest, Guest::Gone);
        }
        let mut guest = Guest::Alive;
        assert_eq!(
            stop_after(&step("steps", OnFailure::Stop), Done::Well, &mut guest),
            None
        );
    }

    #[test]
    fn failure_message_names_the_failed_step() {
        let error = failed(&step("steps", OnFailure::Stop), "exited with 1");
        assert_eq!(error.code, ErrorCode::StepFailed);
        assert_eq!(
            error.message,
            "step steps[3] (wordpress.wp-cli) exited with 1"
        );
        let mut probe = step(PROBE, OnFailure::Stop);
        probe.name = Some("ready".to_owned());
        let error = failed(&probe, "printed no JSON");
        assert_eq!(
            error.message,
            "probe ready (wordpress.wp-cli) printed no JSON"
        );
        assert_eq!(error.data.unwrap()["reason"], "recipe-probe-failed");
    }
}
