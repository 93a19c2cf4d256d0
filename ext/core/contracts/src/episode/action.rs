//! Actions of an episode: what a client asks the sandbox to do.

use crate::{FileDigest, string_enum};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

string_enum! {
    /// What an action is about. The action's `command` does the work; the kind has no effect and
    /// only tells readers of the trace what the client intended.
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

/// An action as the client requested it. The digest of an action covers the schema id and all
/// members of this struct.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActionRequest {
    /// What the action is about; has no effect on its execution.
    #[serde(default)]
    pub kind: ActionKind,
    /// Registry command that does the work, e.g. `wordpress.run-php`.
    pub command: String,
    /// Arguments of the command, `name=value`.
    #[serde(default)]
    pub args: Vec<String>,
    /// Working directory in the guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Timeout of this action in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// HTTP method of an `http` action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// URL of an `http` or `browser` action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Guest path of the file or directory that a `filesystem` action is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Operation on the path, page or URL, e.g. `write` or `click`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Selector of an element in the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// Description for human readers, one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Free-form data from the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// `wp-codebox/runtime-episode-action/v1`: an action as the trace records it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpisodeAction {
    /// Schema id of the document.
    pub schema: String,
    /// Id of the action, `<executionId>:step:<index>:action`.
    pub id: String,
    /// The action as requested.
    #[serde(flatten)]
    pub request: ActionRequest,
    /// Digest over schema id and request.
    pub digest: FileDigest,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn action_request_requires_command_and_refuses_unknown_members() {
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
    fn episode_action_json_contains_request_members_id_and_digest() {
        let given = json!({"schema": "s", "id": "a", "kind": "command", "command": "x",
            "args": [], "cwd": "/workspace",
            "digest": {"algorithm": "sha256", "value": "0".repeat(64)}});
        let read: EpisodeAction = serde_json::from_value(given.clone()).unwrap();
        assert_eq!(read.request.cwd.as_deref(), Some("/workspace"));
        assert_eq!(serde_json::to_value(&read).unwrap(), given);
    }
}
