//! Observations and snapshots of a runtime.

use super::TraceRef;
use crate::FileDigest;
use crate::string_enum::open_string_enum;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

open_string_enum! {
    /// Type of an observation.
    pub enum ObservationType {
        /// The runtime itself: backend, isolation, state.
        RuntimeInfo = "runtime-info",
        /// Mounts as the guest sees them.
        Mounts = "mounts",
        /// Files below a path.
        Files = "files",
        /// Result of an execution.
        CommandResult = "command-result",
        /// Sections of the guest's WordPress state.
        WordpressState = "wordpress-state",
        /// Response to an HTTP request.
        HttpResponse = "http-response",
        /// Result of a browser command.
        BrowserResult = "browser-result",
        /// Event journal of the runtime.
        RuntimeEvents = "runtime-events",
        /// Events of the journal as lines of text, without the output of programs.
        RuntimeLogs = "runtime-logs",
        ..
        /// A type without a variant of its own, e.g. one that only another backend has.
        Custom(String),
    }
}

/// Whether personal data is removed from an observation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObservationRedaction {
    /// Personal data is removed.
    #[default]
    Safe,
    /// Nothing is removed; the caller may see personal data.
    None,
}

/// Request for an observation: which part of the guest's state to observe, and in which detail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObservationSpec {
    /// Type of the observation.
    #[serde(rename = "type")]
    pub kind: ObservationType,
    /// Path in the guest, for `files`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Id of the execution, for `command-result`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_id: Option<String>,
    /// URL, for `http-response` and `browser-result`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// HTTP method of the request, for `http-response`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Headers of the request, for `http-response`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub headers: Map<String, Value>,
    /// Body of the request, for `http-response`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Whether the observation includes the response body.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub include_body: bool,
    /// Sections of `wordpress-state` to include; empty: the summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<String>,
    /// Whether personal data is removed.
    #[serde(default)]
    pub redaction: ObservationRedaction,
    /// Whether the observation includes file contents in addition to their hashes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub include_content: bool,
    /// Names of WordPress options whose values to include; none by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub option_names: Vec<String>,
    /// Names of the user fields to include.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user_fields: Vec<String>,
}

/// `wp-codebox/runtime-episode-observation/v1`: a part of the guest's state at one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EpisodeObservation {
    /// Schema id of the document.
    pub schema: String,
    /// Id of the observation; the digest does not cover it.
    pub id: String,
    /// Type of the observation.
    #[serde(rename = "type")]
    pub kind: ObservationType,
    /// Observed data; the only member of an observation that may have arbitrary keys.
    pub data: Value,
    /// RFC 3339 timestamp of the observation.
    pub observed_at: String,
    /// Bundle files with further observed data.
    #[serde(default)]
    pub artifact_refs: Vec<TraceRef>,
    /// Digest over all members except the id.
    pub digest: FileDigest,
}

/// What a reader of a trace can do with a snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotSemantics {
    /// The snapshot contains no state; it only marks a point in time.
    #[default]
    MetadataOnly,
    /// A replay of the recorded actions rebuilds a part of the state.
    PartialReplay,
    /// A replay of the recorded actions rebuilds the whole state.
    ReplayableRuntimeState,
    /// An artifact contains the state, from which the guest can be restored.
    RuntimeStateArtifact,
}

/// `wp-codebox/runtime-episode-snapshot/v1`: a state of the guest as the trace records it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EpisodeSnapshot {
    /// Schema id of the document.
    pub schema: String,
    /// Id of the snapshot; the digest covers it.
    pub id: String,
    /// RFC 3339 timestamp of the snapshot.
    pub created_at: String,
    /// What a reader of the trace can do with the snapshot.
    #[serde(default)]
    pub semantics: SnapshotSemantics,
    /// Free-form data that describes the snapshot.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// Bundle files that hold the snapshot.
    #[serde(default)]
    pub artifact_refs: Vec<TraceRef>,
    /// Digest over all other members of this struct.
    pub digest: FileDigest,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn observation_types_round_trip_through_strings() {
        for kind in ObservationType::KNOWN {
            assert_eq!(ObservationType::from(kind.as_str().to_owned()), *kind);
        }
        let own = ObservationType::from("queue-depth".to_owned());
        assert_eq!(own, ObservationType::Custom("queue-depth".to_owned()));
        assert_eq!(serde_json::to_value(own).unwrap(), "queue-depth");
    }

    #[test]
    fn observation_spec_redacts_by_default_and_refuses_unknown_values() {
        let read = |value| serde_json::from_value::<ObservationSpec>(value);
        let spec = read(json!({"type": "wordpress-state"})).unwrap();
        assert_eq!(spec.redaction, ObservationRedaction::Safe);
        assert!(spec.option_names.is_empty() && !spec.include_content);
        assert!(read(json!({"type": "files", "redaction": "all"})).is_err());
        assert!(read(json!({"type": "files", "paths": "/"})).is_err());
        assert!(read(json!({"path": "/"})).is_err());
    }
}
