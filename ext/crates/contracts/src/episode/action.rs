//! What somebody asks a runtime to do in one step.

use crate::{FileDigest, words};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

words! {
    /// What an action acts on. Every kind is carried out by its `command`; the kind keeps the
    /// intent for whoever replays the episode.
    #[derive(Default)]
    pub enum ActionKind {
        /// A registry command.
        #[default]
        Command = "command",
        /// A file or directory.
        Filesystem = "filesystem",
        /// A request to the guest's WordPress.
        Http = "http",
        /// A page in a browser.
        Browser = "browser",
    }
}

/// An action as it is asked for: everything its digest covers except the schema id.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActionRequest {
    /// What it acts on.
    #[serde(default)]
    pub kind: ActionKind,
    /// Registry command that carries it out, e.g. `wordpress.run-php`.
    pub command: String,
    /// Arguments of the command, `name=value`.
    #[serde(default)]
    pub args: Vec<String>,
    /// Guest directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Time of its own, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// HTTP method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Guest path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What is done to the path, page or address, e.g. `write` or `click`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Element of a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// One sentence for a reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Free data of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// `wp-codebox/runtime-episode-action/v1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpisodeAction {
    /// The schema id.
    pub schema: String,
    /// `<executionId>:step:<index>:action`.
    pub id: String,
    /// What was asked for.
    #[serde(flatten)]
    pub request: ActionRequest,
    /// Over schema and request.
    pub digest: FileDigest,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_request_needs_a_command_and_has_no_other_members() {
        let given = json!({"kind": "http", "command": "wordpress.http-request", "args": ["url=/"],
            "method": "GET", "url": "/", "timeoutMs": 5, "metadata": {"a": 1}});
        let read: ActionRequest = serde_json::from_value(given.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), given);
        for bad in [
            json!({"kind": "http"}),
            json!({"command": "x", "kind": "shell"}),
            json!({"command": "x", "timeoutMs": -1}),
            json!({"command": "x", "timeout_ms": 1}),
            json!({"command": "x", "reward": 1}),
            json!({"command": "x", "args": [1]}),
        ] {
            assert!(
                serde_json::from_value::<ActionRequest>(bad.clone()).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn an_action_is_its_request_with_id_and_digest() {
        let given = json!({"schema": "s", "id": "a", "kind": "command", "command": "x",
            "args": [], "cwd": "/workspace",
            "digest": {"algorithm": "sha256", "value": "0".repeat(64)}});
        let read: EpisodeAction = serde_json::from_value(given.clone()).unwrap();
        assert_eq!(read.request.cwd.as_deref(), Some("/workspace"));
        assert_eq!(serde_json::to_value(&read).unwrap(), given);
    }
}
