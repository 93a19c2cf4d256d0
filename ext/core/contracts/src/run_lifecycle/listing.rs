//! Lists of runs and of their artifacts, in the format of the run registry.

use super::{RunRegistryEntry, RunState};
use crate::{ErrorBody, ManifestFile, RunId, Sha256Hex, TraceRef};
use serde::{Deserialize, Serialize};

/// `wp-codebox/run-registry/v1`: runs, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRegistryPage {
    /// Schema id of the document.
    pub schema: String,
    /// Number of matching runs on all pages.
    pub total: u64,
    /// Runs on this page.
    pub runs: Vec<RunRegistryEntry>,
    /// One error for each run that cannot be read, with its id in `data.run_id`. Such a run is in no
    /// page; it stays as it is until it can be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<ErrorBody>,
}

/// `wp-codebox/run-artifacts/v1`: the bundle of a run. Contains a host path for the caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunArtifactList {
    /// Schema id of the document.
    pub schema: String,
    /// Id of the run.
    pub run_id: RunId,
    /// State of the run.
    pub status: RunState,
    /// Whether the state is final.
    pub terminal: bool,
    /// References to the bundle, as in the registry entry; empty without one.
    pub artifact_refs: Vec<TraceRef>,
    /// The bundle; absent before it is written, after it is discarded, and for runs without
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<RunBundle>,
}

/// A bundle in the artifact store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunBundle {
    /// Id of the bundle.
    pub id: String,
    /// Host path of the bundle directory.
    pub directory: String,
    /// SHA-256 of the manifest; an approval refers to this digest.
    pub manifest_sha256: Sha256Hex,
    /// Whether this is a recovery bundle of a run whose supervisor died.
    pub salvaged: bool,
    /// Files as listed in the manifest; not verified.
    pub files: Vec<ManifestFile>,
}
