//! A run: its host paths and settings, what it is given, and what it comes to.

use crate::{
    ChangedFile, ErrorBody, GuestIds, IdentityChoice, IsolationReport, MountReport, Outcome, RunId,
    RunSummary,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Origin under which a guest's WordPress serves its site, for itself, its browser and previews.
pub const SITE_ORIGIN: &str = "http://localhost";

/// Runs of one site alive at once, unless the host says otherwise.
pub const DEFAULT_MAX_RUNS: u32 = 8;

/// Host paths and host settings of a run. They never enter a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPaths {
    /// State directory.
    pub state_dir: String,
    /// Directory with WP-CLI, the SQLite drop-in and the guest programs.
    pub share_dir: String,
    /// The launcher.
    pub launcher: String,
    /// PHP for the guest, e.g. `/usr/bin/php8.2`.
    pub php_binary: String,
    /// Directory whose WordPress core the guest gets.
    pub wordpress: String,
    /// Directories that may never be mounted, nor an ancestor of them, nor what lies below them
    /// outside of `code_roots` and `allowed_roots`: ABSPATH, wp-config.php's directory.
    #[serde(default)]
    pub denied: Vec<String>,
    /// Directories of plugins, themes and the operator's mount roots. One that lies in a denied
    /// directory may be mounted; one that holds a denied directory opens nothing of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub code_roots: Vec<String>,
    /// When set, only directories at or below these may be mounted (abilities, admin screens).
    /// Absent: the caller is the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_roots: Option<Vec<String>>,
    /// Cgroup directory below which runs get their groups. Absent: below the runner's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// Whose kernel uid the guests get.
    #[serde(default)]
    pub identity: IdentityChoice,
    /// Ids that the operator set aside for guests. Absent: [`GuestIds::default`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_ids: Option<GuestIds>,
    /// Directory with the programs of agent presets, one directory per preset. Absent: none
    /// is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents_dir: Option<String>,
    /// The browser's program. Absent: looked for where the system puts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub browser: Option<String>,
}

/// Whether the run belongs to its caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunMode {
    /// End of file on the frame socket cancels and salvages.
    #[default]
    Attached,
    /// It survives its caller.
    Detached,
}

/// A secret of the run. The guest gets a placeholder in its environment; the egress
/// bridge puts the value in its place, towards the named hosts only.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretBinding {
    /// Environment name, `[A-Z_][A-Z0-9_]*`.
    pub env: String,
    /// The value; never in a log, bundle, argument list or error.
    pub value: String,
    /// `host` or `host:port` to which the value may go. May be empty only when the policy
    /// exposes it to the guest.
    #[serde(default)]
    pub hosts: Vec<String>,
}

impl std::fmt::Debug for SecretBinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretBinding")
            .field("env", &self.env)
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}

/// A further sandbox around the launcher.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OuterSandbox {
    /// Which.
    #[serde(default)]
    pub kind: OuterSandboxKind,
    /// Its program; absent: found on the fixed system path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// What happens when it is missing.
    #[serde(default)]
    pub need: OuterSandboxNeed,
}

/// Kinds of outer sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OuterSandboxKind {
    /// None: the launcher is started as it is.
    #[default]
    None,
    /// bubblewrap.
    Bubblewrap,
    /// gVisor's runsc.
    Gvisor,
}

/// What a missing outer sandbox means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OuterSandboxNeed {
    /// The run is refused.
    #[default]
    Required,
    /// The run goes on without it and says so.
    Preferred,
}

/// What an outer sandbox was asked to start. Guest paths only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxAudit {
    /// `none`, or the kind of wrapper.
    pub kind: String,
    /// Program name of the wrapper; empty for `none`.
    pub wrapper_name: String,
    /// Program name that was wrapped.
    pub wrapped_cmd: String,
    /// Arguments of the wrapper, or of the launcher where there is none, host paths replaced by
    /// guest paths; each cut to 256 bytes, at most 256 of them.
    pub wrapped_args: Vec<String>,
    /// Guest paths of mounts that the wrapper itself adds.
    pub mounts: Vec<String>,
    /// Why there is no wrapper although one was preferred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a run cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Wall clock from when the caller began to ask until the bundle was written and all else
    /// of the run was removed, milliseconds.
    pub wall_ms: u64,
    /// CPU of guests, launcher and runner, milliseconds.
    pub cpu_ms: u64,
    /// Largest resident memory of all guest processes together, as polled, bytes.
    pub peak_memory_bytes: u64,
    /// What the built-in loop used of its model; absent when there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelUsage>,
}

/// What a model was used for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelUsage {
    /// Answers.
    pub turns: u32,
    /// Tokens sent, as the provider counts them; estimated where it does not say.
    pub input_tokens: u64,
    /// Of these, found in the provider's cache.
    pub cached_input_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
    /// Cost by the price table, millionths of a US dollar; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_microusd: Option<u64>,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// It exited with 0.
    Passed,
    /// It exited otherwise, or a signal ended it.
    Failed,
    /// It came to no exit: not started, a limit, the deadline.
    Error,
}

/// One check, run in a fresh sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckReport {
    /// As given.
    pub command: String,
    /// Exit code; absent when it was killed or could not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How it ended.
    pub status: CheckStatus,
    /// End of its output, redacted, at most 4 KiB.
    #[serde(default)]
    pub output_tail: String,
    /// Milliseconds.
    pub duration_ms: u64,
}

/// Where the bundle is. `path` is a host path: for the caller, not for the bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunArtifacts {
    /// Bundle directory.
    pub path: String,
    /// Bundle id.
    pub bundle_id: String,
    /// sha256 of the manifest file: what an approval binds.
    pub manifest_sha256: String,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// `wp-codebox/run-result/v1`.
    pub schema: String,
    /// The run.
    pub run_id: RunId,
    /// What it came to.
    pub outcome: Outcome,
    /// One sentence.
    pub summary: String,
    /// The sentence as data, for screens in other languages. Absent when the sentence is the
    /// message of an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_detail: Option<RunSummary>,
    /// Why it is not `succeeded`, with a stable code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
    /// The bundle; absent only when it could not be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<RunArtifacts>,
    /// How its mounts were shown, in order; components come last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<MountReport>,
    /// Changed paths.
    pub changed_files: Vec<ChangedFile>,
    /// Whether the bundle can be approved (false after `baseline-changed`).
    pub approvable: bool,
    /// Checks.
    pub checks: Vec<CheckReport>,
    /// What the guest's probes saw.
    pub isolation: IsolationReport,
    /// What was put around the launcher, one row per guest.
    #[serde(
        rename = "sandboxAudits",
        default,
        skip_serializing_if = "Vec::is_empty"
    )]
    pub sandbox_audits: Vec<SandboxAudit>,
    /// Cost.
    pub cost: Cost,
    /// `sandbox-completion-outcome/v1`, as in the bundle.
    pub completion_outcome: Value,
    /// `agent-result/v1`, as in the bundle; null when there was no agent.
    pub agent_result: Value,
    /// `agent-transcript/v1`, as in the bundle.
    pub transcript: Value,
    /// What the steps of a recipe came to; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Value>,
    /// Things the caller should see, each one sentence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}
