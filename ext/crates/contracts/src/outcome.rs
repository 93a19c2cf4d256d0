//! The one outcome table: what a run came to, and what every caller sees of it.

use crate::words;
use serde::{Deserialize, Serialize};

words! {
    /// What a run came to.
    pub enum Outcome {
        /// The agent succeeded, files changed, all checks passed.
        Succeeded = "succeeded",
        /// The agent succeeded and changed nothing.
        NoOp = "no_op",
        /// Files changed, but a check failed or the agent did not finish its work.
        Partial = "partial",
        /// Something a human must fix stands in the way.
        Blocked = "blocked",
        /// Policy refused.
        Denied = "denied",
        /// The agent failed.
        Failed = "failed",
        /// The deadline was reached.
        TimedOut = "timed_out",
        /// The caller cancelled or went away.
        Cancelled = "cancelled",
    }
}

/// `status` of `sandbox-session/v1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// The call ran to its end.
    Completed,
    /// It did not.
    Failed,
}

/// `status` of `sandbox-completion-outcome/v1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompletionStatus {
    /// Ready to be promoted.
    Succeeded,
    /// Needs a human.
    Blocked,
    /// Nothing usable.
    Failed,
    /// Something usable, not everything.
    Partial,
}

/// `nextAction` of `sandbox-completion-outcome/v1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NextAction {
    /// Review and apply.
    Promote,
    /// Look at what there is.
    Review,
    /// Run again.
    Retry,
    /// Remove the blocker first.
    FixBlocker,
}

impl Outcome {
    /// Status of the session envelope.
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

    /// Status and next action of the completion outcome. `salvaged` says
    /// whether the bundle holds changed files.
    #[must_use]
    pub const fn completion(self, salvaged: Salvage) -> (CompletionStatus, NextAction) {
        match (self, salvaged) {
            (Outcome::Succeeded, _) => (CompletionStatus::Succeeded, NextAction::Promote),
            (Outcome::NoOp | Outcome::Partial, _)
            | (Outcome::Failed | Outcome::TimedOut, Salvage::Changes) => {
                (CompletionStatus::Partial, NextAction::Review)
            }
            (Outcome::Blocked | Outcome::Denied, _) => {
                (CompletionStatus::Blocked, NextAction::FixBlocker)
            }
            (Outcome::Failed | Outcome::TimedOut, Salvage::Nothing) => {
                (CompletionStatus::Failed, NextAction::Retry)
            }
            (Outcome::Cancelled, _) => (CompletionStatus::Failed, NextAction::Review),
        }
    }

    /// Whether callers may treat the run as good.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Outcome::Succeeded | Outcome::NoOp)
    }

    /// Process exit status.
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

/// Whether a failed run left something worth looking at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Salvage {
    /// The bundle holds changed files.
    Changes,
    /// It does not.
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of ARCHITECTURE.md, row by row.
    #[test]
    fn table() {
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
            assert_eq!(outcome.completion(Salvage::Nothing), nothing, "{outcome:?}");
            assert_eq!(
                outcome.completion(Salvage::Changes),
                salvaged,
                "{outcome:?}"
            );
            assert_eq!(outcome.is_success(), success, "{outcome:?}");
            assert_eq!(outcome.exit_status(), exit, "{outcome:?}");
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.as_str());
        }
    }
}
