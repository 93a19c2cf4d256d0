//! Lists of runs, and of what a run left, in the words of the run registry.

use super::{RunRegistryEntry, RunState};
use crate::{ManifestFile, RunId, Sha256Hex, TraceRef};
use serde::{Deserialize, Serialize};

/// `wp-codebox/run-registry/v1`: runs, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRegistryPage {
    /// The schema id.
    pub schema: String,
    /// How many match, whatever the page.
    pub total: u64,
    /// One page.
    pub runs: Vec<RunRegistryEntry>,
}

/// `wp-codebox/run-artifacts/v1`: the bundle of a run. Holds a host path, for its caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunArtifactList {
    /// The schema id.
    pub schema: String,
    /// The run.
    pub run_id: RunId,
    /// Its state.
    pub status: RunState,
    /// Whether nothing follows.
    pub terminal: bool,
    /// As in the entry of the registry.
    pub artifact_refs: Vec<TraceRef>,
    /// The bundle; absent before it is written, without one, and when it was discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<RunBundle>,
}

/// A bundle that lies in the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunBundle {
    /// Its id.
    pub id: String,
    /// Host directory.
    pub directory: String,
    /// sha256 of its manifest: what an approval binds.
    pub manifest_sha256: Sha256Hex,
    /// Whether it was saved from a run whose supervisor died.
    pub salvaged: bool,
    /// Its files, as its manifest lists them; nothing here was verified.
    pub files: Vec<ManifestFile>,
}
