//! The outcome table: the outcome of a run and the statuses and exit codes derived from it.

use crate::string_enum;
use serde::{Deserialize, Serialize};

string_enum! {
    /// How a run ended.
    pub enum Outcome {
        /// The agent succeeded, files changed, all checks passed.
        Succeeded = "succeeded",
        /// The agent succeeded and changed nothing.
        NoOp = "no_op",
        /// Files changed, but a check failed or the agent did not finish its work.
        Partial = "partial",
        /// A human must resolve a problem before the work can continue or be approved, e.g. a
        /// secret in the patch.
        Blocked = "blocked",
        /// The policy denied an operation.
        Denied = "denied",
        /// The agent failed.
        Failed = "failed",
        /// The run reached its deadline.
        TimedOut = "timed_out",
        /// The caller cancelled the run or disconnected.
        Cancelled = "cancelled",
    }
}

/// Whether a call completed: `status` of `sandbox-session/v1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// The call completed.
    Completed,
    /// The call did not complete.
    Failed,
}

/// What an orchestrator can use of a run: `status` of `sandbox-completion-outcome/v1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompletionStatus {
    /// The changes are ready to apply.
    Succeeded,
    /// A human must resolve a problem first.
    Blocked,
    /// The run produced nothing usable.
    Failed,
    /// The run produced a usable part of the work.
    Partial,
}

/// What an orchestrator should do after a run: `nextAction` of `sandbox-completion-outcome/v1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NextAction {
    /// Review and apply the changes.
    Promote,
    /// Review the partial result.
    Review,
    /// Run the task again.
    Retry,
    /// Resolve the blocker first.
    FixBlocker,
}

impl Outcome {
    /// Returns `status` of `sandbox-session/v1` for a run with this outcome.
    #[must_use]
    pub const fn session_status(self) -> SessionStatus {
        match self {
            Outcome::Succeeded | Outcome::NoOp | Outcome::Partial => SessionStatus::Completed,
            Outcome::Blocked
            | Outcome::Denied
            | Outcome::Failed
            | Outcome::TimedOut
            | Outcome::Cancelled => SessionStatus::Failed,
        }
    }

    /// Returns `status` and `nextAction` of `sandbox-completion-outcome/v1`, which depend on
    /// whether the bundle contains changed files.
    #[must_use]
    pub const fn completion(self, salvaged: RecoveredChanges) -> (CompletionStatus, NextAction) {
        match (self, salvaged) {
            (Outcome::Succeeded, _) => (CompletionStatus::Succeeded, NextAction::Promote),
            (Outcome::NoOp | Outcome::Partial, _)
            | (Outcome::Failed | Outcome::TimedOut, RecoveredChanges::Present) => {
                (CompletionStatus::Partial, NextAction::Review)
            }
            (Outcome::Blocked | Outcome::Denied, _) => {
                (CompletionStatus::Blocked, NextAction::FixBlocker)
            }
            (Outcome::Failed | Outcome::TimedOut, RecoveredChanges::Absent) => {
                (CompletionStatus::Failed, NextAction::Retry)
            }
            (Outcome::Cancelled, _) => (CompletionStatus::Failed, NextAction::Review),
        }
    }

    /// Returns whether callers may treat the run as successful.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Outcome::Succeeded | Outcome::NoOp)
    }

    /// Returns the process exit status for a run with this outcome.
    #[must_use]
    pub const fn exit_status(self) -> u8 {
        match self {
            Outcome::Succeeded | Outcome::NoOp => 0,
            Outcome::Partial | Outcome::Blocked => 3,
            Outcome::Denied => 126,
            Outcome::Failed => 1,
            Outcome::TimedOut => 124,
            Outcome::Cancelled => 130,
        }
    }
}

/// Whether the bundle of a failed run contains changed files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveredChanges {
    /// The bundle contains changed files.
    Present,
    /// The bundle contains no changed files.
    Absent,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The outcome table of ARCHITECTURE.md, row by row.
    #[test]
    fn every_outcome_maps_to_its_statuses_next_action_and_exit_status() {
        use CompletionStatus as C;
        use NextAction as N;
        use SessionStatus as S;
        let rows = [
            (
                Outcome::Succeeded,
                S::Completed,
                (C::Succeeded, N::Promote),
                (C::Succeeded, N::Promote),
                true,
                0,
            ),
            (
                Outcome::NoOp,
                S::Completed,
                (C::Partial, N::Review),
                (C::Partial, N::Review),
                true,
                0,
            ),
            (
                Outcome::Partial,
                S::Completed,
                (C::Partial, N::Review),
                (C::Partial, N::Review),
                false,
                3,
            ),
            (
                Outcome::Blocked,
                S::Failed,
                (C::Blocked, N::FixBlocker),
                (C::Blocked, N::FixBlocker),
                false,
                3,
            ),
            (
                Outcome::Denied,
                S::Failed,
                (C::Blocked, N::FixBlocker),
                (C::Blocked, N::FixBlocker),
                false,
                126,
            ),
            (
                Outcome::Failed,
                S::Failed,
                (C::Failed, N::Retry),
                (C::Partial, N::Review),
                false,
                1,
            ),
            (
                Outcome::TimedOut,
                S::Failed,
                (C::Failed, N::Retry),
                (C::Partial, N::Review),
                false,
                124,
            ),
            (
                Outcome::Cancelled,
                S::Failed,
                (C::Failed, N::Review),
                (C::Failed, N::Review),
                false,
                130,
            ),
        ];
        assert_eq!(rows.len(), Outcome::ALL.len());
        for (outcome, session, nothing, salvaged, success, exit) in rows {
            assert_eq!(outcome.session_status(), session, "{outcome:?}");
            assert_eq!(
                outcome.completion(RecoveredChanges::Absent),
                nothing,
                "{outcome:?}"
            );
            assert_eq!(
                outcome.completion(RecoveredChanges::Present),
                salvaged,
                "{outcome:?}"
            );
            assert_eq!(outcome.is_success(), success, "{outcome:?}");
            assert_eq!(outcome.exit_status(), exit, "{outcome:?}");
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.as_str());
        }
    }
}
