//! References: what a trace says something about, bound by digest.

use crate::FileDigest;
use crate::words::open_words;
use serde::{Deserialize, Serialize};

open_words! {
    /// What a reference points at.
    pub enum TraceRefKind {
        /// An action of this trace.
        Action = "action",
        /// An execution of this trace.
        Execution = "execution",
        /// An observation.
        Observation = "observation",
        /// A snapshot.
        Snapshot = "snapshot",
        /// An artifact bundle.
        ArtifactBundle = "artifact-bundle",
        ..
        /// Anything else, e.g. the kind of a bundle's file.
        Other(String),
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
