//! Schema ids, one constant each, grouped by who produces the document.

/// Normalised input of an agent task.
pub const TASK_INPUT: &str = "wp-codebox/task-input/v1";
/// Answer of a synchronous agent task.
pub const AGENT_TASK_RUN: &str = "wp-codebox/agent-task-run/v1";
/// Answer of a batch of agent tasks.
pub const AGENT_TASK_BATCH: &str = "wp-codebox/agent-task-batch/v1";
/// Answer of a fan-out.
pub const AGENT_FANOUT_RESULT: &str = "wp-codebox/agent-fanout-result/v1";
/// What the workers of a fan-out come to together.
pub const AGENT_FANOUT_AGGREGATION_OUTPUT: &str = "wp-codebox/agent-fanout-aggregation-output/v1";
/// References to what a bundle proves.
pub const AGENT_TASK_EVIDENCE_REFS: &str = "wp-codebox/agent-task-evidence-refs/v1";
/// What a machine looks at first when a task was not good.
pub const AGENT_TASK_DIAGNOSTICS: &str = "wp-codebox/agent-task-diagnostics/v1";
/// Correlation of a call.
pub const AGENT_TASK_RUN_METADATA: &str = "wp-codebox/agent-task-run-metadata/v1";
/// Correlation envelope of a finished call.
pub const SANDBOX_SESSION: &str = "wp-codebox/sandbox-session/v1";
/// What came out of a run, for an orchestrator.
pub const COMPLETION_OUTCOME: &str = "wp-codebox/sandbox-completion-outcome/v1";
/// What the agent did, in short.
pub const AGENT_RESULT: &str = "wp-codebox/agent-result/v1";
/// What the agent printed, bounded.
pub const AGENT_TRANSCRIPT: &str = "wp-codebox/agent-transcript/v1";
/// Changed files of a bundle.
pub const CHANGED_FILES: &str = "wp-codebox/changed-files/v1";
/// Reviewer-facing summary of a bundle.
pub const ARTIFACT_REVIEW: &str = "wp-codebox/artifact-review/v1";
/// Check results of a bundle.
pub const TEST_RESULTS: &str = "wp-codebox/test-results/v1";
/// Verification answer.
pub const BUNDLE_VERIFICATION: &str = "wp-codebox/artifact-bundle-verification/v1";
/// Apply preflight answer of the bundle layer.
pub const BUNDLE_APPLY_PREFLIGHT: &str = "wp-codebox/artifact-bundle-apply-preflight/v1";
/// What an apply adapter is handed by the bundle layer.
pub const BUNDLE_APPLY_PAYLOAD: &str = "wp-codebox/artifact-bundle-apply-payload/v1";
/// What an apply adapter must answer.
pub const APPLY_RESULT: &str = "wp-codebox/apply-result/v1";
/// File reference manifest of a bundle.
pub const RUNTIME_REFERENCE_MANIFEST: &str = "wp-codebox/runtime-reference-manifest/v1";
/// Replay reference index of a bundle.
pub const RUNTIME_REPLAY_INDEX: &str = "wp-codebox/runtime-replay-reference-index/v1";
/// Predicate type of the bundle attestation.
pub const BUNDLE_ATTESTATION_PREDICATE: &str = "wp-codebox/bundle-attestation/v1";
/// Isolation report of a run.
pub const ISOLATION_REPORT: &str = "wp-codebox/isolation-report/v1";
/// What was observed in the guests of a run, as it lies in the bundle.
pub const RUN_ATTESTATION: &str = "wp-codebox/run-attestation/v1";
/// Last self-test of a host, kept in the state directory.
pub const SELF_TEST: &str = "wp-codebox/self-test/v1";
/// Answer of the egress bridge to a request that did not pass.
pub const EGRESS_DENIED: &str = "wp-codebox/egress-denied/v1";
/// How a well-known command-line agent is started.
pub const AGENT_PRESET: &str = "wp-codebox/agent-preset/v1";
/// Presets of an installation.
pub const AGENT_PRESET_LIST: &str = "wp-codebox/agent-preset-list/v1";
/// A sandbox that outlives its commands: what it is, how it goes, how it ended.
pub const SANDBOX: &str = "wp-codebox/sandbox/v1";
/// Sandboxes of a state directory.
pub const SANDBOX_LIST: &str = "wp-codebox/sandbox-list/v1";
/// The state of a sandbox, kept.
pub const SANDBOX_SNAPSHOT: &str = "wp-codebox/sandbox-snapshot/v1";
/// Snapshots of a state directory.
pub const SANDBOX_SNAPSHOT_LIST: &str = "wp-codebox/sandbox-snapshot-list/v1";
/// What removing a snapshot did.
pub const SANDBOX_SNAPSHOT_REMOVAL: &str = "wp-codebox/sandbox-snapshot-removal/v1";
/// What sandboxes are made from.
pub const SANDBOX_PROFILE: &str = "wp-codebox/sandbox-profile/v1";
/// What a sandbox may use.
pub const SANDBOX_ESTIMATE: &str = "wp-codebox/sandbox-estimate/v1";
/// What a checkpoint command did.
pub const RUNTIME_CHECKPOINT_RESULT: &str = "wp-codebox/runtime-checkpoint-result/v1";
/// Why a checkpoint command did not.
pub const RUNTIME_CHECKPOINT_FAILURE: &str = "wp-codebox/runtime-checkpoint-failure/v1";
/// Catalogue of commands.
pub const COMMAND_CATALOG: &str = "wp-codebox/command-catalog/v1";
/// Result of one command.
pub const RUNTIME_COMMAND_RESULT: &str = "wp-codebox/runtime-command-result/v1";
/// Result of `command-agent-run`.
pub const COMMAND_AGENT_RUN: &str = "wp-codebox/command-agent-run/v1";
/// Runner request as stored and sent.
pub const RUN_REQUEST: &str = "wp-codebox/run-request/v1";
/// Terminal record of a run.
pub const RUN_RESULT: &str = "wp-codebox/run-result/v1";
/// A run that goes on while its caller does something else.
pub const RUN_HANDLE: &str = "wp-codebox/run-handle/v1";
/// What is known of a run.
pub const RUN: &str = "wp-codebox/run/v1";
/// Runs of a site.
pub const RUN_LIST: &str = "wp-codebox/run-list/v1";
/// A page of a run's journal.
pub const RUN_EVENTS: &str = "wp-codebox/run-events/v1";
/// Answer to a cancellation.
pub const RUN_CANCELLATION: &str = "wp-codebox/run-cancellation/v1";
/// A run in the words of the run registry.
pub const RUN_REGISTRY_ENTRY: &str = "wp-codebox/run-registry-entry/v1";
/// Runs in the words of the run registry.
pub const RUN_REGISTRY: &str = "wp-codebox/run-registry/v1";
/// What a run left.
pub const RUN_ARTIFACTS: &str = "wp-codebox/run-artifacts/v1";
/// The control socket of a run.
pub const RUN_SOCKET: &str = "wp-codebox/run-socket/v1";
/// Mails that a run's guests sent.
pub const RUN_MAIL: &str = "wp-codebox/run-mail/v1";
/// State, phase and cleanup of a run.
pub const RUN_LIFECYCLE: &str = "wp-codebox/run-lifecycle/v1";
/// What a run came to, without host paths.
pub const RUNTIME_RUN_RESULT: &str = "wp-codebox/runtime-run-result/v1";
/// What a cancellation met, with the run.
pub const RUN_CANCELLATION_REQUEST: &str = "wp-codebox/run-cancellation-request/v1";
/// Trace of an episode.
pub const RUNTIME_EPISODE_TRACE: &str = "wp-codebox/runtime-episode-trace/v1";
/// Action of an episode.
pub const RUNTIME_EPISODE_ACTION: &str = "wp-codebox/runtime-episode-action/v1";
/// Observation of an episode.
pub const RUNTIME_EPISODE_OBSERVATION: &str = "wp-codebox/runtime-episode-observation/v1";
/// Snapshot of an episode.
pub const RUNTIME_EPISODE_SNAPSHOT: &str = "wp-codebox/runtime-episode-snapshot/v1";
/// One JSON Schema, or what a tool takes.
pub const JSON_SCHEMA: &str = "wp-codebox/json-schema/v1";
/// The schemas there are.
pub const JSON_SCHEMA_LIST: &str = "wp-codebox/json-schema-list/v1";
/// Failure of the command line in JSON mode.
pub const CLI_FAILURE: &str = "wp-codebox/cli-failure/v1";
/// A preview of a sandbox's site.
pub const PREVIEW: &str = "wp-codebox/preview/v1";
/// What a sync of files did.
pub const SANDBOX_SYNC: &str = "wp-codebox/sandbox-sync/v1";
/// What a collection removed.
pub const GC: &str = "wp-codebox/gc/v1";
/// Doctor answer.
pub const DOCTOR: &str = "wp-codebox/doctor/v1";
/// Which tools exist for an agent.
pub const SANDBOX_TOOL_POLICY: &str = "wp-codebox/sandbox-tool-policy/v1";
/// Calls of tools in a run.
pub const TOOL_CALL_TRANSCRIPT: &str = "wp-codebox/tool-call-transcript/v1";
/// Which tools the parent answers for.
pub const PARENT_TOOL_BRIDGE: &str = "wp-codebox/parent-tool-bridge/v1";
/// The agent asks for a tool of the parent.
pub const PARENT_TOOL_REQUEST: &str = "wp-codebox/parent-tool-request/v1";
/// What came of a tool of the parent.
pub const PARENT_TOOL_RESULT: &str = "wp-codebox/parent-tool-result/v1";
