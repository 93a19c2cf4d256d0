//! Why a part of an episode is not kept.

use super::TraceIssue;
use wp_codebox_contracts::ErrorCode;

/// Why a part of an episode is not kept. The episode is as it was before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EpisodeError {
    /// Nothing was reset yet.
    #[error("the episode has no runtime yet; reset it first")]
    NotReset,
    /// The part would make the trace invalid.
    #[error("the {part} cannot be part of a trace: {}", listed(.issues))]
    Invalid {
        /// Which part.
        part: &'static str,
        /// All that is wrong with it.
        issues: Vec<TraceIssue>,
    },
    /// A snapshot has this id already.
    #[error("a snapshot {id:?} exists in this episode; give the new one another id")]
    SnapshotKnown {
        /// Which.
        id: String,
    },
    /// The trace would be larger than a reader accepts.
    #[error("the trace would be larger than {most} bytes; close the episode and begin another")]
    TooLarge {
        /// Most bytes.
        most: u64,
    },
    /// A part has no JSON form.
    #[error("the {part} cannot be written as JSON")]
    Unwritable {
        /// Which part.
        part: &'static str,
    },
}

impl EpisodeError {
    /// The stable code.
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

/// A few of them, for one sentence.
fn listed(issues: &[TraceIssue]) -> String {
    const SHOWN: usize = 5;
    let mut text: Vec<String> = issues.iter().take(SHOWN).map(ToString::to_string).collect();
    if issues.len() > SHOWN {
        text.push(format!("and {} more", issues.len() - SHOWN));
    }
    text.join("; ")
}
