//! References from a trace to other objects, each with the digest of the object.

use crate::FileDigest;
use crate::string_enum::open_string_enum;
use serde::{Deserialize, Serialize};

open_string_enum! {
    /// Kind of object that a reference points to.
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
        /// Another kind of object, e.g. the kind of a bundle file.
        Other(String),
    }
}

/// A reference to an object by kind, id and digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceRef {
    /// Kind of the referenced object.
    pub kind: TraceRefKind,
    /// Id of the referenced object.
    pub id: String,
    /// Digest of the referenced object; every reference inside a trace has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<FileDigest>,
    /// Id of the bundle that contains the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_id: Option<String>,
    /// Path of the object in the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Path of the object in the guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_path: Option<String>,
    /// Media type of the referenced object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
}

impl TraceRef {
    /// Creates a reference from kind, id and digest.
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
    fn trace_reference_kinds_round_trip_through_strings() {
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
