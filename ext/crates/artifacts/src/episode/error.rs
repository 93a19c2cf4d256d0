//! Error type of the episode builder.

use super::TraceIssue;
use wp_codebox_contracts::ErrorCode;

/// Reason why a part of an episode was rejected. The episode is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EpisodeError {
    /// The episode has not been reset yet, so it has no runtime.
    #[error("the episode has no runtime yet; reset it first")]
    NotReset,
    /// The part would make the trace invalid.
    #[error("the {part} cannot be part of a trace: {}", listed(.issues))]
    Invalid {
        /// Kind of the part.
        part: &'static str,
        /// All issues of the part.
        issues: Vec<TraceIssue>,
    },
    /// A snapshot of this id exists already.
    #[error("a snapshot {id:?} exists in this episode; give the new one another id")]
    SnapshotKnown {
        /// Id of the snapshot.
        id: String,
    },
    /// The trace would be larger than readers accept.
    #[error("the trace would be larger than {most} bytes; close the episode and begin another")]
    TooLarge {
        /// Maximum size of a trace in bytes.
        most: u64,
    },
    /// A part has no JSON form.
    #[error("the {part} cannot be written as JSON")]
    Unwritable {
        /// Kind of the part.
        part: &'static str,
    },
}

impl EpisodeError {
    /// Returns the stable error code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::NotReset | Self::Invalid { .. } | Self::SnapshotKnown { .. } => {
                ErrorCode::InputInvalid
            }
            Self::TooLarge { .. } => ErrorCode::ArtifactTooLarge,
            Self::Unwritable { .. } => ErrorCode::Internal,
        }
    }
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
