//! The states of a run, the one table of their transitions, and what each means.

use crate::{ErrorCode, Outcome, words};
use serde::{Deserialize, Serialize};

words! {
    /// State of a run.
    pub enum RunState {
        /// It waits. Nothing here does.
        Queued = "queued",
        /// Its guest is being made.
        Booting = "booting",
        /// Programs run.
        Running = "running",
        /// Its guest is gone and its bundle is being written.
        CollectingArtifacts = "collecting_artifacts",
        /// It did what was asked for.
        Succeeded = "succeeded",
        /// It did not.
        Failed = "failed",
        /// It was told to stop.
        Cancelled = "cancelled",
        /// Its time was up.
        TimedOut = "timed_out",
    }
}

/// What a state is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunPhase {
    /// It has not begun.
    Pending,
    /// It goes on.
    Active,
    /// It is being wound up.
    Finalizing,
    /// It is over.
    Terminal,
}

/// A transition that the table does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a run cannot go from {} to {}", from.as_str(), to.as_str())]
pub struct RunTransitionError {
    /// Where it is.
    pub from: RunState,
    /// Where it cannot go.
    pub to: RunState,
}

impl RunTransitionError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        ErrorCode::Internal
    }
}

impl RunState {
    /// The table: states that may follow this one. Only those that did something can succeed.
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

    /// Moves on; staying is legal, what is over stays as it is.
    pub fn advance(&mut self, to: RunState) -> Result<(), RunTransitionError> {
        if *self != to && !self.next().contains(&to) {
            return Err(RunTransitionError { from: *self, to });
        }
        *self = to;
        Ok(())
    }

    /// What it is a part of.
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

    /// Whether nothing follows.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self.phase(), RunPhase::Terminal)
    }

    /// Where an outcome ends. What is not good in the outcome table has not succeeded.
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

    /// The table as text: rows are where a run is, columns where it may go.
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
    fn transitions() {
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
            "a run cannot go from succeeded to failed"
        );
    }

    #[test]
    fn an_outcome_is_a_success_in_both_tables_or_in_none() {
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
