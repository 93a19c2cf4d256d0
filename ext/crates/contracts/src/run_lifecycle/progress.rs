//! How far a living run has come, read from its journal.

use super::RunState;
use crate::EventType;

/// How far a run has come. It only ever goes on: a fresh guest for checks is still `Running`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunProgress {
    /// Its guest is being made.
    #[default]
    Booting,
    /// Its guest is ready or has run something.
    Running,
    /// Its guests are gone.
    Collecting,
}

impl RunProgress {
    /// The same after one more event.
    #[must_use]
    pub fn after(self, event: EventType) -> Self {
        let reached = match event {
            EventType::Created | EventType::Mounted => RunProgress::Booting,
            // The first observation is the guest's own: it is made when the guest is ready.
            EventType::Observed
            | EventType::CommandStarted
            | EventType::CommandOutput
            | EventType::CommandFinished
            | EventType::SnapshotCreated
            | EventType::SnapshotRestored
            | EventType::CheckpointCreated
            | EventType::CheckpointRestored
            | EventType::FilesSynced
            | EventType::BrowserProgress => RunProgress::Running,
            // Which of its states is in the data; how far the run is, the others tell.
            EventType::StateChanged => RunProgress::Booting,
            EventType::Destroyed | EventType::ArtifactsCollected => RunProgress::Collecting,
        };
        self.max(reached)
    }

    /// After all events of a journal.
    #[must_use]
    pub fn of(events: impl IntoIterator<Item = EventType>) -> Self {
        events.into_iter().fold(Self::default(), Self::after)
    }

    /// The state of a living run that has come this far.
    #[must_use]
    pub const fn state(self) -> RunState {
        match self {
            RunProgress::Booting => RunState::Booting,
            RunProgress::Running => RunState::Running,
            RunProgress::Collecting => RunState::CollectingArtifacts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;

    #[test]
    fn a_whole_run() {
        use EventType as E;
        let run = [
            (E::Created, RunState::Booting),
            (E::Mounted, RunState::Booting),
            (E::Observed, RunState::Running),
            (E::CommandStarted, RunState::Running),
            (E::CommandOutput, RunState::Running),
            (E::CommandFinished, RunState::Running),
            (E::Destroyed, RunState::CollectingArtifacts),
            (E::ArtifactsCollected, RunState::CollectingArtifacts),
        ];
        let mut progress = RunProgress::default();
        assert_eq!(progress.state(), RunState::Booting);
        for (event, state) in run {
            progress = progress.after(event);
            assert_eq!(progress.state(), state, "{event:?}");
        }
        assert_eq!(
            RunProgress::of(run.iter().map(|(event, _)| *event)),
            progress
        );
    }

    /// Whatever a journal holds in whatever order, each look follows the one before it by the table.
    #[test]
    fn every_journal_is_a_way_through_the_table() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            usize::try_from(seed % below as u64).unwrap()
        };
        for _ in 0..2000 {
            let mut progress = RunProgress::default();
            let mut state = progress.state();
            for _ in 0..random(12) {
                progress = progress.after(EventType::ALL[random(EventType::ALL.len())]);
                state.advance(progress.state()).unwrap();
            }
            let outcome = Outcome::ALL[random(Outcome::ALL.len())];
            let end = RunState::of_outcome(outcome);
            // The table knows no success of what never ran.
            if progress > RunProgress::Booting || end != RunState::Succeeded {
                state.advance(end).unwrap();
                assert!(state.is_terminal());
            }
        }
    }
}
