//! Data from which a bundle is written. No value contains a host path.

use crate::capture::{ExcludeRules, LeftOut, MountChanges};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use wp_codebox_contracts::{
    CheckReport, ErrorCode, FollowUpRecord, GitView, GuestPath, IsolationReport, LifecycleEvent,
    MountAccess, MountView, Outcome, RunSummary, RuntimeInfo,
};

/// One mount of the run, as `files/mounts.jsonl` describes it.
#[derive(Debug, Clone)]
pub struct BundleMount {
    /// Position of the mount in the run's list of mounts, from 0.
    pub index: usize,
    /// Guest path of the mount, as the request declared it.
    pub target: GuestPath,
    /// Whether the guest could write to the mount.
    pub access: MountAccess,
    /// How the mount was made in the guest, e.g. as an overlay.
    pub view: MountView,
    /// Which git repository the guest saw in the mount.
    pub git: GitView,
    /// Rules by which the capture leaves out entries, e.g. `.git`.
    pub exclude: ExcludeRules,
    /// Entries of the host directory that were hidden from the guest, and links whose targets the
    /// guest could not reach.
    pub left_out: LeftOut,
    /// Metadata that the caller attached to the mount.
    pub metadata: Option<Map<String, Value>>,
    /// Changes that the guest made in the mount; `None` if they were not captured.
    pub changes: Option<MountChanges>,
}

/// One executed command: a line of `commands.jsonl`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionRecord {
    /// Execution id, which the events of this execution also have.
    pub id: String,
    /// Command id, e.g. `wordpress.run-php`.
    pub command: String,
    /// Arguments of `command`, not the command line of the process that it started.
    pub args: Vec<String>,
    /// Exit code; `None` if a signal killed the program.
    pub exit_code: Option<i32>,
    /// Standard output. The writer redacts and shortens it.
    pub stdout: String,
    /// Standard error. The writer redacts and shortens it.
    pub stderr: String,
    /// Start time in RFC 3339, UTC, milliseconds.
    pub started_at: String,
    /// End time in RFC 3339, UTC, milliseconds.
    pub finished_at: String,
    /// What executed the command, e.g. `workflow`, `agent`, `tool` (of the agent) or `check`.
    pub phase: String,
    /// Whether output is missing because it exceeded the output limit of the run or of the
    /// bundle.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub output_truncated: bool,
}

/// Whether the changes in a bundle may be approved for applying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approvable {
    /// A reviewer may approve the changes.
    Yes,
    /// No change may be approved; an apply fails with this code.
    No {
        /// Error code with which an apply fails, e.g. `wp_codebox_baseline_changed`.
        code: ErrorCode,
        /// Reason why the changes may not be approved, in one sentence.
        reason: String,
    },
}

/// How the patch represents a renamed file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RenameMode {
    /// As the deletion of one file and the addition of another.
    #[default]
    Separate,
    /// As a git rename, if the deleted and the added file are similar.
    Detect,
}

/// All inputs of a bundle. The writer redacts free text.
#[derive(Debug, Clone)]
pub struct BundleInputs {
    /// Creation time of the bundle in RFC 3339, UTC, milliseconds.
    pub created_at: String,
    /// Backend and environment of the run's guest.
    pub runtime: RuntimeInfo,
    /// Outcome of the run, e.g. succeeded or failed.
    pub outcome: Outcome,
    /// Summary of the outcome in one sentence.
    pub summary: String,
    /// Summary of the outcome as a code with parameters, to show it in the reader's language.
    pub summary_detail: Option<RunSummary>,
    /// Whether a reviewer may approve the changes.
    pub approvable: Approvable,
    /// `provenance` in `metadata.json`: who or what requested the run.
    pub provenance: Map<String, Value>,
    /// `task` in `metadata.json`: the task input as the guest saw it.
    pub task: Option<Value>,
    /// `policy` in `metadata.json`: the runtime policy of the run.
    pub policy: Value,
    /// `spec` in `metadata.json`: limits, commands and other data that describe the request.
    pub spec: Map<String, Value>,
    /// Mounts of the run in the order of the request.
    pub mounts: Vec<BundleMount>,
    /// How the patch represents a renamed file.
    pub renames: RenameMode,
    /// All events of the run's journal.
    pub events: Vec<LifecycleEvent>,
    /// Executed commands in order of their start.
    pub commands: Vec<ExecutionRecord>,
    /// Lines of `observations.jsonl`: states of the guest that commands and episode steps recorded,
    /// in the order in which they were made.
    pub observations: Vec<Value>,
    /// Results of the checks that ran in a new sandbox after the run.
    pub checks: Vec<CheckReport>,
    /// `sandbox-completion-outcome/v1` without the members that only the writer knows: `schema`,
    /// `changedFiles`, `patch`, `artifacts`, `provenance.artifactBundleId` and
    /// `provenance.artifactDirectory`.
    pub completion_outcome: Option<Map<String, Value>>,
    /// `agent-result/v1` without `schema`, `changedFiles`, `patch` and `artifacts`, which the
    /// writer adds.
    pub agent_result: Option<Map<String, Value>>,
    /// `agent-transcript/v1`: the transcript of the agent, if it wrote one.
    pub transcript: Option<Value>,
    /// Isolation of the guest, as probes inside it observed before untrusted code ran.
    pub isolation: IsolationReport,
    /// `preview/v1` document of the site preview that was open during the run, without the
    /// preview's access token.
    pub preview: Option<Value>,
    /// Documents for the directory `files/runtime-evidence/`, in manifest order.
    pub evidence: Vec<EvidenceDocument>,
    /// Files that commands created for the reviewer, in manifest order; each path occurs once.
    pub files: Vec<ArtifactFile>,
    /// Files of the episode (a recorded sequence of actions and observations), if the run had one.
    pub episode: Option<EpisodeFiles>,
    /// Data about the earlier bundle, if this is the bundle of a follow-up run, i.e. a run that
    /// continues an earlier bundle.
    pub follow_up: Option<FollowUpInputs>,
}

/// Data about the earlier bundle that a follow-up run continues, and the changes since that bundle.
#[derive(Debug, Clone, PartialEq)]
pub struct FollowUpInputs {
    /// `files/follow-up.json` without its changed files, which the writer adds. The writer redacts
    /// the comments.
    pub record: FollowUpRecord,
    /// What the follow-up run changed compared with the earlier bundle, by mount index.
    pub since: BTreeMap<usize, MountChanges>,
}

/// The two episode files of a bundle. The episode builder redacted them and computed digests over
/// their bytes, so the writer must not change them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpisodeFiles {
    /// Content of `files/runtime-episode-trace.json`.
    pub trace: Vec<u8>,
    /// Content of `files/runtime-episode.jsonl`.
    pub records: Vec<u8>,
}

/// A file that a command created for the reviewer, e.g. a screenshot.
#[derive(Debug, Clone, PartialEq)]
pub struct ArtifactFile {
    /// Path below `files/`; ASCII letters, digits, `.`, `_` and `-` between the slashes.
    pub path: String,
    /// `kind` in the manifest, e.g. `browser-screenshot`.
    pub kind: &'static str,
    /// Media type in the manifest, e.g. `image/png`.
    pub media: &'static str,
    /// Content of the file. Its variant determines whether the writer can redact it.
    pub content: ArtifactContent,
}

/// The content of an [`ArtifactFile`].
#[derive(Debug, Clone, PartialEq)]
pub enum ArtifactContent {
    /// Text; the writer redacts it.
    Text(String),
    /// JSON document; the writer redacts its strings.
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
    /// Key of the document in `artifacts` of `metadata.json`, e.g. `runAttestation`.
    pub key: &'static str,
    /// `kind` in the manifest, e.g. `run-attestation`.
    pub kind: &'static str,
    /// Values of the document: exactly one for a `.json` file, one per line for a `.jsonl` file.
    pub values: Vec<Value>,
}
