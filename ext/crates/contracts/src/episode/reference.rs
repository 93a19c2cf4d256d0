//! References: what a trace says something about, bound by digest.

use crate::FileDigest;
use serde::{Deserialize, Serialize};

/// What a reference points at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum TraceRefKind {
    /// An action of this trace.
    Action,
    /// An execution of this trace.
    Execution,
    /// An observation.
    Observation,
    /// A snapshot.
    Snapshot,
    /// An artifact bundle.
    ArtifactBundle,
    /// Anything else, e.g. the kind of a bundle's file.
    Other(String),
}

impl TraceRefKind {
    /// The stable text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            TraceRefKind::Action => "action",
            TraceRefKind::Execution => "execution",
            TraceRefKind::Observation => "observation",
            TraceRefKind::Snapshot => "snapshot",
            TraceRefKind::ArtifactBundle => "artifact-bundle",
            TraceRefKind::Other(text) => text,
        }
    }
}

impl From<String> for TraceRefKind {
    fn from(text: String) -> Self {
        match text.as_str() {
            "action" => TraceRefKind::Action,
            "execution" => TraceRefKind::Execution,
            "observation" => TraceRefKind::Observation,
            "snapshot" => TraceRefKind::Snapshot,
            "artifact-bundle" => TraceRefKind::ArtifactBundle,
            _ => TraceRefKind::Other(text),
        }
    }
}

impl From<TraceRefKind> for String {
    fn from(kind: TraceRefKind) -> Self {
        match kind {
            TraceRefKind::Other(text) => text,
            known => known.as_str().to_owned(),
        }
    }
}

/// One reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceRef {
    /// What it points at.
    pub kind: TraceRefKind,
    /// Its id.
    pub id: String,
    /// Its digest; every reference inside a trace has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<FileDigest>,
    /// Bundle it lies in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_id: Option<String>,
    /// Path in the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Path in the guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_path: Option<String>,
    /// Media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
}

impl TraceRef {
    /// A reference by kind, id and digest.
    #[must_use]
    pub fn new(kind: TraceRefKind, id: impl Into<String>, digest: FileDigest) -> Self {
        Self {
            kind,
            id: id.into(),
            digest: Some(digest),
            artifact_id: None,
            path: None,
            source_path: None,
            content_type: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_survive_the_way_through_text() {
        for text in [
            "action",
            "execution",
            "observation",
            "snapshot",
            "artifact-bundle",
            "screenshot",
        ] {
            let kind = TraceRefKind::from(text.to_owned());
            assert_eq!(
                matches!(kind, TraceRefKind::Other(_)),
                text == "screenshot",
                "{text}"
            );
            assert_eq!(String::from(kind), text);
        }
    }
}
