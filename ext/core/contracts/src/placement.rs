//! Placement of a run on another host.

use crate::Sha256Hex;
use serde::{Deserialize, Serialize};

/// Cluster to which a run is sent; it then does not run on this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunPlacement {
    /// The cluster that the operator of this host has configured. The supervisor reads the
    /// configuration ([`ClusterConfig`]), so that no other process needs it.
    Configured(PlacementChoice),
    /// A cluster that the request describes.
    Named(ClusterPlacement),
}

/// Values that a request may choose for a task in a configured cluster. An absent value is taken
/// from the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlacementChoice {
    /// Capability that a node must have to run the task: a label that the operators of nodes
    /// choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// Priority of the task: `high`, `normal` or `low`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Largest number of nodes that may try the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tries: Option<u32>,
}

/// The cluster that this host uses: the file `cluster.json` in its state directory, which the
/// operator writes. It names the file with the credentials and has no secret itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterConfig {
    /// Schema id, `wp-codebox/cluster-config/v1`.
    pub schema: String,
    /// Message server of the cluster, and the account of this host there. Paths are absolute.
    pub cluster: ClusterAccess,
    /// Keys of the nodes whose results this host takes.
    pub nodes: Vec<NodeKeyRow>,
    /// Capability that a node must have, for tasks that request none.
    #[serde(default = "default_capability")]
    pub capability: String,
    /// Priority of tasks that have none: `high`, `normal` or `low`.
    #[serde(default = "default_priority")]
    pub priority: String,
    /// Largest number of nodes that may try a task, for tasks that request no other number; 1 to
    /// 100.
    #[serde(default = "default_max_tries")]
    pub max_tries: u32,
}

/// Capability that every node has unless its operator names others.
pub const DEFAULT_CAPABILITY: &str = "default";
/// Priority of a task that has none.
pub const DEFAULT_PRIORITY: &str = "normal";
/// Number of nodes that may try a task, if neither the task nor the configuration sets one.
pub const DEFAULT_MAX_TRIES: u32 = 3;

fn default_capability() -> String {
    DEFAULT_CAPABILITY.to_owned()
}

fn default_priority() -> String {
    DEFAULT_PRIORITY.to_owned()
}

const fn default_max_tries() -> u32 {
    DEFAULT_MAX_TRIES
}

impl ClusterConfig {
    /// Returns the placement of a task. `patience_ms` is how long, in milliseconds, a request is
    /// repeated while the message server does not answer.
    #[must_use]
    pub fn placement(self, choice: &PlacementChoice, patience_ms: u64) -> ClusterPlacement {
        let PlacementChoice {
            capability,
            priority,
            max_tries,
        } = choice.clone();
        ClusterPlacement {
            cluster: self.cluster,
            capability: capability.unwrap_or(self.capability),
            priority: priority.unwrap_or(self.priority),
            max_tries: max_tries.unwrap_or(self.max_tries),
            nodes: self.nodes,
            patience_ms,
        }
    }
}

/// A cluster, and the settings with which a task is sent to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterPlacement {
    /// Message server of the cluster, and the account of this host there; set by the operator.
    pub cluster: ClusterAccess,
    /// Capability that a node must have to run the task: a label that the operators of nodes
    /// choose.
    pub capability: String,
    /// Priority of the task: `high`, `normal` or `low`.
    pub priority: String,
    /// Largest number of nodes that may try the task.
    pub max_tries: u32,
    /// Nodes whose results this host accepts: the name of each node, and the SHA-256 of its public
    /// key.
    pub nodes: Vec<NodeKeyRow>,
    /// How long, in milliseconds, a request is repeated while the message server does not answer.
    pub patience_ms: u64,
}

/// The key of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeKeyRow {
    /// Name of the node.
    pub node: String,
    /// SHA-256 of its public key.
    pub key: Sha256Hex,
}

/// A message server, and an account on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterAccess {
    /// Addresses of the servers, such as `tls://nats.example:4222`; without credentials.
    pub servers: Vec<String>,
    /// Name under which this host submits tasks.
    pub submitter: String,
    /// File with the credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_file: Option<String>,
    /// File with the certificate authorities that sign the servers' certificates; absent: the
    /// authorities of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config(more: serde_json::Value) -> Result<ClusterConfig, serde_json::Error> {
        let mut document = json!({
            "schema": "wp-codebox/cluster-config/v1",
            "cluster": {"servers": ["tls://nats.example:4222"], "submitter": "shop"},
            "nodes": [{"node": "one", "key": "0".repeat(64)}],
        });
        document
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        serde_json::from_value(document)
    }

    #[test]
    fn placement_choice_of_a_task_replaces_only_the_configured_values_that_it_contains() {
        let config = config(json!({"capability": "gpu", "priority": "low", "max_tries": 5}));
        let config = config.unwrap();
        let usual = config.clone().placement(&PlacementChoice::default(), 7);
        assert_eq!(
            (
                usual.capability.as_str(),
                usual.priority.as_str(),
                usual.max_tries
            ),
            ("gpu", "low", 5)
        );
        let choice = PlacementChoice {
            priority: Some("high".to_owned()),
            ..PlacementChoice::default()
        };
        let chosen = config.placement(&choice, 7);
        assert_eq!(
            chosen,
            ClusterPlacement {
                priority: "high".to_owned(),
                ..usual
            }
        );
    }

    #[test]
    fn cluster_configuration_has_defaults_and_refuses_unknown_members_at_each_depth() {
        let usual = config(json!({})).unwrap();
        assert_eq!(
            (
                usual.capability.as_str(),
                usual.priority.as_str(),
                usual.max_tries
            ),
            ("default", "normal", 3)
        );
        assert!(config(json!({"password": "x"})).is_err());
        let cluster = json!({"servers": [], "submitter": "shop", "token": "x"});
        assert!(config(json!({"cluster": cluster})).is_err());
        let node = json!({"node": "one", "key": "0".repeat(64), "trust": true});
        assert!(config(json!({"nodes": [node]})).is_err());
    }
}
