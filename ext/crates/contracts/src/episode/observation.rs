//! What was seen of a runtime: observations and snapshots.

use super::TraceRef;
use crate::FileDigest;
use crate::words::open_words;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

open_words! {
    /// What is observed.
    pub enum ObservationType {
        /// The runtime itself: backend, isolation, state.
        RuntimeInfo = "runtime-info",
        /// Mounts as the guest sees them.
        Mounts = "mounts",
        /// Files below a path.
        Files = "files",
        /// Result of an execution.
        CommandResult = "command-result",
        /// Sections of the guest's WordPress.
        WordpressState = "wordpress-state",
        /// Answer to a request.
        HttpResponse = "http-response",
        /// What a browser saw.
        BrowserResult = "browser-result",
        /// Journal of the runtime.
        RuntimeEvents = "runtime-events",
        /// Log of the runtime.
        RuntimeLogs = "runtime-logs",
        ..
        /// Something a backend of its own offers.
        Custom(String),
    }
}

/// Whether an observation may show what identifies people.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObservationRedaction {
    /// It may not.
    #[default]
    Safe,
    /// The caller is trusted with it.
    None,
}

/// What to observe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObservationSpec {
    /// Type.
    #[serde(rename = "type")]
    pub kind: ObservationType,
    /// Guest path, of `files`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Execution, of `command-result`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_id: Option<String>,
    /// Address, of `http-response` and `browser-result`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// HTTP method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Request headers.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub headers: Map<String, Value>,
    /// Request body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Whether the answer's body is part of the observation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub include_body: bool,
    /// Sections of `wordpress-state`; empty: the summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<String>,
    /// What may be shown.
    #[serde(default)]
    pub redaction: ObservationRedaction,
    /// Whether contents are shown beside their hashes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub include_content: bool,
    /// Options that are shown; none is by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub option_names: Vec<String>,
    /// Fields of users that are shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user_fields: Vec<String>,
}

/// `wp-codebox/runtime-episode-observation/v1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EpisodeObservation {
    /// The schema id.
    pub schema: String,
    /// Its id; not part of the digest.
    pub id: String,
    /// What was observed.
    #[serde(rename = "type")]
    pub kind: ObservationType,
    /// What was seen. The only place, beside metadata, where any key may stand.
    pub data: Value,
    /// RFC 3339.
    pub observed_at: String,
    /// Files of the bundle that hold the rest.
    #[serde(default)]
    pub artifact_refs: Vec<TraceRef>,
    /// Over everything but the id.
    pub digest: FileDigest,
}

/// What a snapshot can be used for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotSemantics {
    /// It names a moment.
    #[default]
    MetadataOnly,
    /// Part of the state can be made again.
    PartialReplay,
    /// The state can be made again.
    ReplayableRuntimeState,
    /// The state lies in an artifact and can be restored from it.
    RuntimeStateArtifact,
}

/// `wp-codebox/runtime-episode-snapshot/v1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EpisodeSnapshot {
    /// The schema id.
    pub schema: String,
    /// Its id; part of the digest.
    pub id: String,
    /// RFC 3339.
    pub created_at: String,
    /// What it can be used for.
    #[serde(default)]
    pub semantics: SnapshotSemantics,
    /// What describes it.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// Files of the bundle that hold it.
    #[serde(default)]
    pub artifact_refs: Vec<TraceRef>,
    /// Over all of the above.
    pub digest: FileDigest,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn types_survive_the_way_through_text() {
        for kind in ObservationType::KNOWN {
            assert_eq!(ObservationType::from(kind.as_str().to_owned()), *kind);
        }
        let own = ObservationType::from("queue-depth".to_owned());
        assert_eq!(own, ObservationType::Custom("queue-depth".to_owned()));
        assert_eq!(serde_json::to_value(own).unwrap(), "queue-depth");
    }

    #[test]
    fn what_to_observe_is_safe_unless_it_says_otherwise() {
        let read = |value| serde_json::from_value::<ObservationSpec>(value);
        let spec = read(json!({"type": "wordpress-state"})).unwrap();
        assert_eq!(spec.redaction, ObservationRedaction::Safe);
        assert!(spec.option_names.is_empty() && !spec.include_content);
        assert!(read(json!({"type": "files", "redaction": "all"})).is_err());
        assert!(read(json!({"type": "files", "paths": "/"})).is_err());
        assert!(read(json!({"path": "/"})).is_err());
    }
}
