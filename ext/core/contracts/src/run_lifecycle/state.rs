//! States of a run, and which state may follow which.

use crate::{CodedError, Outcome, string_enum};
use serde::{Deserialize, Serialize};

string_enum! {
    /// State of a run.
    pub enum RunState {
        /// The run waits until a node of its cluster claims it. A run on this host is never in this
        /// state.
        Queued = "queued",
        /// The run's guest is being created.
        Booting = "booting",
        /// Programs run in the guest.
        Running = "running",
        /// The guest has ended and the bundle is being written.
        CollectingArtifacts = "collecting_artifacts",
        /// The run succeeded.
        Succeeded = "succeeded",
        /// The run failed.
        Failed = "failed",
        /// The run was cancelled.
        Cancelled = "cancelled",
        /// The run reached its deadline.
        TimedOut = "timed_out",
    }
}

/// Phase of a run's lifecycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunPhase {
    /// The run has not started.
    Pending,
    /// The run is in progress.
    Active,
    /// The run is collecting its artifacts.
    Finalizing,
    /// The run has ended.
    Terminal,
}

/// Error for a change of state that [`RunState::next`] does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, CodedError)]
#[error("a run cannot change from the state `{}` to `{}`", from.as_str(), to.as_str())]
#[code(Internal)]
pub struct RunTransitionError {
    /// State before the change.
    pub from: RunState,
    /// Requested state.
    pub to: RunState,
}

impl RunState {
    /// Returns the states that may follow this one. `queued` and `booting` cannot become
    /// `succeeded` directly.
    #[must_use]
    pub const fn next(self) -> &'static [RunState] {
        use RunState as S;
        match self {
            S::Queued => &[
                S::Booting,
                S::Running,
                S::CollectingArtifacts,
                S::Cancelled,
                S::Failed,
                S::TimedOut,
            ],
            S::Booting => &[
                S::Running,
                S::CollectingArtifacts,
                S::Cancelled,
                S::Failed,
                S::TimedOut,
            ],
            S::Running => &[
                S::CollectingArtifacts,
                S::Succeeded,
                S::Cancelled,
                S::Failed,
                S::TimedOut,
            ],
            S::CollectingArtifacts => &[S::Succeeded, S::Cancelled, S::Failed, S::TimedOut],
            S::Succeeded | S::Failed | S::Cancelled | S::TimedOut => &[],
        }
    }

    /// Changes the state. Staying in the same state is valid; a final state cannot change.
    pub fn advance(&mut self, to: RunState) -> Result<(), RunTransitionError> {
        if *self != to && !self.next().contains(&to) {
            return Err(RunTransitionError { from: *self, to });
        }
        *self = to;
        Ok(())
    }

    /// Returns the phase that the state belongs to.
    #[must_use]
    pub const fn phase(self) -> RunPhase {
        match self {
            RunState::Queued => RunPhase::Pending,
            RunState::Booting | RunState::Running => RunPhase::Active,
            RunState::CollectingArtifacts => RunPhase::Finalizing,
            RunState::Succeeded | RunState::Failed | RunState::Cancelled | RunState::TimedOut => {
                RunPhase::Terminal
            }
        }
    }

    /// Returns whether the state is final.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self.phase(), RunPhase::Terminal)
    }

    /// Returns the final state for an outcome. Only outcomes that `Outcome::is_success` accepts
    /// become `succeeded`.
    #[must_use]
    pub const fn of_outcome(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Succeeded | Outcome::NoOp => RunState::Succeeded,
            Outcome::Partial | Outcome::Blocked | Outcome::Denied | Outcome::Failed => {
                RunState::Failed
            }
            Outcome::TimedOut => RunState::TimedOut,
            Outcome::Cancelled => RunState::Cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The transition table as text: one row per current state, one column per next state.
    const TABLE: &str = "
                             queued booting running collecting_artifacts succeeded failed cancelled timed_out
        queued               yes    yes     yes     yes                  no        yes    yes       yes
        booting              no     yes     yes     yes                  no        yes    yes       yes
        running              no     no      yes     yes                  yes       yes    yes       yes
        collecting_artifacts no     no      no      yes                  yes       yes    yes       yes
        succeeded            no     no      no      no                   yes       no     no        no
        failed               no     no      no      no                   no        yes    no        no
        cancelled            no     no      no      no                   no        no     yes       no
        timed_out            no     no      no      no                   no        no     no        yes
    ";

    #[test]
    fn run_may_change_its_state_exactly_as_the_transition_table_allows() {
        let rows: Vec<Vec<&str>> = TABLE
            .lines()
            .map(|line| line.split_whitespace().collect())
            .filter(|row: &Vec<&str>| !row.is_empty())
            .collect();
        assert_eq!(
            rows[0],
            RunState::ALL.iter().map(|s| s.as_str()).collect::<Vec<_>>()
        );
        for (from, row) in RunState::ALL.iter().zip(&rows[1..]) {
            assert_eq!(row[0], from.as_str());
            for (to, cell) in RunState::ALL.iter().zip(&row[1..]) {
                let mut state = *from;
                let moved = state.advance(*to);
                assert_eq!(moved.is_ok(), *cell == "yes", "{from:?} -> {to:?}");
                assert_eq!(state, if moved.is_ok() { *to } else { *from });
                assert_eq!(from.is_terminal(), from.next().is_empty());
            }
        }
        let error = RunState::Succeeded
            .clone()
            .advance(RunState::Failed)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "a run cannot change from the state `succeeded` to `failed`"
        );
    }

    #[test]
    fn outcome_is_success_if_and_only_if_its_state_is_succeeded() {
        for outcome in Outcome::ALL {
            let state = RunState::of_outcome(*outcome);
            assert!(state.is_terminal(), "{outcome:?}");
            assert_eq!(
                state == RunState::Succeeded,
                outcome.is_success(),
                "{outcome:?}"
            );
            assert_eq!(
                state == RunState::TimedOut,
                *outcome == Outcome::TimedOut,
                "{outcome:?}"
            );
            assert_eq!(
                state == RunState::Cancelled,
                *outcome == Outcome::Cancelled,
                "{outcome:?}"
            );
        }
        for state in RunState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
    }
}
