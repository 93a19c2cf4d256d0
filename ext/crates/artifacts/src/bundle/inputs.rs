//! Inputs of a bundle as values. None of them is a host path.

use crate::capture::{ExcludeRules, LeftOut, MountChanges};
use serde::Serialize;
use serde_json::{Map, Value};
use wp_codebox_contracts::{
    CheckReport, ErrorCode, GitView, GuestPath, IsolationReport, LifecycleEvent, MountAccess,
    MountView, Outcome, RunSummary, RuntimeInfo,
};

/// One mount of the run as documented in the bundle, without host path.
#[derive(Debug, Clone)]
pub struct BundleMount {
    /// Position of the mount in the plan.
    pub index: usize,
    /// Declared mount target.
    pub target: GuestPath,
    /// Access of the guest to the mount.
    pub access: MountAccess,
    /// How the guest saw the mount.
    pub view: MountView,
    /// Git repository of the mount that the guest could see.
    pub git: GitView,
    /// Names excluded from the capture.
    pub exclude: ExcludeRules,
    /// Entries of the source that the guest did not get.
    pub left_out: LeftOut,
    /// Caller-defined metadata.
    pub metadata: Option<Map<String, Value>>,
    /// Changes of the guest; `None` if the mount was not captured.
    pub changes: Option<MountChanges>,
}

/// One line of `commands.jsonl`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionRecord {
    /// Execution id.
    pub id: String,
    /// Command id, e.g. `wordpress.run-php`.
    pub command: String,
    /// Arguments of the command.
    pub args: Vec<String>,
    /// Exit code; `None` if a signal killed the program.
    pub exit_code: Option<i32>,
    /// Standard output, shortened by the writer.
    pub stdout: String,
    /// Standard error, shortened by the writer.
    pub stderr: String,
    /// Start time in RFC 3339, UTC, milliseconds.
    pub started_at: String,
    /// End time in RFC 3339, UTC, milliseconds.
    pub finished_at: String,
    /// Phase: `workflow`, `agent` or `check`.
    pub phase: String,
    /// Whether output is missing because it exceeded the output limit of the run or of the
    /// bundle.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub output_truncated: bool,
}

/// Whether a reviewer may approve the bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approvable {
    /// The bundle may be approved.
    Yes,
    /// The bundle may not be approved; preflight fails with this code.
    No {
        /// Stable code, e.g. `wp_codebox_baseline_changed`.
        code: ErrorCode,
        /// Reason in one sentence.
        reason: String,
    },
}

/// Whether the patch contains git renames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RenameMode {
    /// A rename is written as a deletion and an addition.
    #[default]
    Separate,
    /// Similar files are written as a rename.
    Detect,
}

/// All inputs of a bundle. The writer redacts free text.
#[derive(Debug, Clone)]
pub struct BundleInputs {
    /// Creation time in RFC 3339, UTC, milliseconds.
    pub created_at: String,
    /// Description of the runtime.
    pub runtime: RuntimeInfo,
    /// Outcome of the run.
    pub outcome: Outcome,
    /// Summary of the outcome in one sentence.
    pub summary: String,
    /// Summary of the outcome as data.
    pub summary_detail: Option<RunSummary>,
    /// Whether the bundle may be approved.
    pub approvable: Approvable,
    /// `metadata.provenance`, without host paths.
    pub provenance: Map<String, Value>,
    /// `metadata.task`: the task input as the guest saw it.
    pub task: Option<Value>,
    /// `metadata.policy`.
    pub policy: Value,
    /// `metadata.spec`: limits, commands and other data that describe the request.
    pub spec: Map<String, Value>,
    /// Mounts in plan order.
    pub mounts: Vec<BundleMount>,
    /// Whether renames are detected.
    pub renames: RenameMode,
    /// Events of the journal.
    pub events: Vec<LifecycleEvent>,
    /// Executions in order of their start.
    pub commands: Vec<ExecutionRecord>,
    /// Observations in order.
    pub observations: Vec<Value>,
    /// Checks from the fresh sandbox.
    pub checks: Vec<CheckReport>,
    /// `sandbox-completion-outcome/v1` without the parts only the writer knows
    /// (`schema`, `changedFiles`, `patch`, `artifacts`, `provenance.artifactBundleId`, `provenance.artifactDirectory`).
    pub completion_outcome: Option<Map<String, Value>>,
    /// `agent-result/v1` without `schema`, `changedFiles`, `patch`, `artifacts`.
    pub agent_result: Option<Map<String, Value>>,
    /// `agent-transcript/v1`.
    pub transcript: Option<Value>,
    /// Isolation that the probes in the guest observed.
    pub isolation: IsolationReport,
    /// `preview/v1` of the preview that was open, without its token.
    pub preview: Option<Value>,
    /// Documents for `files/runtime-evidence/`, in order.
    pub evidence: Vec<EvidenceDocument>,
    /// Files that commands created for the reviewer, in order; each path occurs once.
    pub files: Vec<ArtifactFile>,
    /// Files of the episode, if the run had one.
    pub episode: Option<EpisodeFiles>,
}

/// Episode files of a bundle as the builder closed them. They are redacted already and written
/// unchanged, because their digests cover these bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpisodeFiles {
    /// `files/runtime-episode-trace.json`.
    pub trace: Vec<u8>,
    /// `files/runtime-episode.jsonl`.
    pub records: Vec<u8>,
}

/// A file that a command created for the reviewer, e.g. a screenshot.
#[derive(Debug, Clone, PartialEq)]
pub struct ArtifactFile {
    /// Path below `files/`; ASCII letters, digits, `.`, `_` and `-` between the slashes.
    pub path: String,
    /// `kind` in the manifest, e.g. `browser-screenshot`.
    pub kind: &'static str,
    /// Media type.
    pub media: &'static str,
    /// Content of the file.
    pub content: ArtifactContent,
}

/// The content of an [`ArtifactFile`].
#[derive(Debug, Clone, PartialEq)]
pub enum ArtifactContent {
    /// Text, redacted during writing.
    Text(String),
    /// JSON document, redacted during writing.
    Document(Value),
    /// Binary data that cannot be redacted, e.g. an image.
    Bytes(Vec<u8>),
}

/// One document of `files/runtime-evidence/`.
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceDocument {
    /// File name without directory, e.g. `run-attestation.json`. Ends in `.jsonl` if there is one
    /// value per line.
    pub name: &'static str,
    /// Logical name in `metadata.json`, e.g. `runAttestation`.
    pub key: &'static str,
    /// `kind` in the manifest, e.g. `run-attestation`.
    pub kind: &'static str,
    /// Content: one value for a `.json` file, one per line for a `.jsonl` file.
    pub values: Vec<Value>,
}
