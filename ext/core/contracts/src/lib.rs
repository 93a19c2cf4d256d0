//! Data shapes, schema ids, stable error codes and limits that the other crates share.
//!
//! This crate does no I/O, reads no environment variables and depends on no backend. Types that
//! cross a process border or are stored on disk implement `serde`; other processes and stored
//! files depend on their JSON names. The JSON Schemas under `abilities/schemas/` describe the same
//! shapes for PHP.
#![forbid(unsafe_code)]

// The derive macro names this crate by this name, here as elsewhere.
extern crate self as wp_codebox_contracts;

mod activation;
mod agent;
mod agent_preset;
mod attestation;
mod bundle;
mod changes;
mod checked_text;
mod cluster_names;
mod code;
mod coded_error;
mod command;
mod death;
mod episode;
mod event;
mod follow_up;
mod frame;
mod ids;
mod isolation;
mod json_input;
mod kernel;
mod limits;
mod live;
mod mount;
mod outcome;
mod parent_tool;
mod placement;
mod plan;
mod policy;
mod projection;
mod registry;
mod request_field;
mod route;
mod run;
mod run_lifecycle;
mod run_request;
pub mod schema_id;
mod seed;
mod server_url;
mod service;
mod share;
mod site_change;
mod spawner;
mod string_enum;
mod summary;
mod task;
mod task_shape;
mod task_spec;
pub mod terminal_text;
mod wasi_tool;
mod workflow;

pub use activation::{Activation, ActivationKind};
pub use agent::{
    Agent, AgentBudget, AgentBundle, AgentCommand, BundleConflict, Component, ComponentLoad,
    ModelAgent, ModelApi, ModelEndpoint, ModelPrices, ParentTool, ParentToolBridge, PresetAgent,
    ReadinessProbe, RuntimeTask, SandboxToolPolicy, ToolLocation, ToolRule, ToolRuntime, ToolScope,
    ToolVisibility,
};
pub use agent_preset::{AgentPreset, GoalDelivery, PresetResult, PresetStep};
pub use attestation::{AttestedNetwork, GuestObservation, GuestPhase, RunAttestation};
pub use bundle::{
    BundleOrigin, ContentDigest, DigestAlgorithm, FileDigest, Manifest, ManifestFile,
    RuntimeEnvironment, RuntimeInfo, Violation, ViolationCode,
};
pub use changes::{ChangeKind, ChangedFile, ChangedFiles, EntryType};
pub use cluster_names::{Capability, NodeName, Priority, SubmitterName};
pub use code::{ErrorBody, ErrorCode, ErrorKind};
pub use coded_error::CodedError;
pub use command::{CommandCall, CommandResult, CommandStatus};
pub use death::{DeathFailure, GuestDeath, GuestProcess};
pub use episode::{
    ActionKind, ActionRequest, EpisodeAction, EpisodeExecution, EpisodeObservation, EpisodeRecord,
    EpisodeReset, EpisodeSnapshot, EpisodeStep, EpisodeTrace, ObservationRedaction,
    ObservationSpec, ObservationType, SnapshotSemantics, TRACE_VERSION, TraceRef, TraceRefKind,
};
pub use event::{EventType, LifecycleEvent, OutputStream};
pub use follow_up::{FollowUp, FollowUpOf, FollowUpRecord, MAX_CHAIN, ReviewComment, TaskBudget};
pub use frame::{Frame, MAX_FRAME_BYTES, PROTOCOL_VERSION};
pub use ids::{
    ArchitectureName, BundleId, ExecutionId, ExtensionId, HostId, InvalidId, RegionName, RunId,
    Sha256Hex, SiteId, WasiToolId, hex,
};
pub use isolation::{AxisReport, Enforcement, IsolationAxis, IsolationLevel, IsolationReport};
pub use json_input::{WholeNumbers, json_number, parse_json};
pub use kernel::{
    KERNEL_MECHANISMS, KernelMechanism, KernelVersion, LANDLOCK_TRUNCATE, MINIMUM_KERNEL,
    TMPFS_USER_XATTRS,
};
pub use limits::{
    AboveCeiling, CPU_MILLI, DEFAULT_MAX_LIMITS, FIXED_LIMITS, FixedLimits, LIMIT_FIELDS,
    LimitError, LimitField, Limits, LimitsRequest,
};
pub use live::{
    CONTROL_SOCKET, Disconnect, EventProjection, EventsRequest, Follow, Hold, HoldEnd,
    LIVE_PROTOCOL, LiveCall, LiveEnd, LiveExec, LiveInput, LiveReply, LiveRequest, MAX_LIVE_LINE,
    PreviewLogin, PreviewRequest, SandboxIdentity, SandboxScope, SandboxSnapshot, SnapshotLayer,
    SnapshotMount, SnapshotRequest, SnapshotTemplate, StdinFlow, SyncIn, SyncOut, TerminalSize,
    unknown_member,
};
pub use mount::{
    GUEST_SYSTEM, GitChoice, GitView, GuestPath, InvalidGuestPath, LeftOutEntry, LeftOutReport,
    MountAccess, MountReport, MountRequest, MountView, StagedFile,
};
pub use outcome::{CompletionStatus, NextAction, Outcome, RecoveredChanges, SessionStatus};
pub use parent_tool::{
    ParentToolAuthorization, ParentToolError, ParentToolOperation, ParentToolRequest,
    ParentToolResult, ParentToolSession, ParentToolStatus,
};
pub use placement::{
    ClusterAccess, ClusterConfig, ClusterPlacement, DEFAULT_CAPABILITY, DEFAULT_MAX_TRIES,
    DEFAULT_PRIORITY, NodeKeyRow, PlacementChoice, RunPlacement,
};
pub use plan::{
    BindSource, CallSet, EgressSockets, ExecExit, ExecLimits, ExecRequest, ExecTerminal,
    GuestObjects, GuestReply, GuestRequest, HostSource, InodeId, LaunchMount, LaunchPlan,
    LaunchPurpose, LauncherFd, PLAN_VERSION, PlanIdentity, PlanScratch, ScratchSize, TmpfsEntry,
};
pub use policy::{
    Approvals, EgressRule, FilesystemPolicy, NetworkPolicy, NetworkPosture, NetworkRules,
    PolicyIssue, RuntimePolicy, SecretsPolicy, TlsMode,
};
pub use projection::{
    AgentTaskError, AgentTaskFacts, BusEvent, BusEventType, BusProjection, SessionState, SseError,
    SseFrame, agent_task_row, agent_task_run, agent_task_started, last_event_id, project_to_bus,
    sandbox_session, session_id, task_document,
};
pub use registry::{
    CancelDetails, CancelEffect, RunCancellation, RunEvents, RunHandle, RunList, RunStatus, RunView,
};
pub use request_field::{REQUEST_FIELDS, RequestField, RequestFieldUse};
pub use route::{
    BundleTrust, ISOLATION_CLASSES, IsolationClass, NetworkControl, NetworkNeed, Persistence,
    Placement, Route, RouteConstraints, RoutePolicy, RouteRequest, RouteStrategy, SandboxNeeds,
};
pub use run::{
    CheckReport, CheckStatus, Cost, DEFAULT_MAX_RUNS, GroupUse, ModelUsage, OuterSandbox,
    OuterSandboxKind, OuterSandboxNeed, RunArtifacts, RunMode, RunPaths, RunResult, SITE_ORIGIN,
    SandboxAudit, SecretBinding, TestCounts, check_results,
};
pub use run_lifecycle::{
    CancellationNote, LifecycleCleanup, LifecycleCleanupStatus, RecordedCancellation,
    RunArtifactList, RunBundle, RunCancellationRequest, RunLifecycle, RunObservations, RunPhase,
    RunProgress, RunRegistryEntry, RunRegistryPage, RunState, RunTransitionError, RuntimeRunResult,
    ScratchState,
};
pub use run_request::RunRequest;
pub use seed::ResolvedSeed;
pub use server_url::ServerUrl;
pub use service::{
    DatabaseEngine, ForeignKeyTargetPolicy, OutputNames, RootAuthentication, Service,
    ServiceConfiguration, ServiceKind, ServiceProvider, ServiceStorage,
};
pub use share::{InvalidRequester, Requester, RequesterShare, ShareChoice, SpendCaps};
pub use site_change::{
    GitPerson, HealthPage, HealthPlan, HealthReport, HealthStatus, PageHealth, SiteAction,
    SiteApply, SiteChangeMessage, SiteChangeRequest, SiteChangeResult, SiteChangeStatus,
    SiteCommit, SiteConflict, SiteRollBack,
};
pub use spawner::{
    GuestIds, IdentityChoice, InvalidGuestIds, KernelIds, NEWGIDMAP, NEWUIDMAP, SCRATCH,
    SPAWNER_ROLE, STORE, SpawnerPlan, SpawnerReply, SpawnerRequest, SpawnerScratch, SpawnerView,
    ViewAccess,
};
pub use summary::{ChangeCounts, RunSummary, SummaryArgs, SummaryCode};
pub use task::{RunFacts, TaskInput, TaskTexts};
pub use task_shape::{Member, Need, Shape};
pub use task_spec::{TASK_FIELDS, TaskAuthority, TaskField, TaskSpec};
pub use wasi_tool::{
    MAX_WASI_DEFINITION_BYTES, MAX_WASI_EXIT_STATUS, WasiFiles, WasiGrant, WasiLimits, WasiModule,
    WasiTool, WasiToolError,
};
pub use workflow::{
    CollectedFile, GeneratedDirectory, GeneratedFrom, OnFailure, Workflow, WorkflowStep,
    WorkspaceRule, WrittenFile,
};
pub use wp_codebox_error_code_derive::CodedError;
