//! Error type of the episode builder.

use super::TraceIssue;
use wp_codebox_contracts::CodedError;

/// Reason why a part of an episode was rejected. A rejection does not change the episode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(InputInvalid)]
pub enum EpisodeError {
    /// The episode has not been reset yet, so it has no runtime.
    #[error("the episode has no sandbox yet; reset the episode to start one")]
    NotReset,
    /// The trace would be invalid with this part.
    #[error("the {part} violates rules of episode traces: {}", listed(.issues))]
    Invalid {
        /// Kind of the rejected part, e.g. `step`.
        part: &'static str,
        /// All rules that the part violates.
        issues: Vec<TraceIssue>,
    },
    /// The episode already has a snapshot with this id.
    #[error("the episode has a snapshot {id:?} already; give the new snapshot another id")]
    SnapshotKnown {
        /// Snapshot id that the episode already has.
        id: String,
    },
    /// The trace would exceed the size up to which validators read it.
    #[error(
        "the episode's trace would be larger than {most} bytes; close the episode and begin another"
    )]
    #[code(ArtifactTooLarge)]
    TooLarge {
        /// Maximum size of a trace in bytes.
        most: u64,
    },
    /// A part cannot be serialised as JSON.
    #[error("the {part} was not added to the episode, because it cannot be written as JSON")]
    #[code(Internal)]
    Unwritable {
        /// Kind of the part that cannot be serialised, e.g. `step`.
        part: &'static str,
    },
}

/// Formats the first few issues for an error message.
fn listed(issues: &[TraceIssue]) -> String {
    const SHOWN: usize = 5;
    let mut text: Vec<String> = issues.iter().take(SHOWN).map(ToString::to_string).collect();
    if issues.len() > SHOWN {
        text.push(format!("and {} more", issues.len() - SHOWN));
    }
    text.join("; ")
}
