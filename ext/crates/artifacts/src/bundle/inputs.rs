//! What a bundle is made of, as values. No host path is among them.

use crate::capture::{ExcludeRules, LeftOut, MountChanges};
use serde::Serialize;
use serde_json::{Map, Value};
use wp_codebox_contracts::{
    CheckReport, ErrorCode, GitView, GuestPath, IsolationReport, LifecycleEvent, MountAccess,
    MountView, Outcome, RunSummary, RuntimeInfo,
};

/// One mount of the run, as the bundle shows it: no host path.
#[derive(Debug, Clone)]
pub struct BundleMount {
    /// Position in the plan.
    pub index: usize,
    /// Declared target.
    pub target: GuestPath,
    /// What the guest may do with it.
    pub access: MountAccess,
    /// How it was materialised.
    pub view: MountView,
    /// Which git repository the guest had of it.
    pub git: GitView,
    /// What was left out of the capture.
    pub exclude: ExcludeRules,
    /// What the guest did not get of the source.
    pub left_out: LeftOut,
    /// Free data of the caller.
    pub metadata: Option<Map<String, Value>>,
    /// What changed; none when the mount was not captured.
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
    /// Its arguments.
    pub args: Vec<String>,
    /// Exit code; none when killed.
    pub exit_code: Option<i32>,
    /// Standard output, bounded by the writer.
    pub stdout: String,
    /// Standard error, bounded by the writer.
    pub stderr: String,
    /// RFC 3339, UTC, milliseconds.
    pub started_at: String,
    /// RFC 3339, UTC, milliseconds.
    pub finished_at: String,
    /// Phase: `workflow`, `agent` or `check`.
    pub phase: String,
    /// Whether output is missing: beyond the run's output limit or the bundle's.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub output_truncated: bool,
}

/// Whether a reviewer may approve the bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approvable {
    /// Yes.
    Yes,
    /// No, and why; preflight answers with this code.
    No {
        /// Stable code, e.g. `wp_codebox_baseline_changed`.
        code: ErrorCode,
        /// One sentence.
        reason: String,
    },
}

/// Whether git renames are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RenameMode {
    /// A rename is a deletion and an addition.
    #[default]
    Separate,
    /// Similar files are paired.
    Detect,
}

/// Everything a bundle is made of. Free text is redacted by the writer.
#[derive(Debug, Clone)]
pub struct BundleInputs {
    /// RFC 3339, UTC, milliseconds.
    pub created_at: String,
    /// The runtime.
    pub runtime: RuntimeInfo,
    /// What the run came to.
    pub outcome: Outcome,
    /// One sentence.
    pub summary: String,
    /// That as data.
    pub summary_detail: Option<RunSummary>,
    /// Whether it can be approved.
    pub approvable: Approvable,
    /// `metadata.provenance`, without host paths.
    pub provenance: Map<String, Value>,
    /// `metadata.task`: the task input as the guest saw it.
    pub task: Option<Value>,
    /// `metadata.policy`.
    pub policy: Value,
    /// `metadata.spec`: limits, commands and whatever describes the request.
    pub spec: Map<String, Value>,
    /// Mounts in plan order.
    pub mounts: Vec<BundleMount>,
    /// Rename detection.
    pub renames: RenameMode,
    /// The journal.
    pub events: Vec<LifecycleEvent>,
    /// Executions in order.
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
    /// What the guest's probes saw.
    pub isolation: IsolationReport,
    /// `preview/v1` of the preview that was open, without its token.
    pub preview: Option<Value>,
    /// Documents for `files/runtime-evidence/`, in order.
    pub evidence: Vec<EvidenceDocument>,
    /// What commands left, in order; each path once.
    pub files: Vec<ArtifactFile>,
    /// The episode, when there was one.
    pub episode: Option<EpisodeFiles>,
}

/// What a bundle holds of an episode, as its builder closed it: redacted, and written as it is,
/// since its digests are of these very bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpisodeFiles {
    /// `files/runtime-episode-trace.json`.
    pub trace: Vec<u8>,
    /// `files/runtime-episode.jsonl`.
    pub records: Vec<u8>,
}

/// A file that a command left for whoever reviews the run, e.g. a screenshot.
#[derive(Debug, Clone, PartialEq)]
pub struct ArtifactFile {
    /// Below `files/`; ASCII letters, digits, `.`, `_` and `-` between the slashes.
    pub path: String,
    /// `kind` in the manifest, e.g. `browser-screenshot`.
    pub kind: &'static str,
    /// Media type.
    pub media: &'static str,
    /// What is in it.
    pub content: ArtifactContent,
}

/// The content of an [`ArtifactFile`].
#[derive(Debug, Clone, PartialEq)]
pub enum ArtifactContent {
    /// Redacted when it is written.
    Text(String),
    /// A JSON document, redacted when it is written.
    Document(Value),
    /// Bytes in which nothing can be redacted, e.g. an image.
    Bytes(Vec<u8>),
}

/// One document of `files/runtime-evidence/`.
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceDocument {
    /// Name without directory, e.g. `run-attestation.json`. Ends with `.jsonl` for lines.
    pub name: &'static str,
    /// Logical name in `metadata.json`, e.g. `runAttestation`.
    pub key: &'static str,
    /// `kind` in the manifest, e.g. `run-attestation`.
    pub kind: &'static str,
    /// One value for a `.json` file, one per line for a `.jsonl` file.
    pub values: Vec<Value>,
}
