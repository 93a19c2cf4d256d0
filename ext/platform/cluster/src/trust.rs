//! Keys of nodes, as a submitter lists them.
//!
//! A key is listed for one node. A node whose key is listed can therefore not act for another one:
//! it gets no secrets of that node's runs, and results that it signs for them are refused. The record
//! of a run has the list, so that a node that is not listed leaves the run to another one.

use crate::names::NodeName;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use wp_codebox_contracts::{CodedError, Sha256Hex};

/// The key is not listed for the node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
#[error(
    "the key {key} is not listed for the node {node}; add it to the list of nodes if that node is yours"
)]
#[code(ClusterNodeUntrusted)]
pub struct UntrustedNode {
    /// Node for which the key signed.
    pub node: NodeName,
    /// Key that signed the request or result.
    pub key: Sha256Hex,
}

/// Ids of the keys ([`wp_codebox_artifacts::PublicKey::key_id`]) by which a submitter trusts nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeKeys(BTreeMap<NodeName, BTreeSet<Sha256Hex>>);

impl NodeKeys {
    /// Creates the list. A node may have several keys, such as while its key is replaced.
    #[must_use]
    pub fn new(rows: impl IntoIterator<Item = (NodeName, Sha256Hex)>) -> Self {
        let mut keys = Self::default();
        for (node, key) in rows {
            keys.0.entry(node).or_default().insert(key);
        }
        keys
    }

    /// Returns the names of the nodes.
    pub fn names(&self) -> impl Iterator<Item = &NodeName> {
        self.0.keys()
    }

    /// Fails unless the key is listed for the node.
    ///
    /// # Errors
    /// [`UntrustedNode`].
    pub fn check(&self, node: &NodeName, key: &Sha256Hex) -> Result<(), UntrustedNode> {
        match self.0.get(node) {
            Some(keys) if keys.contains(key) => Ok(()),
            Some(_) | None => Err(UntrustedNode {
                node: node.clone(),
                key: key.clone(),
            }),
        }
    }
}
