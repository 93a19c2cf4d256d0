//! The steps of a recipe as the runner takes them: host paths are guest paths by now, every
//! command is judged, and nothing of the recipe's file is needed any more.

use crate::{CommandCall, StagedFile};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What a failing step means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The run stops, and fails.
    #[default]
    Stop,
    /// It is recorded, and the run goes on.
    Allow,
    /// It is recorded as advice, and the run goes on.
    Advise,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkflowStep {
    /// `setup`, `startup-probe`, `before`, `steps`, `after`, `probe`.
    pub phase: String,
    /// Position in its phase.
    pub index: u32,
    /// Name, where it has one: of a probe, for example.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The command.
    pub call: CommandCall,
    /// Milliseconds until it is ended; absent: the run's own time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What its failure means.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// Whether its output must be JSON.
    #[serde(default)]
    pub expect_json: bool,
    /// A bounded loop around it, as the recipe has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Value>,
    /// Free data of the recipe.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// A file of the guest that becomes evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CollectedFile {
    /// Name, unique in the run.
    pub name: String,
    /// Guest path.
    pub path: String,
    /// Whether the run fails without it.
    pub required: bool,
    /// Whether it must be JSON.
    pub parse_json: bool,
    /// `type`, `contentType`, `payloadSchema` of a typed artifact.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub typed: Map<String, Value>,
}

/// Everything a recipe does in its guest, in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Workflow {
    /// Steps of all phases, in order.
    pub steps: Vec<WorkflowStep>,
    /// Files to collect when they are done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collect: Vec<CollectedFile>,
    /// Variables that every program of the working guest has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Host files that the guest may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub staged: Vec<StagedFile>,
    /// Files that the recipe itself comes down to, readable in the guest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<WrittenFile>,
    /// Mounts and components whose directory is made for this run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<MadeDirectory>,
    /// Targets of writable mounts whose changes nobody wants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncaptured: Vec<String>,
    /// Where the recipe may change its workspaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_rule: Option<WorkspaceRule>,
    /// Settings of the guest's PHP, one line `name=value` each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub php_ini: Vec<String>,
}

/// A file with its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenFile {
    /// Guest path.
    pub target: String,
    /// Content.
    pub content: String,
}

/// A directory that is made in the scratch of the run and mounted from there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeDirectory {
    /// Target of the mount, or slug of the component, that it is for. What that one names as its
    /// source is what it is made of.
    pub of: String,
    /// How.
    pub from: MadeFrom,
}

/// What a directory is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MadeFrom {
    /// A zip archive of the host.
    Archive {
        /// sha256 that the archive must have.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
        /// Directory of the archive that is meant; absent: its only one, else all of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subdir: Option<String>,
    },
    /// A directory of the host without some of its paths.
    Copy {
        /// Paths below it that stay behind, with all below them.
        without: Vec<String>,
    },
    /// These files, by path below the directory.
    Files {
        /// Content by path.
        files: BTreeMap<String, String>,
    },
}

/// Where the recipe may change its workspaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceRule {
    /// Targets of the workspaces. A change in any other mount breaks the rule.
    pub workspaces: Vec<String>,
    /// Paths below a workspace where it may change; `.` is all of it.
    pub writable_roots: Vec<String>,
    /// Paths that no change may touch.
    #[serde(default)]
    pub hidden_paths: Vec<String>,
    /// What a change elsewhere means.
    pub on_breach: OnFailure,
}
