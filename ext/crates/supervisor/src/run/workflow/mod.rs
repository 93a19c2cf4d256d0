//! The steps of a recipe, one after the other, in the session of their run.
//!
//! A step that fails stops the run unless it says otherwise. Steps of the phase `after` run
//! whatever came before them, as long as there is a guest; probes only when nothing failed.
//! What came of every step is evidence, of those that were allowed to fail too.

mod collect;
mod evidence;
mod rule;
mod step;

pub(super) use rule::judge_changes;

use super::session::Session;
use evidence::Evidence;
use step::Done;
use wp_codebox_contracts::{ErrorBody, OnFailure, Workflow, WorkflowStep};
use wp_codebox_runtime::Stop;

/// GuestPhase that runs whatever came before it.
const AFTER: &str = "after";

/// Whether there still is a guest to run steps in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guest {
    Alive,
    Gone,
}

/// Runs every step and collects the files that the recipe names. What stops the run is answered;
/// what failed and was allowed to is in the evidence only.
pub(super) fn run(
    session: &mut Session<'_, '_>,
    workflow: &Workflow,
) -> Result<Option<Stop>, ErrorBody> {
    let mut evidence = Evidence::default();
    let mut stopped = None;
    let mut guest = Guest::Alive;
    for step in &workflow.steps {
        if guest == Guest::Gone || (stopped.is_some() && step.phase != AFTER) {
            evidence.skip(step);
            continue;
        }
        evidence.enter(&step.phase);
        let done = match step::run(session, step, &mut evidence) {
            Ok(done) => done,
            // What came of the steps before it is evidence all the same.
            Err(error) => {
                evidence.leave();
                evidence.write(session.recorder);
                return Err(error);
            }
        };
        if let Some(stop) = judge(step, done, &mut guest) {
            // The first failure is the one that says why.
            stopped.get_or_insert(stop);
        }
    }
    evidence.leave();
    if guest == Guest::Alive && !workflow.collect.is_empty() {
        evidence.enter("collect");
        let missing = collect::run(session, &workflow.collect, &mut evidence)?;
        evidence.leave();
        if let Some(error) = missing {
            stopped.get_or_insert(Stop::Failed(error));
        }
    }
    evidence.write(session.recorder);
    Ok(stopped)
}

/// What the end of a step means for the run.
fn judge(step: &WorkflowStep, done: Done, guest: &mut Guest) -> Option<Stop> {
    match done {
        Done::Well => None,
        Done::Over(stop) => {
            *guest = Guest::Gone;
            Some(stop)
        }
        Done::Failed(error) => match step.on_failure {
            OnFailure::Stop => Some(Stop::Failed(error)),
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
    fn only_what_may_fail_goes_on() {
        let error = || ErrorBody::new(ErrorCode::StepFailed, "exited with 1");
        for (on_failure, stops) in [
            (OnFailure::Stop, true),
            (OnFailure::Allow, false),
            (OnFailure::Advise, false),
        ] {
            let mut guest = Guest::Alive;
            let stop = judge(
                &step("steps", on_failure),
                Done::Failed(error()),
                &mut guest,
            );
            assert_eq!(stop.is_some(), stops, "{on_failure:?}");
            assert_eq!(guest, Guest::Alive);
            // Nothing allows a run to go on whose guest is gone.
            let stop = judge(
                &step("steps", on_failure),
                Done::Over(Stop::Timeout),
                &mut guest,
            );
            assert_eq!(stop, Some(Stop::Timeout));
            assert_eq!(guest, Guest::Gone);
        }
        let mut guest = Guest::Alive;
        assert_eq!(
            judge(&step("steps", OnFailure::Stop), Done::Well, &mut guest),
            None
        );
    }

    #[test]
    fn a_failure_names_its_step() {
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
