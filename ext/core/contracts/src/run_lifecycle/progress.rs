//! Progress of a run that has not ended, computed from its journal.

use super::RunState;
use crate::EventType;

/// Progress of a run. It never decreases: it stays `Running` while a fresh guest for the checks is
/// created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunProgress {
    /// The run waits for a host of its cluster. A run on this host never does.
    Queued,
    /// The guest is being created.
    #[default]
    Booting,
    /// The guest is ready or has run a program.
    Running,
    /// The guests have ended.
    Collecting,
}

impl RunProgress {
    /// Returns the progress after one more event of the journal.
    #[must_use]
    pub fn after(self, event: EventType) -> Self {
        let reached = match event {
            EventType::Created | EventType::Mounted => RunProgress::Booting,
            // The first observation comes from the guest itself, when the guest is ready.
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
            // A held sandbox can change its state at any progress of the run, so this event does
            // not show the progress. The lowest value leaves the progress unchanged.
            EventType::StateChanged => RunProgress::Queued,
            EventType::Destroyed | EventType::ArtifactsCollected => RunProgress::Collecting,
        };
        self.max(reached)
    }

    /// Returns the progress after all events of a journal, from the progress at the start of the
    /// run.
    #[must_use]
    pub fn of(start: Self, events: impl IntoIterator<Item = EventType>) -> Self {
        events.into_iter().fold(start, Self::after)
    }

    /// Returns the state of a run that has not ended and has this progress.
    #[must_use]
    pub const fn state(self) -> RunState {
        match self {
            RunProgress::Queued => RunState::Queued,
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
    fn run_progress_maps_each_journal_event_of_a_complete_run_to_its_state() {
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
            RunProgress::of(RunProgress::default(), run.iter().map(|(event, _)| *event)),
            progress
        );
    }

    /// Events in any order change the state only by transitions that [`RunState::next`] allows.
    #[test]
    fn run_progress_after_any_sequence_of_events_follows_allowed_transitions() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            usize::try_from(seed % below as u64).unwrap()
        };
        for _ in 0..2000 {
            let mut progress = [RunProgress::Queued, RunProgress::default()][random(2)];
            let mut state = progress.state();
            for _ in 0..random(12) {
                progress = progress.after(EventType::ALL[random(EventType::ALL.len())]);
                state.advance(progress.state()).unwrap();
            }
            let outcome = Outcome::ALL[random(Outcome::ALL.len())];
            let end = RunState::of_outcome(outcome);
            // `RunState::next` does not allow the transition from `booting` to `succeeded`.
            if progress > RunProgress::Booting || end != RunState::Succeeded {
                state.advance(end).unwrap();
                assert!(state.is_terminal());
            }
        }
    }
}
