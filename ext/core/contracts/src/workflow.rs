//! Steps of a recipe as the supervisor receives them: guest paths instead of host paths, commands
//! already validated, and without references to the recipe file.

use crate::{CommandCall, StagedFile};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What a failed step means for the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The run stops and fails.
    #[default]
    Stop,
    /// The failure is recorded and the run continues.
    Allow,
    /// The failure is recorded in a separate list of advisories, and the run continues.
    Advise,
}

/// One step of a recipe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkflowStep {
    /// Phase: `setup`, `startup-probe`, `before`, `steps`, `after` or `probe`.
    pub phase: String,
    /// Index of the step in its phase.
    pub index: u32,
    /// Name of the step, e.g. of a probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Registry command that the step runs.
    pub call: CommandCall,
    /// Timeout in milliseconds; absent: the remaining time of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What a failure of the step means for the run.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// Whether the step's output must be JSON.
    #[serde(default)]
    pub expect_json: bool,
    /// When and how often the step is repeated, as the recipe declares it; absent: once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Value>,
    /// Free-form data about the step from the recipe.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// A file of the guest to store in the bundle as evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CollectedFile {
    /// Name of the file in the results, unique in the run.
    pub name: String,
    /// Path of the file in the guest.
    pub path: String,
    /// Whether the run fails if the file is missing.
    pub required: bool,
    /// Whether the file must be JSON.
    pub parse_json: bool,
    /// Data about the file from the recipe, e.g. `type`, `contentType` and `payloadSchema` if the
    /// recipe declares the type of the file.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub typed: Map<String, Value>,
}

/// Steps of a recipe, and what their guest needs for them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Workflow {
    /// Steps of all phases, in order.
    pub steps: Vec<WorkflowStep>,
    /// Files to collect after the steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collect: Vec<CollectedFile>,
    /// Environment variables of every program in the work guest.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Host files that the guest may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub staged: Vec<StagedFile>,
    /// Files generated from the recipe, readable in the guest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<WrittenFile>,
    /// Mounts and components whose source directory is generated for this run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<GeneratedDirectory>,
    /// Targets of writable mounts whose changes are not captured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncaptured: Vec<String>,
    /// Which paths the recipe may change in its workspaces; absent: changes are not restricted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_rule: Option<WorkspaceRule>,
    /// PHP ini settings of the guest, one line `name=value` each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub php_ini: Vec<String>,
}

/// A file that the supervisor writes for the guest, with its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenFile {
    /// Path in the guest.
    pub target: String,
    /// Content of the file.
    pub content: String,
}

/// A directory that the supervisor generates in the run's scratch directory and mounts from there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratedDirectory {
    /// Target of the mount, or slug of the component, that uses the directory. The `source` of
    /// that mount or component is the archive or host directory, if `from` needs one.
    pub of: String,
    /// How the directory is generated.
    pub from: GeneratedFrom,
}

/// How a directory is generated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum GeneratedFrom {
    /// From a zip archive of the host.
    Archive {
        /// Expected SHA-256 of the archive.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
        /// Directory in the archive to use; absent: the only top-level directory, or the whole
        /// archive if it has no single top-level directory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subdir: Option<String>,
    },
    /// From a host directory, without some of its paths.
    Copy {
        /// Excluded paths; everything below them is excluded too.
        without: Vec<String>,
    },
    /// From these files, by path relative to the directory.
    Files {
        /// Contents of the files by path.
        files: BTreeMap<String, String>,
    },
}

/// Which paths a recipe may change in its workspaces, the mounts that it declares as work
/// directories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceRule {
    /// Mount targets of the workspaces. A change in any other mount violates the rule.
    pub workspaces: Vec<String>,
    /// Paths below a workspace that may change; `.` is the whole workspace.
    pub writable_roots: Vec<String>,
    /// Paths below a workspace that must not change, even below a writable root.
    #[serde(default)]
    pub hidden_paths: Vec<String>,
    /// What a violation means for the run.
    pub on_breach: OnFailure,
}
