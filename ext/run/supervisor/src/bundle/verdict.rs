//! Decides the outcome of a run in one function, with the most severe condition first.

use crate::checks::Checked;
use crate::session::ending::AgentEnd;
use crate::work::Work;
use wp_codebox_artifacts::{Approvable, Change};
use wp_codebox_contracts::{ChangeCounts, CheckStatus, ErrorBody, ErrorCode, Outcome};
use wp_codebox_runtime::{CancelReason, Stop};

/// Outcome of a run, its error, and whether a reviewer may approve the bundle.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    pub outcome: Outcome,
    pub error: Option<ErrorBody>,
    pub approvable: Approvable,
    pub counts: ChangeCounts,
}

/// Returns how many paths the run has added, modified and deleted in all mounts together.
pub(crate) fn counts(work: &Work) -> ChangeCounts {
    let mut counts = ChangeCounts::default();
    for entry in work.changes.iter().flatten().flat_map(|c| &c.entries) {
        match entry.change {
            Change::Added(_) => counts.added += 1,
            Change::Modified { .. } => counts.modified += 1,
            Change::Deleted(_) => counts.deleted += 1,
        }
    }
    counts
}

/// Returns the outcome of a run from its work, its checks and a cancel request.
pub(crate) fn decide(work: &Work, checked: &Checked, cancelled: Option<CancelReason>) -> Verdict {
    let counts = counts(work);
    let moved = (!work.moved.is_empty()).then(|| {
        ErrorBody::new(
            ErrorCode::BaselineChanged,
            "files of the mounted directory changed while the run used them: run again",
        )
        .with("mounts", work.moved.clone())
    });
    let approvable = match &moved {
        Some(error) => Approvable::No {
            code: error.code,
            reason: error.message.clone(),
        },
        None => Approvable::Yes,
    };
    let (outcome, error) = outcome(work, checked, cancelled, moved, counts);
    Verdict {
        outcome,
        error,
        approvable,
        counts,
    }
}

fn outcome(
    work: &Work,
    checked: &Checked,
    cancelled: Option<CancelReason>,
    moved: Option<ErrorBody>,
    counts: ChangeCounts,
) -> (Outcome, Option<ErrorBody>) {
    let stopped = work.stopped.as_ref().or(checked.stopped.as_ref());
    match stopped {
        Some(Stop::Cancelled) => {
            let why = cancelled.map_or("the run was cancelled", CancelReason::sentence);
            return (
                Outcome::Cancelled,
                Some(
                    ErrorBody::new(ErrorCode::RunCancelled, why)
                        .hint("start the task again to complete it"),
                ),
            );
        }
        Some(Stop::Timeout) => {
            let error = ErrorBody::new(
                ErrorCode::RunTimeout,
                "the run reached its wall clock limit; raise the limit or reduce the task",
            );
            return (Outcome::TimedOut, Some(error));
        }
        Some(Stop::Failed(error) | Stop::Uncaptured(error)) => {
            return (Outcome::Failed, Some(error.clone()));
        }
        Some(Stop::Blocked(error)) => return (Outcome::Blocked, Some(error.clone())),
        Some(Stop::Partial(error)) if moved.is_none() => {
            return (Outcome::Partial, Some(error.clone()));
        }
        Some(Stop::Partial(_)) => {}
        None => {}
    }
    if let Some(error) = moved {
        return (Outcome::Blocked, Some(error));
    }
    if let Some(check) = checked
        .reports
        .iter()
        .find(|c| c.status != CheckStatus::Passed)
    {
        let exit = match (check.status, check.exit_code, &check.reason) {
            (CheckStatus::Error, _, Some(reason)) => format!("did not run to its end: {reason}"),
            (_, Some(0), Some(reason)) => format!("exited with 0, but did not pass: {reason}"),
            (_, Some(code), Some(reason)) => format!("exited with {code}: {reason}"),
            (_, Some(code), None) => format!("exited with {code}"),
            (_, None, Some(reason)) => format!("did not pass: {reason}"),
            (_, None, None) => "was killed by a signal".to_owned(),
        };
        let error = ErrorBody::new(
            ErrorCode::CheckFailed,
            format!("check `{}` {exit}", check.command),
        )
        .hint("read the output of the check in the result, then run again, or review the changes in the bundle");
        return (Outcome::Partial, Some(error));
    }
    match work.agent {
        AgentEnd::Success if counts.total() == 0 => (Outcome::NoOp, None),
        AgentEnd::Success | AgentEnd::None | AgentEnd::Tolerated => (Outcome::Succeeded, None),
        // A failed agent fails the run even if no error stopped the run.
        AgentEnd::Failure => {
            let error = ErrorBody::new(ErrorCode::RunFailed, "the agent did not succeed");
            (Outcome::Failed, Some(error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_artifacts::{EntryChange, MountChanges, Node};
    use wp_codebox_contracts::{CheckReport, IsolationLevel, IsolationReport, SandboxAudit};
    use wp_codebox_runtime::Usage;

    fn work(agent: AgentEnd, stopped: Option<Stop>, changed: usize, moved: &[usize]) -> Work {
        let entries = (0..changed)
            .map(|n| EntryChange {
                path: format!("f{n}").into_bytes(),
                change: Change::Added(Node::Directory),
            })
            .collect();
        Work {
            stopped,
            agent,
            changes: vec![Some(MountChanges {
                entries,
                ..MountChanges::default()
            })],
            since: Default::default(),
            layers: Ok(Vec::new()),
            moved: moved.to_vec(),
            isolation: IsolationReport {
                schema: String::new(),
                level: IsolationLevel::Full,
                kernel: String::new(),
                landlock_abi: 0,
                axes: Vec::new(),
            },
            outer: SandboxAudit::default(),
            usage: Usage::default(),
        }
    }

    fn checked(statuses: &[CheckStatus]) -> Checked {
        let reports = statuses
            .iter()
            .map(|status| CheckReport {
                command: "c".to_owned(),
                exit_code: Some(i32::from(*status != CheckStatus::Passed)),
                status: *status,
                output_tail: String::new(),
                duration_ms: 1,
                reason: None,
                tests: None,
            })
            .collect();
        Checked {
            reports,
            ..Checked::default()
        }
    }

    fn failed() -> Stop {
        Stop::Failed(ErrorBody::new(ErrorCode::RunFailed, "exited with 1"))
    }

    #[test]
    fn run_outcome_follows_from_agent_result_changes_and_checks() {
        use AgentEnd::{Failure, None as NoAgent, Success, Tolerated};
        let rows = [
            (
                work(Success, None, 1, &[]),
                checked(&[CheckStatus::Passed]),
                Outcome::Succeeded,
                None,
            ),
            (
                work(Success, None, 1, &[]),
                checked(&[]),
                Outcome::Succeeded,
                None,
            ),
            (
                work(Success, None, 0, &[]),
                checked(&[CheckStatus::Passed]),
                Outcome::NoOp,
                None,
            ),
            (
                work(NoAgent, None, 0, &[]),
                checked(&[]),
                Outcome::Succeeded,
                None,
            ),
            (
                work(Tolerated, None, 1, &[]),
                checked(&[]),
                Outcome::Succeeded,
                None,
            ),
            (
                work(Success, None, 1, &[]),
                checked(&[CheckStatus::Passed, CheckStatus::Failed]),
                Outcome::Partial,
                Some(ErrorCode::CheckFailed),
            ),
            (
                work(Success, None, 0, &[]),
                checked(&[CheckStatus::Error]),
                Outcome::Partial,
                Some(ErrorCode::CheckFailed),
            ),
            (
                work(Failure, Some(failed()), 1, &[]),
                checked(&[CheckStatus::Passed]),
                Outcome::Failed,
                Some(ErrorCode::RunFailed),
            ),
            (
                work(Failure, None, 1, &[]),
                checked(&[CheckStatus::Passed]),
                Outcome::Failed,
                Some(ErrorCode::RunFailed),
            ),
            (
                work(Failure, Some(Stop::Timeout), 1, &[]),
                checked(&[]),
                Outcome::TimedOut,
                Some(ErrorCode::RunTimeout),
            ),
            (
                work(Failure, Some(Stop::Cancelled), 1, &[0]),
                checked(&[]),
                Outcome::Cancelled,
                Some(ErrorCode::RunCancelled),
            ),
            (
                work(
                    Failure,
                    Some(Stop::Partial(ErrorBody::new(
                        ErrorCode::BudgetExhausted,
                        "turns",
                    ))),
                    1,
                    &[],
                ),
                checked(&[CheckStatus::Passed]),
                Outcome::Partial,
                Some(ErrorCode::BudgetExhausted),
            ),
            (
                work(
                    Failure,
                    Some(Stop::Partial(ErrorBody::new(
                        ErrorCode::BudgetExhausted,
                        "turns",
                    ))),
                    1,
                    &[0],
                ),
                checked(&[]),
                Outcome::Blocked,
                Some(ErrorCode::BaselineChanged),
            ),
            (
                work(
                    Failure,
                    Some(Stop::Blocked(ErrorBody::new(ErrorCode::AgentBlocked, "no"))),
                    1,
                    &[],
                ),
                checked(&[CheckStatus::Passed]),
                Outcome::Blocked,
                Some(ErrorCode::AgentBlocked),
            ),
            (
                work(Success, None, 1, &[0]),
                checked(&[]),
                Outcome::Blocked,
                Some(ErrorCode::BaselineChanged),
            ),
        ];
        for (index, (work, checked, outcome, code)) in rows.iter().enumerate() {
            let verdict = decide(work, checked, Some(CancelReason::Asked));
            assert_eq!(verdict.outcome, *outcome, "row {index}");
            assert_eq!(verdict.error.map(|e| e.code), *code, "row {index}");
            let may = verdict.approvable == Approvable::Yes;
            assert_eq!(may, work.moved.is_empty(), "row {index}");
        }
    }
}
