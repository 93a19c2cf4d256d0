//! A run: its host paths and settings, the parts of its request, and its result.

use crate::{
    ChangedFile, ErrorBody, GuestIds, IdentityChoice, IsolationReport, MountReport, Outcome, RunId,
    RunSummary, schema_id,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Origin of the site in the guest's WordPress, for the guest itself, its browser and previews.
pub const SITE_ORIGIN: &str = "http://localhost";

/// Maximum number of concurrent runs per site, unless the host sets another maximum.
pub const DEFAULT_MAX_RUNS: u32 = 8;

/// Host paths and host settings of a run. They never enter a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPaths {
    /// Directory in which the supervisor keeps runs, bundles, templates and keys.
    pub state_dir: String,
    /// Directory with WP-CLI, the SQLite drop-in and the guest programs.
    pub share_dir: String,
    /// Path of the launcher program.
    pub launcher: String,
    /// PHP binary for the guest, e.g. `/usr/bin/php8.2`.
    pub php_binary: String,
    /// Directory of the WordPress core that the guest gets.
    pub wordpress: String,
    /// Directories that cannot be mounted, e.g. ABSPATH and the directory of wp-config.php.
    /// Their ancestors are denied too, and so is everything below them outside of `code_roots`
    /// and `allowed_roots`.
    #[serde(default)]
    pub denied: Vec<String>,
    /// Directories of plugins and themes, and the operator's mount roots. A code root below a
    /// denied directory may be mounted. A code root that contains a denied directory grants no
    /// access to that directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub code_roots: Vec<String>,
    /// If set, only these directories and directories below them may be mounted. Abilities and
    /// admin screens set it. Absent: the caller is the operator, who may also mount other
    /// directories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_roots: Option<Vec<String>>,
    /// Parent cgroup of the runs' cgroups. Absent: the supervisor's own cgroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// Whether guests get a kernel uid of their own, or the kernel uid of the state directory's
    /// owner.
    #[serde(default)]
    pub identity: IdentityChoice,
    /// Range of ids that the operator reserved for guests. Absent: [`GuestIds::default`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_ids: Option<GuestIds>,
    /// Directory with the programs of agent presets, one directory per preset. Absent: no
    /// presets are installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents_dir: Option<String>,
    /// Path of the browser program. Absent: the supervisor searches the system's standard paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub browser: Option<String>,
}

/// Whether a run ends when its caller disconnects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunMode {
    /// End of file on the frame socket cancels the run, which then writes a recovery bundle.
    #[default]
    Attached,
    /// The run continues after its caller exits.
    Detached,
}

/// A secret of the run. The guest's environment contains a placeholder; the egress bridge
/// replaces it by the value, only in requests to the hosts in `hosts`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretBinding {
    /// Name of the environment variable, `[A-Z_][A-Z0-9_]*`.
    pub env: String,
    /// Value of the secret; never in a log, bundle, argument list or error.
    pub value: String,
    /// `host` or `host:port` to which the egress bridge may send the value. May be empty only
    /// if the policy exposes the value to the guest.
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

/// Process wrapper: a sandbox program, e.g. bubblewrap, in which the supervisor starts the launcher.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OuterSandbox {
    /// Wrapper program, or none.
    #[serde(default)]
    pub kind: OuterSandboxKind,
    /// Path of the wrapper program; absent: the fixed system path of this kind of wrapper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// What happens to the run when the wrapper is missing.
    #[serde(default)]
    pub need: OuterSandboxNeed,
}

/// Programs that can wrap the launcher.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OuterSandboxKind {
    /// No wrapper: the supervisor starts the launcher directly.
    #[default]
    None,
    /// bubblewrap.
    Bubblewrap,
    /// gVisor's runsc.
    Gvisor,
}

/// What happens to the run when its process wrapper is missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OuterSandboxNeed {
    /// The run is refused.
    #[default]
    Required,
    /// The run continues without the wrapper; [`SandboxAudit::reason`] says why.
    Preferred,
}

/// Command line with which the supervisor started a launcher, with its process wrapper if there is
/// one. Contains guest paths only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxAudit {
    /// Kind of the wrapper, `none` without one.
    pub kind: String,
    /// Program name of the wrapper; empty for `none`.
    pub wrapper_name: String,
    /// Name of the wrapped program.
    pub wrapped_cmd: String,
    /// Arguments of the wrapper, or of the launcher without a wrapper. Host paths are replaced
    /// by guest paths. At most 256 arguments, each cut to 256 bytes.
    pub wrapped_args: Vec<String>,
    /// Guest paths of mounts that the wrapper itself adds.
    pub mounts: Vec<String>,
    /// Why the run continued without a wrapper that was preferred but not required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Time, memory and model use of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Wall clock in milliseconds from the start of the caller's call until the bundle is
    /// written and all other files of the run are removed.
    pub wall_ms: u64,
    /// CPU time of guests, launcher and supervisor, in milliseconds.
    pub cpu_ms: u64,
    /// Largest resident memory of all guest processes together in repeated measurements, in bytes.
    pub peak_memory_bytes: u64,
    /// What the kernel counted for the cgroup of the run; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupUse>,
    /// Model usage of the built-in agent loop; absent if it did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelUsage>,
}

/// Counters of a run's cgroup, which all its sandboxes share. A counter that the kernel does not
/// have is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupUse {
    /// Largest memory in bytes, written files and caches included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_peak_bytes: Option<u64>,
    /// Time in milliseconds during which the CPU limit held back at least one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_ms: Option<u64>,
    /// Time in milliseconds during which at least one process waited for a processor (PSI, `some`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_wait_ms: Option<u64>,
    /// Time in milliseconds during which at least one process waited for memory (PSI, `some`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_wait_ms: Option<u64>,
    /// Time in milliseconds during which at least one process waited for a disk (PSI, `some`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_wait_ms: Option<u64>,
}

/// Model responses and tokens that the built-in agent loop used, and their cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelUsage {
    /// Number of model responses.
    pub turns: u32,
    /// Input tokens as the provider counts them; estimated if the provider does not report
    /// them.
    pub input_tokens: u64,
    /// Part of the input tokens that the provider served from its cache.
    pub cached_input_tokens: u64,
    /// Output tokens as the provider counts them; estimated if the provider does not report them.
    pub output_tokens: u64,
    /// Cost in millionths of a US dollar by the prices in the model's settings; absent without
    /// prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_microusd: Option<u64>,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// The check exited with status 0, and the test runners and linters in it have worked.
    Passed,
    /// The check exited with another status, was killed by a signal, or has not worked: PHPUnit left
    /// no complete log, no test ran, no file was checked.
    Failed,
    /// The check did not exit: not started, stopped by a limit or by the deadline.
    Error,
}

/// Number of tests by result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestCounts {
    /// Sum of the other numbers.
    pub total: u64,
    /// Tests that passed, also with a warning.
    pub passed: u64,
    /// Tests that failed, and tests in which PHP ended.
    pub failed: u64,
    /// Skipped and incomplete tests.
    pub skipped: u64,
    /// Tests without a known result.
    pub unknown: u64,
}

/// Result of one check, run in a fresh sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckReport {
    /// Command line of the check, as the caller gave it.
    pub command: String,
    /// Exit code; absent if the check was killed or could not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How the check ended.
    pub status: CheckStatus,
    /// End of the check's output, redacted, at most 4 KiB.
    #[serde(default)]
    pub output_tail: String,
    /// Run time of the check in milliseconds.
    pub duration_ms: u64,
    /// Why the check did not pass, if its exit code does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Tests that PHPUnit has run in the check; absent if the check has not run PHPUnit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCounts>,
}

impl CheckReport {
    /// Reports a check as not run, or as not ended, for this reason.
    #[must_use]
    pub fn error(command: &str, reason: &str) -> Self {
        Self {
            command: command.to_owned(),
            exit_code: None,
            status: CheckStatus::Error,
            output_tail: String::new(),
            duration_ms: 0,
            reason: Some(reason.to_owned()),
            tests: None,
        }
    }
}

/// Builds the document `wp-codebox/test-results/v1` of checks, each of which is one suite. `clean`
/// is applied to each text.
#[must_use]
pub fn check_results(checks: &[CheckReport], clean: impl Fn(&str) -> String) -> Value {
    let count = |status: CheckStatus| checks.iter().filter(|c| c.status == status).count();
    let (total, passed, failed) = (
        checks.len(),
        count(CheckStatus::Passed),
        count(CheckStatus::Failed),
    );
    let status = match (total, total - passed, failed) {
        (0, ..) => "unknown",
        (_, 0, _) => "passed",
        (.., 0) => "unknown",
        _ => "failed",
    };
    let suite = |check: &CheckReport| {
        let mut suite = json!({
            "name": clean(&check.command),
            "status": check.status,
        });
        if let Some(code) = check.exit_code {
            suite["exitCode"] = code.into();
        }
        suite["durationMs"] = check.duration_ms.into();
        suite["outputTail"] = clean(&check.output_tail).into();
        if let Some(reason) = &check.reason {
            suite["reason"] = clean(reason).into();
        }
        if let Some(tests) = check.tests {
            suite["summary"] = json!(tests);
        }
        suite
    };
    json!({
        "schema": schema_id::TEST_RESULTS,
        "status": status,
        "summary": {
            "total": total, "passed": passed, "failed": failed, "skipped": 0,
            "unknown": total - passed - failed,
        },
        "suites": checks.iter().map(suite).collect::<Vec<_>>(),
    })
}

/// Location of the bundle that a run wrote. `path` is a host path for the caller and never enters
/// a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunArtifacts {
    /// Host path of the bundle directory.
    pub path: String,
    /// Id of the bundle.
    pub bundle_id: String,
    /// SHA-256 of the manifest file; an approval refers to this digest.
    pub manifest_sha256: String,
}

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Schema id, `wp-codebox/run-result/v1`.
    pub schema: String,
    /// Id of the run.
    pub run_id: RunId,
    /// Outcome of the run.
    pub outcome: Outcome,
    /// The outcome in one sentence.
    pub summary: String,
    /// `summary` as code and arguments, for user interfaces in other languages. Absent when
    /// `summary` is an error message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_detail: Option<RunSummary>,
    /// Error of a run that did not succeed, with a stable code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
    /// Location of the bundle; absent only if it could not be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<RunArtifacts>,
    /// How the guest saw the run's mounts, in order; the mounts of components come last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<MountReport>,
    /// Paths in the mounts that the run changed.
    pub changed_files: Vec<ChangedFile>,
    /// Whether the bundle can be approved; false e.g. if a mount source changed during the run.
    pub approvable: bool,
    /// Results of the checks, in order.
    pub checks: Vec<CheckReport>,
    /// Results of the probes that checked the isolation of the work guest (where the agent runs).
    pub isolation: IsolationReport,
    /// Command lines with which the supervisor started the launchers, one row per guest.
    #[serde(
        rename = "sandboxAudits",
        default,
        skip_serializing_if = "Vec::is_empty"
    )]
    pub sandbox_audits: Vec<SandboxAudit>,
    /// Time, memory and model use of the run.
    pub cost: Cost,
    /// `sandbox-completion-outcome/v1`, as in the bundle.
    pub completion_outcome: Value,
    /// `agent-result/v1`, as in the bundle; null without an agent.
    pub agent_result: Value,
    /// `agent-transcript/v1`, as in the bundle.
    pub transcript: Value,
    /// Results of the recipe's steps; absent without a recipe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Value>,
    /// Servers that ran in the guests: id, kind, version, phase, time to start, and names of the
    /// environment variables with the server's outputs, such as its port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Value>,
    /// Notices for the caller, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}
