//! Follow-up runs: a task continues the change of an earlier bundle and has a reviewer's comments
//! on that change.

use crate::{ChangedFile, ModelUsage, RunId, Sha256Hex};
use serde::{Deserialize, Serialize};

/// Maximum number of earlier runs in a chain of follow-up runs.
pub const MAX_CHAIN: usize = 20;

/// Earlier bundle that a task continues, as a caller names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FollowUpOf {
    /// Bundle id, run id, or a unique prefix of either. Exactly one of `artifact_id` and `run_id`
    /// is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_id: Option<String>,
    /// Complete id of the run that made the bundle. Bundles of runs that made the same change have
    /// equal ids, so only the id of the run always identifies one bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Comments on the earlier bundle, at most 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<ReviewComment>,
}

/// Comment of a reviewer on an earlier bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewComment {
    /// Path that the comment is about: one of the bundle's changed files, or a path in a mount.
    /// Absent: the comment is about the whole change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Line of the file that the comment is about, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Text of the comment.
    pub body: String,
}

/// The document `files/follow-up.json` in the bundle of a follow-up run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FollowUpRecord {
    /// Schema id, always `wp-codebox/follow-up/v1`.
    pub schema: String,
    /// Id of the earlier bundle.
    pub artifact_id: String,
    /// Id of the run that made the earlier bundle.
    pub run_id: RunId,
    /// SHA-256 of the earlier bundle's manifest; proves which bundle this run continued. If the run
    /// of the earlier bundle was a follow-up run too, that bundle contains a document of this kind
    /// about the bundle before it.
    pub manifest_sha256: Sha256Hex,
    /// Comments on the earlier bundle, redacted. Their paths are complete: the guest path of the
    /// mount is part of them.
    pub comments: Vec<ReviewComment>,
    /// Ids of the runs before this one, oldest first; the last one made the earlier bundle.
    pub chain: Vec<RunId>,
    /// Model usage of all runs of the chain together, this run included.
    pub used: ModelUsage,
    /// Paths that changed since the earlier bundle. `patchPath` of each is `files/follow-up.patch`.
    pub changed_files: Vec<ChangedFile>,
}

impl FollowUpRecord {
    /// Path of this document in a bundle.
    pub const PATH: &'static str = "files/follow-up.json";
    /// Path of the patch from the earlier bundle's change to this bundle's change.
    pub const PATCH_PATH: &'static str = "files/follow-up.patch";
}

/// Budget of the built-in agent as a caller writes it, with the cost in dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskBudget {
    /// Maximum number of model responses.
    pub turns: Option<u32>,
    /// Maximum number of input tokens over all turns.
    pub input_tokens: Option<u64>,
    /// Maximum number of output tokens over all turns.
    pub output_tokens: Option<u64>,
    /// Maximum cost in US dollars, by the provider's prices.
    pub cost_usd: Option<f64>,
}

/// What a run request contains about the earlier bundle that the run continues.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowUp {
    /// Earlier bundle and comments, as the task names them.
    pub of: FollowUpOf,
    /// Budget as the task sets it, without defaults. A limit that the task sets applies to all runs
    /// of the chain together; a default limit applies to each run alone.
    #[serde(default)]
    pub budget: TaskBudget,
}
