//! Schema ids of the documents that this project reads or writes, one constant each.

/// Normalised input of an agent task.
pub const TASK_INPUT: &str = "wp-codebox/task-input/v1";
/// Reply of a synchronous agent task.
pub const AGENT_TASK_RUN: &str = "wp-codebox/agent-task-run/v1";
/// Result of an agent task with references to everything that its run stored.
pub const AGENT_TASK_RUN_RESULT: &str = "wp-codebox/agent-task-run-result/v1";
/// Result of an agent task for a caller without a user interface.
pub const HEADLESS_AGENT_TASK_RESULT: &str = "wp-codebox/headless-agent-task-result/v1";
/// Result of the agent of a task, without references.
pub const AGENT_TASK_RESULT: &str = "wp-codebox/agent-task-result/v1";
/// Bundle that an operation created, with the result of the operation.
pub const ARTIFACT_RESULT_ENVELOPE: &str = "wp-codebox/artifact-result-envelope/v1";
/// Outcome of a task that repairs a finding.
pub const AGENT_SANDBOX_REMEDIATION_OUTCOME: &str =
    "wp-codebox/agent-sandbox-remediation-outcome/v1";
/// Reply of a batch: several independent agent tasks in one call.
pub const AGENT_TASK_BATCH: &str = "wp-codebox/agent-task-batch/v1";
/// Reply of a fan-out: several agent tasks with dependencies in one call.
pub const AGENT_FANOUT_RESULT: &str = "wp-codebox/agent-fanout-result/v1";
/// Aggregated results of a fan-out's workers.
pub const AGENT_FANOUT_AGGREGATION_OUTPUT: &str = "wp-codebox/agent-fanout-aggregation-output/v1";
/// Plan of a fan-out: its workers and their dependencies.
pub const AGENT_FANOUT_PLAN: &str = "wp-codebox/agent-fanout-plan/v1";
/// One event of a fan-out.
pub const AGENT_FANOUT_EVENT: &str = "wp-codebox/agent-fanout-event/v1";
/// Files in which a fan-out stored its plan, events and results.
pub const AGENT_FANOUT_ARTIFACTS: &str = "wp-codebox/agent-fanout-artifacts/v1";
/// References to the evidence in a bundle.
pub const AGENT_TASK_EVIDENCE_REFS: &str = "wp-codebox/agent-task-evidence-refs/v1";
/// Machine-readable diagnostics of a task that did not succeed.
pub const AGENT_TASK_DIAGNOSTICS: &str = "wp-codebox/agent-task-diagnostics/v1";
/// Ids with which the caller of an agent task matches the reply to its call.
pub const AGENT_TASK_RUN_METADATA: &str = "wp-codebox/agent-task-run-metadata/v1";
/// Ids and artifact paths of a finished call, for the orchestrator that made it.
pub const SANDBOX_SESSION: &str = "wp-codebox/sandbox-session/v1";
/// Completion outcome of a run, for an orchestrator.
pub const COMPLETION_OUTCOME: &str = "wp-codebox/sandbox-completion-outcome/v1";
/// Summary of the agent's work.
pub const AGENT_RESULT: &str = "wp-codebox/agent-result/v1";
/// Output of the agent, with bounded length.
pub const AGENT_TRANSCRIPT: &str = "wp-codebox/agent-transcript/v1";
/// Changed files of a bundle.
pub const CHANGED_FILES: &str = "wp-codebox/changed-files/v1";
/// Summary of a bundle for the person who reviews it.
pub const ARTIFACT_REVIEW: &str = "wp-codebox/artifact-review/v1";
/// Earlier bundle that a run continued, and what that run changed in addition.
pub const FOLLOW_UP: &str = "wp-codebox/follow-up/v1";
/// Check results of a bundle.
pub const TEST_RESULTS: &str = "wp-codebox/test-results/v1";
/// Result of a bundle verification.
pub const BUNDLE_VERIFICATION: &str = "wp-codebox/artifact-bundle-verification/v1";
/// Result of checking whether a bundle's changes can be applied.
pub const BUNDLE_APPLY_PREFLIGHT: &str = "wp-codebox/artifact-bundle-apply-preflight/v1";
/// Approved changes of a bundle, as the host plugin that applies them receives them.
pub const BUNDLE_APPLY_PAYLOAD: &str = "wp-codebox/artifact-bundle-apply-payload/v1";
/// Result that the host plugin must return after it applied a bundle's changes.
pub const APPLY_RESULT: &str = "wp-codebox/apply-result/v1";
/// List of a bundle's files with their digests.
pub const RUNTIME_REFERENCE_MANIFEST: &str = "wp-codebox/runtime-reference-manifest/v1";
/// List of the bundle files that a replay of the run needs.
pub const RUNTIME_REPLAY_INDEX: &str = "wp-codebox/runtime-replay-reference-index/v1";
/// Predicate type of the bundle attestation.
pub const BUNDLE_ATTESTATION_PREDICATE: &str = "wp-codebox/bundle-attestation/v1";
/// Predicate type of the attestation of a bundle whose contents a browser uploaded. It differs from
/// that of other bundles, so that a verifier that does not know browser bundles refuses it.
pub const BROWSER_BUNDLE_ATTESTATION_PREDICATE: &str = "wp-codebox/browser-bundle-attestation/v1";
/// Isolation report of a run.
pub const ISOLATION_REPORT: &str = "wp-codebox/isolation-report/v1";
/// Attestation of a run's guests, stored in the bundle.
pub const RUN_ATTESTATION: &str = "wp-codebox/run-attestation/v1";
/// Result of the last self-test of a host, stored in the state directory.
pub const SELF_TEST: &str = "wp-codebox/self-test/v1";
/// Response of the egress bridge to a request that it denied.
pub const EGRESS_DENIED: &str = "wp-codebox/egress-denied/v1";
/// Start instructions of a well-known command-line agent.
pub const AGENT_PRESET: &str = "wp-codebox/agent-preset/v1";
/// Agent presets of an installation.
pub const AGENT_PRESET_LIST: &str = "wp-codebox/agent-preset-list/v1";
/// A sandbox that is kept running: its identity, state and end.
pub const SANDBOX: &str = "wp-codebox/sandbox/v1";
/// Sandboxes of a state directory.
pub const SANDBOX_LIST: &str = "wp-codebox/sandbox-list/v1";
/// Snapshot of a sandbox's state.
pub const SANDBOX_SNAPSHOT: &str = "wp-codebox/sandbox-snapshot/v1";
/// Snapshots of a state directory.
pub const SANDBOX_SNAPSHOT_LIST: &str = "wp-codebox/sandbox-snapshot-list/v1";
/// Result of removing a snapshot.
pub const SANDBOX_SNAPSHOT_REMOVAL: &str = "wp-codebox/sandbox-snapshot-removal/v1";
/// Profile from which sandboxes are created.
pub const SANDBOX_PROFILE: &str = "wp-codebox/sandbox-profile/v1";
/// Estimated resource use of a sandbox.
pub const SANDBOX_ESTIMATE: &str = "wp-codebox/sandbox-estimate/v1";
/// What an extension, a kind of sandbox, can do.
pub const EXTENSION_CAPABILITIES: &str = "wp-codebox/extension-capabilities/v1";
/// A host on which an extension can start sandboxes.
pub const HOST_RECORD: &str = "wp-codebox/host-record/v1";
/// The host that was chosen for a sandbox, with the reasons.
pub const ROUTE_DECISION: &str = "wp-codebox/route-decision/v1";
/// Prices of extensions.
pub const METER_PRICES: &str = "wp-codebox/meter-prices/v1";
/// Price of one sandbox for a duration.
pub const METER_QUOTE: &str = "wp-codebox/meter-quote/v1";
/// Resources that one sandbox used from its creation to its end.
pub const METER_USAGE: &str = "wp-codebox/meter-usage/v1";
/// One entry of the ledger of credits.
pub const LEDGER_ENTRY: &str = "wp-codebox/ledger-entry/v1";
/// Result of granting credits.
pub const LEDGER_GRANT: &str = "wp-codebox/ledger-grant/v1";
/// Balances of accounts.
pub const LEDGER_BALANCE: &str = "wp-codebox/ledger-balance/v1";
/// Result of verifying a ledger.
pub const LEDGER_VERIFICATION: &str = "wp-codebox/ledger-verification/v1";
/// A page of entries of the ledger.
pub const LEDGER_ENTRY_LIST: &str = "wp-codebox/ledger-entry-list/v1";
/// Result of setting up a message server for a cluster.
pub const CLUSTER_SETUP: &str = "wp-codebox/cluster-setup/v1";
/// What `cluster gc` removed.
pub const CLUSTER_COLLECTION: &str = "wp-codebox/cluster-collection/v1";
/// The cluster that this host uses: `cluster.json` in the state directory.
pub const CLUSTER_CONFIG: &str = "wp-codebox/cluster-config/v1";
/// Nodes of a cluster.
pub const CLUSTER_HOST_LIST: &str = "wp-codebox/cluster-host-list/v1";
/// Result of a command that saves or restores the state of a sandbox.
pub const RUNTIME_CHECKPOINT_RESULT: &str = "wp-codebox/runtime-checkpoint-result/v1";
/// Failure of a command that saves or restores the state of a sandbox.
pub const RUNTIME_CHECKPOINT_FAILURE: &str = "wp-codebox/runtime-checkpoint-failure/v1";
/// Catalogue of all registry commands.
pub const COMMAND_CATALOG: &str = "wp-codebox/command-catalog/v1";
/// Result of one registry command.
pub const RUNTIME_COMMAND_RESULT: &str = "wp-codebox/runtime-command-result/v1";
/// Result of a step that runs the agent of a recipe.
pub const AGENT_STEP_RESULT: &str = "wp-codebox/agent-step-result/v1";
/// Result of `command-agent-run`.
pub const COMMAND_AGENT_RUN: &str = "wp-codebox/command-agent-run/v1";
/// Request for a run, which a caller sends to the supervisor.
pub const RUN_REQUEST: &str = "wp-codebox/run-request/v1";
/// Result of a run, for its caller.
pub const RUN_RESULT: &str = "wp-codebox/run-result/v1";
/// Handle of a run that continues in the background.
pub const RUN_HANDLE: &str = "wp-codebox/run-handle/v1";
/// Stored state of a run.
pub const RUN: &str = "wp-codebox/run/v1";
/// Runs of a site.
pub const RUN_LIST: &str = "wp-codebox/run-list/v1";
/// One page of a run's event journal.
pub const RUN_EVENTS: &str = "wp-codebox/run-events/v1";
/// Reply to a cancellation.
pub const RUN_CANCELLATION: &str = "wp-codebox/run-cancellation/v1";
/// One run in the format of the run registry.
pub const RUN_REGISTRY_ENTRY: &str = "wp-codebox/run-registry-entry/v1";
/// One page of runs in the format of the run registry.
pub const RUN_REGISTRY: &str = "wp-codebox/run-registry/v1";
/// Bundle of a run, and its files.
pub const RUN_ARTIFACTS: &str = "wp-codebox/run-artifacts/v1";
/// Path of the control socket of a run.
pub const RUN_SOCKET: &str = "wp-codebox/run-socket/v1";
/// Mails that a run's guests sent.
pub const RUN_MAIL: &str = "wp-codebox/run-mail/v1";
/// State, phase and cleanup of a run.
pub const RUN_LIFECYCLE: &str = "wp-codebox/run-lifecycle/v1";
/// Result of a run, without host paths.
pub const RUNTIME_RUN_RESULT: &str = "wp-codebox/runtime-run-result/v1";
/// Effect of a cancellation, with the run's registry entry.
pub const RUN_CANCELLATION_REQUEST: &str = "wp-codebox/run-cancellation-request/v1";
/// Trace of an episode, a recorded sequence of steps in one sandbox.
pub const RUNTIME_EPISODE_TRACE: &str = "wp-codebox/runtime-episode-trace/v1";
/// Action of an episode: the request of one step.
pub const RUNTIME_EPISODE_ACTION: &str = "wp-codebox/runtime-episode-action/v1";
/// Observation of an episode: a part of the sandbox's state at one time.
pub const RUNTIME_EPISODE_OBSERVATION: &str = "wp-codebox/runtime-episode-observation/v1";
/// Snapshot of an episode: a recorded state of the sandbox.
pub const RUNTIME_EPISODE_SNAPSHOT: &str = "wp-codebox/runtime-episode-snapshot/v1";
/// One JSON Schema, or the input schema of a tool.
pub const JSON_SCHEMA: &str = "wp-codebox/json-schema/v1";
/// List of available schemas.
pub const JSON_SCHEMA_LIST: &str = "wp-codebox/json-schema-list/v1";
/// Failure of the command line in JSON mode.
pub const CLI_FAILURE: &str = "wp-codebox/cli-failure/v1";
/// Preview: address under which browsers of the host reach a sandbox's site.
pub const PREVIEW: &str = "wp-codebox/preview/v1";
/// Result of copying files into or out of a sandbox.
pub const SANDBOX_SYNC: &str = "wp-codebox/sandbox-sync/v1";
/// Objects that a garbage collection removed.
pub const GC: &str = "wp-codebox/gc/v1";
/// Settings of this host, each with the source of its value.
pub const CONFIG: &str = "wp-codebox/config/v1";
/// What a run changed: the changed files and the patch.
pub const RUN_DIFF: &str = "wp-codebox/run-diff/v1";
/// Runs that worked on one host directory, and whether the change of each was applied.
pub const DIRECTORY_LOG: &str = "wp-codebox/directory-log/v1";
/// Result of applying a change to a directory of this host.
pub const APPLIED_CHANGE: &str = "wp-codebox/applied-change/v1";
/// Result of undoing an applied change.
pub const UNDONE_CHANGE: &str = "wp-codebox/undone-change/v1";
/// WordPress core that a command installed into the cache of cores, or selected there.
pub const WORDPRESS_CORE: &str = "wp-codebox/wordpress-core/v1";
/// WordPress cores in the cache.
pub const WORDPRESS_CORE_LIST: &str = "wp-codebox/wordpress-core-list/v1";
/// Report of the doctor command.
pub const DOCTOR: &str = "wp-codebox/doctor/v1";
/// Tools that an agent may have.
pub const SANDBOX_TOOL_POLICY: &str = "wp-codebox/sandbox-tool-policy/v1";
/// Tool calls in a run.
pub const TOOL_CALL_TRANSCRIPT: &str = "wp-codebox/tool-call-transcript/v1";
/// Tools that the parent process serves.
pub const PARENT_TOOL_BRIDGE: &str = "wp-codebox/parent-tool-bridge/v1";
/// Request for a tool of the parent process.
pub const PARENT_TOOL_REQUEST: &str = "wp-codebox/parent-tool-request/v1";
/// Result of a tool of the parent process.
pub const PARENT_TOOL_RESULT: &str = "wp-codebox/parent-tool-result/v1";
/// Definition of a WASI tool.
pub const WASI_TOOL: &str = "wp-codebox/wasi-tool/v1";
/// The WASI tools that a run called, in its bundle.
pub const WASI_TOOLS: &str = "wp-codebox/wasi-tools/v1";
