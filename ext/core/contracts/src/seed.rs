//! Content of the parent site that a run creates in its guests.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A site seed of a task with the content that it selects. The host reads the content before the
/// run starts; private data of users is not part of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResolvedSeed {
    /// Name of the seed, unique in the task.
    pub name: String,
    /// Scopes of the seed; the guest creates only rows that they select.
    pub scopes: Map<String, Value>,
    /// Fixture `wp-codebox/site-seed-fixture/v1` as JSON text.
    pub content: String,
}
