//! Stable error codes: one table maps each code to its kind, HTTP status and exit status.
//!
//! A published code never changes its meaning. Every error enum of the other crates maps each
//! variant to one of these codes, see [`CodedError`](crate::CodedError).

use serde::{Deserialize, Serialize};

/// Class of an error by what the caller can do about it; it selects the PHP exception class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The input is wrong: change it and call again.
    InvalidInput,
    /// The policy or a permission check refuses the call.
    Denied,
    /// The named object does not exist.
    NotFound,
    /// The state changed since the caller last read it: read it again, then decide.
    Conflict,
    /// A bundle or signature fails verification.
    Integrity,
    /// The run reached one of its limits.
    Limit,
    /// This host lacks something that the call needs: fix the host.
    Unavailable,
    /// A defect of this program, or an I/O failure.
    Internal,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $kind:ident, $http:literal, $exit:literal;)+) => {
        /// A stable error code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum ErrorCode { $($(#[$doc])* #[serde(rename = $text)] $variant,)+ }

        impl ErrorCode {
            /// Every code, in table order.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$variant,)+];
            /// Returns the code as its stable text.
            #[must_use]
            pub const fn as_str(self) -> &'static str { match self { $(ErrorCode::$variant => $text,)+ } }
            /// Returns the class of the error, which says what the caller can do about it.
            #[must_use]
            pub const fn kind(self) -> ErrorKind { match self { $(ErrorCode::$variant => ErrorKind::$kind,)+ } }
            /// Returns the HTTP status for `WP_Error` `data.status`.
            #[must_use]
            pub const fn http_status(self) -> u16 { match self { $(ErrorCode::$variant => $http,)+ } }
            /// Returns the process exit status: 1 failure, 3 incomplete or rejected work, 124
            /// timeout, 125 start failed, 126 denied by policy, 130 cancelled.
            #[must_use]
            pub const fn exit_status(self) -> u8 { match self { $(ErrorCode::$variant => $exit,)+ } }
        }
    };
}

codes! {
    /// The task has no goal.
    TaskMissing = "wp_codebox_task_missing", InvalidInput, 400, 1;
    /// The task contains `code` or `code_file`; a task cannot carry raw code.
    RawCodeForbidden = "wp_codebox_raw_code_forbidden", InvalidInput, 400, 1;
    /// The input does not match its schema.
    InputInvalid = "wp_codebox_input_invalid", InvalidInput, 400, 1;
    /// A mount row is malformed.
    MountInvalid = "wp_codebox_mount_invalid", InvalidInput, 400, 1;
    /// A mount source is missing or not a directory.
    MountSourceInvalid = "wp_codebox_mount_source_invalid", InvalidInput, 400, 1;
    /// A mount source is on the deny list or outside the allowed roots.
    MountDenied = "wp_codebox_mount_denied", Denied, 403, 126;
    /// A mount source contains a FIFO, socket or device.
    MountSpecialFile = "wp_codebox_mount_special_file", InvalidInput, 400, 1;
    /// The supervisor cannot read a mount source.
    MountUnreadable = "wp_codebox_mount_unreadable", InvalidInput, 400, 1;
    /// A mount source has more entries or bytes than allowed.
    MountTooLarge = "wp_codebox_mount_too_large", InvalidInput, 413, 1;
    /// The guest cannot get the git repository that was requested for a mount.
    GitUnavailable = "wp_codebox_git_unavailable", InvalidInput, 400, 1;
    /// A mount target is not a normalised path below `/workspace` or `/wordpress/wp-content`.
    MountTargetInvalid = "wp_codebox_mount_target_invalid", InvalidInput, 400, 1;
    /// Two mount targets overlap.
    MountTargetOverlap = "wp_codebox_mount_target_overlap", InvalidInput, 400, 1;
    /// The task names no code to work on: no plugin, no theme and no mount.
    MountMissing = "wp_codebox_mount_missing", InvalidInput, 400, 1;
    /// A limit is outside its range.
    LimitInvalid = "wp_codebox_limit_invalid", InvalidInput, 400, 1;
    /// No agent was given and none is configured.
    AgentMissing = "wp_codebox_agent_missing", InvalidInput, 400, 2;
    /// The agent's program does not exist in the guest.
    AgentProgramMissing = "wp_codebox_agent_program_missing", InvalidInput, 400, 125;
    /// No model was given and none is configured.
    ModelMissing = "wp_codebox_model_missing", InvalidInput, 400, 1;
    /// The model's name, base URL or API is not accepted.
    ModelInvalid = "wp_codebox_model_invalid", InvalidInput, 400, 1;
    /// A budget of the agent is outside its range.
    BudgetInvalid = "wp_codebox_budget_invalid", InvalidInput, 400, 1;
    /// The agent used up a budget; the bundle contains its work so far.
    BudgetExhausted = "wp_codebox_budget_exhausted", Limit, 507, 3;
    /// The agent repeated itself without progress; the bundle contains its work so far.
    AgentNoProgress = "wp_codebox_agent_no_progress", Limit, 507, 3;
    /// The agent reported that it cannot continue.
    AgentBlocked = "wp_codebox_agent_blocked", Conflict, 409, 3;
    /// The model's provider is unreachable or returned a malformed response.
    ProviderUnavailable = "wp_codebox_provider_unavailable", Unavailable, 502, 1;
    /// The model's provider rejected the request because of key, model name or content.
    ProviderRejected = "wp_codebox_provider_rejected", Denied, 502, 3;
    /// Credentials of a provider are missing or denied on this site.
    ProviderCredentialsUnavailable = "wp_codebox_provider_credentials_unavailable", Denied, 403, 126;
    /// Credentials of a connector are missing or denied on this site.
    ConnectorCredentialsUnavailable = "wp_codebox_connector_credentials_unavailable", Denied, 403, 126;
    /// The tool policy is malformed.
    SandboxToolPolicyInvalid = "wp_codebox_sandbox_tool_policy_invalid", InvalidInput, 400, 1;
    /// The tool policy does not allow the tool.
    ToolNotAllowed = "wp_codebox_tool_not_allowed", Denied, 403, 126;
    /// A component cannot be mounted, loaded or activated, or its readiness check fails.
    ComponentUnavailable = "wp_codebox_component_unavailable", Unavailable, 422, 125;
    /// The path of a component is not a directory.
    ComponentPathMissing = "wp_codebox_component_path_missing", InvalidInput, 400, 1;
    /// The runtime task is malformed, or its ability is not registered in the guest's
    /// WordPress.
    RuntimeTaskRequestInvalid = "wp_codebox_runtime_task_request_invalid", InvalidInput, 400, 1;
    /// The ability in the guest's WordPress returned an error.
    RuntimeTaskFailed = "wp_codebox_runtime_task_failed", Internal, 500, 1;
    /// The guest could not import an agent bundle.
    AgentBundleImportFailed = "wp_codebox_agent_bundle_import_failed", Internal, 500, 1;
    /// No component in the guest imports agent bundles.
    AgentBundleImporterUnavailable = "wp_codebox_agent_bundle_importer_unavailable", Unavailable, 422, 125;
    /// The policy document is malformed.
    PolicyInvalid = "runtime-policy-invalid", InvalidInput, 400, 126;
    /// The policy does not allow this command.
    CommandDisallowed = "runtime-command-disallowed", Denied, 403, 126;
    /// The policy demands something that this backend cannot enforce.
    PolicyUnenforceable = "wp_codebox_policy_unenforceable", Denied, 422, 126;
    /// The command id is not in the registry.
    CommandUnknown = "wp_codebox_command_unknown", InvalidInput, 400, 1;
    /// The registry lists the command, but this backend does not support it; the message says
    /// why.
    CommandUnsupported = "wp_codebox_command_unsupported", Unavailable, 422, 1;
    /// A command ran and failed; `data.reason` is the error code that its program reported, and the
    /// message is the program's error text.
    CommandFailed = "wp_codebox_command_failed", Conflict, 409, 1;
    /// A recipe is malformed or asks for something impossible; `data.issues` lists every
    /// reason.
    RecipeInvalid = "wp_codebox_recipe_invalid", InvalidInput, 400, 1;
    /// A step of a recipe failed.
    StepFailed = "wp_codebox_step_failed", Conflict, 409, 1;
    /// A file that a recipe wants to store in the bundle is missing or has the wrong type.
    CollectionFailed = "wp_codebox_collection_failed", Conflict, 409, 1;
    /// A profile is malformed; `data.issues` lists every reason.
    ProfileInvalid = "wp_codebox_profile_invalid", InvalidInput, 400, 1;
    /// No sandbox profile has this id.
    ProfileNotFound = "wp_codebox_profile_not_found", NotFound, 404, 1;
    /// No host can run a sandbox of this profile, whatever its load is; `data.decision` lists the
    /// reasons.
    RouteUnsatisfied = "wp_codebox_route_unsatisfied", InvalidInput, 422, 125;
    /// Every host that can run a sandbox of this profile is full, draining or down.
    RouteNoCapacity = "wp_codebox_route_no_capacity", Unavailable, 503, 125;
    /// No sandbox has this id.
    SandboxNotFound = "wp_codebox_sandbox_not_found", NotFound, 404, 1;
    /// The run is not a held sandbox (a guest that stays alive for requests), or its sandbox has
    /// ended, so the run does not accept the request.
    SandboxNotHeld = "wp_codebox_sandbox_not_held", Conflict, 409, 1;
    /// A snapshot can be neither created nor restored while a program runs in the sandbox.
    SandboxInUse = "wp_codebox_sandbox_in_use", Conflict, 409, 1;
    /// No snapshot has this id or name.
    SnapshotNotFound = "wp_codebox_snapshot_not_found", NotFound, 404, 1;
    /// A snapshot's digests do not match, or the snapshot was made with a site, WordPress, PHP or
    /// mounts that differ from those of the sandbox.
    SnapshotInvalid = "wp_codebox_snapshot_invalid", Integrity, 400, 1;
    /// A file to replace does not have the digest that the client expects, so the file has changed
    /// since the client read it.
    SyncConflict = "wp_codebox_sync_conflict", Conflict, 409, 1;
    /// A preview cannot be opened; the message says why.
    PreviewUnavailable = "wp_codebox_preview_unavailable", Unavailable, 503, 1;
    /// The host has no browser, or the browser cannot run on this host.
    BrowserUnavailable = "wp_codebox_browser_unavailable", Unavailable, 503, 125;
    /// No ability has this name.
    ApiAbilityNotSupported = "wp_codebox_api_ability_not_supported", NotFound, 404, 1;
    /// Files that browser sandboxes need are not installed, or are damaged.
    BrowserAssetsMissing = "wp_codebox_browser_assets_missing", Unavailable, 503, 1;
    /// The given archive is not the one with this release's files for browser sandboxes.
    BrowserAssetsInvalid = "wp_codebox_browser_assets_invalid", InvalidInput, 400, 1;
    /// The web host from which browser sandboxes are to be loaded cannot isolate them from the
    /// site.
    BrowserHostInvalid = "wp_codebox_browser_host_invalid", Unavailable, 503, 1;
    /// PHP has no zip module, so no code can be packed for a browser sandbox.
    BrowserArchiveUnavailable = "wp_codebox_browser_archive_unavailable", Unavailable, 503, 1;
    /// The code is too large for a browser sandbox.
    BrowserSeedTooLarge = "wp_codebox_browser_seed_too_large", InvalidInput, 413, 1;
    /// PHP cannot write to the directory for files of browser sandboxes.
    BrowserStorageFailed = "wp_codebox_browser_storage_failed", Internal, 500, 1;
    /// The files of browser sandboxes need more space than the site allows.
    BrowserStorageFull = "wp_codebox_browser_storage_full", Limit, 507, 1;
    /// A file of a browser sandbox is not stored any more.
    BrowserFileMissing = "wp_codebox_browser_file_missing", NotFound, 404, 1;
    /// A link to a file of a browser sandbox was not made by this site, or was altered.
    BrowserLinkInvalid = "wp_codebox_browser_link_invalid", Denied, 403, 126;
    /// A link to a file of a browser sandbox has expired.
    BrowserLinkExpired = "wp_codebox_browser_link_expired", Denied, 410, 126;
    /// A link to a file of a browser sandbox belongs to another user or site.
    BrowserLinkForeign = "wp_codebox_browser_link_foreign", Denied, 403, 126;
    /// The task names a runtime profile that this site does not have.
    RuntimeProfileUnresolved = "wp_codebox_runtime_profile_unresolved", InvalidInput, 400, 1;
    /// The caller has no permission for this call.
    Forbidden = "wp_codebox_forbidden", Denied, 403, 126;
    /// A limit is reached, e.g. of concurrent runs or waiting requests, or a kernel resource is
    /// exhausted; the same call may succeed later.
    Busy = "wp_codebox_busy", Unavailable, 429, 125;
    /// The run reached its wall clock deadline.
    RunTimeout = "wp_codebox_run_timeout", Limit, 504, 124;
    /// The run reached its memory limit.
    MemoryLimit = "wp_codebox_memory_limit", Limit, 507, 1;
    /// The run reached its disk limit.
    DiskLimit = "wp_codebox_disk_limit", Limit, 507, 1;
    /// The run reached its output limit.
    OutputLimit = "wp_codebox_output_limit", Limit, 507, 1;
    /// The changed files are larger than a bundle may be.
    CaptureLimit = "wp_codebox_capture_limit", Limit, 507, 1;
    /// The run was cancelled.
    RunCancelled = "wp_codebox_run_cancelled", Conflict, 409, 130;
    /// The run failed for a reason that has no code of its own; the message gives the reason.
    RunFailed = "wp_codebox_run_failed", Internal, 500, 1;
    /// No run has this id.
    RunNotFound = "wp_codebox_run_not_found", NotFound, 404, 1;
    /// More than one run id begins with this prefix.
    RunAmbiguous = "wp_codebox_run_ambiguous", Conflict, 409, 1;
    /// A batch has no tasks.
    TasksMissing = "wp_codebox_tasks_missing", InvalidInput, 400, 1;
    /// A fan-out has no workers.
    FanoutWorkersMissing = "wp_codebox_fanout_workers_missing", InvalidInput, 400, 1;
    /// A worker is not an object, or has unknown fields.
    FanoutWorkerInvalid = "wp_codebox_fanout_worker_invalid", InvalidInput, 400, 1;
    /// A worker id is missing or malformed.
    FanoutWorkerIdInvalid = "wp_codebox_fanout_worker_id_invalid", InvalidInput, 400, 1;
    /// Two workers have the same id.
    FanoutWorkerIdDuplicate = "wp_codebox_fanout_worker_id_duplicate", InvalidInput, 400, 1;
    /// A worker has no goal.
    FanoutWorkerGoalMissing = "wp_codebox_fanout_worker_goal_missing", InvalidInput, 400, 1;
    /// A worker depends on an unknown worker or on itself, or dependencies form a cycle.
    FanoutWorkerDependencyInvalid = "wp_codebox_fanout_worker_dependency_invalid", InvalidInput, 400, 1;
    /// The concurrency is outside its range.
    FanoutConcurrencyInvalid = "wp_codebox_fanout_concurrency_invalid", InvalidInput, 400, 1;
    /// The sandbox could not start.
    SandboxStartFailed = "wp_codebox_sandbox_start_failed", Unavailable, 503, 125;
    /// A service of the guest, such as its database, ended while the guest needed it.
    ServiceFailed = "wp_codebox_service_failed", Unavailable, 503, 1;
    /// This host cannot provide the isolation that the policy demands.
    IsolationUnavailable = "wp_codebox_isolation_unavailable", Unavailable, 503, 125;
    /// All kernel uids reserved for guests are in use.
    GuestIdsExhausted = "wp_codebox_guest_ids_exhausted", Unavailable, 503, 125;
    /// The process wrapper, a sandbox program around the launcher that the run requires, cannot be
    /// started.
    SandboxWrapperMissing = "wp_codebox_sandbox_wrapper_missing", Unavailable, 503, 125;
    /// The definition of a WASI tool does not match its schema.
    WasiDefinitionInvalid = "wp_codebox_wasi_definition_invalid", InvalidInput, 400, 1;
    /// The module of a WASI tool is not the one that its definition names.
    WasiDigestMismatch = "wp_codebox_wasi_digest_mismatch", Integrity, 409, 1;
    /// The file is neither a WASI preview 1 command module nor a component of the world
    /// `wasi:cli/command`.
    WasiModuleInvalid = "wp_codebox_wasi_module_invalid", InvalidInput, 400, 1;
    /// The module of a WASI tool imports a function that it is not granted.
    WasiImportRefused = "wp_codebox_wasi_import_refused", Denied, 403, 126;
    /// The compiled code of a WASI tool cannot be trusted, or belongs to another module or runner.
    WasiCompiledRefused = "wp_codebox_wasi_compiled_refused", Integrity, 409, 1;
    /// A directory for a WASI tool cannot be opened, or the tool's definition allows no directory.
    WasiDirectoryRefused = "wp_codebox_wasi_directory_refused", InvalidInput, 400, 1;
    /// A WASI tool has used up its fuel, the limit of the instructions that it may execute.
    WasiFuelExhausted = "wp_codebox_wasi_fuel_exhausted", Limit, 507, 1;
    /// A WASI tool needs more memory than its definition allows.
    WasiMemoryExceeded = "wp_codebox_wasi_memory_exceeded", Limit, 507, 1;
    /// A WASI tool did not end before its deadline.
    WasiDeadline = "wp_codebox_wasi_deadline", Limit, 504, 124;
    /// A WASI tool wrote more output than its definition allows.
    WasiOutputTooLarge = "wp_codebox_wasi_output_too_large", Limit, 507, 1;
    /// A WASI tool ended by a trap, such as an access outside its memory.
    WasiTrap = "wp_codebox_wasi_trap", Internal, 502, 1;
    /// A WASI tool ended with an exit status above 123.
    WasiExitInvalid = "wp_codebox_wasi_exit_invalid", Internal, 502, 1;
    /// The runner of WASI tools could not read or write a file of its own.
    WasiRunnerFailed = "wp_codebox_wasi_runner_failed", Internal, 500, 125;
    /// The program that runs WASI tools is not installed on this host.
    WasiRunnerMissing = "wp_codebox_wasi_runner_missing", Unavailable, 503, 125;
    /// No WASI tool with this id is registered.
    WasiToolUnknown = "wp_codebox_wasi_tool_unknown", NotFound, 404, 1;
    /// The id of a WASI tool already names another tool.
    WasiToolTaken = "wp_codebox_wasi_tool_taken", Conflict, 409, 1;
    /// A registered WASI tool was changed outside of its registry, or other users could change it.
    WasiToolUntrusted = "wp_codebox_wasi_tool_untrusted", Integrity, 409, 1;
    /// The registry of WASI tools cannot be read or written.
    WasiRegistryFailed = "wp_codebox_wasi_registry_failed", Internal, 500, 125;
    /// The message server of a cluster cannot be reached.
    ClusterUnreachable = "wp_codebox_cluster_unreachable", Unavailable, 503, 125;
    /// The account may not use this part of the message server.
    ClusterDenied = "wp_codebox_cluster_denied", Denied, 403, 126;
    /// The streams and buckets of a cluster do not exist on the message server.
    ClusterNotSetUp = "wp_codebox_cluster_not_set_up", Unavailable, 503, 125;
    /// The operator of this host has configured no cluster.
    ClusterNotConfigured = "wp_codebox_cluster_not_configured", Unavailable, 503, 125;
    /// The message server lacks functions that a cluster needs.
    ClusterServerTooOld = "wp_codebox_cluster_server_too_old", Unavailable, 503, 125;
    /// The message server accepts requests with members that it does not know.
    ClusterServerNotStrict = "wp_codebox_cluster_server_not_strict", Unavailable, 503, 125;
    /// A stream, bucket or disk of the message server is full.
    ClusterFull = "wp_codebox_cluster_full", Limit, 507, 125;
    /// An input or result is larger than the message server may store.
    ClusterObjectTooLarge = "wp_codebox_cluster_object_too_large", Limit, 413, 1;
    /// The call contradicts the state of the cluster: for example, the idempotency key belongs to
    /// another task, or another process runs as this node.
    ClusterConflict = "wp_codebox_cluster_conflict", Conflict, 409, 1;
    /// The message server has no such run or object.
    ClusterMissing = "wp_codebox_cluster_missing", NotFound, 404, 1;
    /// A value on the message server cannot be read by this version.
    ClusterUnreadable = "wp_codebox_cluster_unreadable", Integrity, 409, 125;
    /// Every node that claimed the run died or lost its connection, and no other node may try it.
    ClusterTriesExhausted = "wp_codebox_cluster_tries_exhausted", Internal, 502, 1;
    /// The result of a node does not belong to the task, or its bundle is not valid.
    ClusterResultInvalid = "wp_codebox_cluster_result_invalid", Integrity, 409, 1;
    /// The result is signed by a node whose key the submitter does not trust.
    ClusterNodeUntrusted = "wp_codebox_cluster_node_untrusted", Integrity, 409, 1;
    /// A part of the task cannot be sent to another host.
    PlacementUnsupported = "wp_codebox_placement_unsupported", InvalidInput, 400, 1;
    /// The process that has the secrets of the run does not answer.
    SecretSourceGone = "wp_codebox_secret_source_gone", Unavailable, 503, 125;
    /// The network policy denies a request from the guest.
    EgressDenied = "wp_codebox_egress_denied", Denied, 403, 126;
    /// The network policy allowed a request from the guest, but the request failed.
    EgressFailed = "wp_codebox_egress_failed", Unavailable, 502, 1;
    /// The egress bridge could not start.
    EgressUnavailable = "wp_codebox_egress_unavailable", Unavailable, 503, 125;
    /// A secret of the run is missing or malformed, or names no network host to which its value may
    /// be sent.
    SecretInvalid = "wp_codebox_secret_invalid", InvalidInput, 400, 1;
    /// The native extension is not loaded.
    ExtensionMissing = "wp_codebox_extension_missing", Unavailable, 503, 125;
    /// The native extension and the plugin have incompatible contract versions.
    ExtensionStale = "wp_codebox_extension_stale", Unavailable, 503, 125;
    /// A setting of the extension is missing or invalid.
    ConfigInvalid = "wp_codebox_config_invalid", Unavailable, 503, 125;
    /// The state directory is inside WordPress, has a wrong owner or permissions that are too open,
    /// or cannot be read or written.
    StateDirInvalid = "wp_codebox_state_dir_invalid", Unavailable, 503, 125;
    /// The supervisor could not be started or exited early.
    RunnerUnavailable = "wp_codebox_runner_unavailable", Unavailable, 503, 125;
    /// No WordPress core is available: it is not installed, or it cannot be downloaded or stored.
    WordpressUnavailable = "wp_codebox_wordpress_unavailable", Unavailable, 503, 125;
    /// An archive or directory contains no WordPress core, or a core whose files differ from the
    /// published ones.
    WordpressInvalid = "wp_codebox_wordpress_invalid", Integrity, 400, 1;
    /// The template, which is the installed WordPress from which guests start, could not be built.
    TemplateFailed = "wp_codebox_template_failed", Unavailable, 503, 125;
    /// The bundle could not be written; the message says where the changes are stored.
    BundleWriteFailed = "wp_codebox_bundle_write_failed", Internal, 507, 1;
    /// The agent's changes failed a check.
    CheckFailed = "wp_codebox_check_failed", Conflict, 409, 3;
    /// The patch contains a known secret.
    SecretInPatch = "wp_codebox_secret_in_patch", Denied, 422, 3;
    /// The mount source changed while the run used it.
    BaselineChanged = "wp_codebox_baseline_changed", Conflict, 409, 1;
    /// A file that an earlier bundle changed differs from its state before that change, so a run
    /// cannot continue the bundle.
    BaseChanged = "wp_codebox_base_changed", Conflict, 409, 1;
    /// The call names no artifact bundle.
    ArtifactIdMissing = "wp_codebox_artifact_id_missing", InvalidInput, 400, 1;
    /// No bundle has this id.
    ArtifactNotFound = "wp_codebox_artifact_not_found", NotFound, 404, 1;
    /// More than one bundle matches this id or prefix.
    ArtifactAmbiguous = "wp_codebox_artifact_ambiguous", Conflict, 409, 1;
    /// The name of a stored bundle leads out of the artifacts directory, e.g. through a symbolic
    /// link, or a source to import lies outside the directories that the site may read.
    ArtifactOutsideRoot = "wp_codebox_artifact_outside_root", Denied, 403, 1;
    /// The verification of the bundle found violations.
    ArtifactVerificationFailed = "wp_codebox_artifact_verification_failed", Integrity, 400, 1;
    /// No key that this site trusts has signed the bundle.
    ArtifactUntrusted = "wp_codebox_artifact_untrusted", Integrity, 403, 1;
    /// The bundle changed after it was reviewed.
    ArtifactChanged = "wp_codebox_artifact_changed", Conflict, 409, 1;
    /// The bundle is too large for one response.
    ArtifactTooLarge = "wp_codebox_artifact_too_large", InvalidInput, 413, 1;
    /// The call names no archive or directory to import.
    ArtifactImportSourceMissing = "wp_codebox_artifact_import_source_missing", InvalidInput, 400, 1;
    /// The import source is not a valid bundle: unreadable, malicious, or failing verification.
    ArtifactImportSourceInvalid = "wp_codebox_artifact_import_source_invalid", Integrity, 400, 1;
    /// The id of the imported bundle is not the expected one.
    ArtifactImportIdMismatch = "wp_codebox_artifact_import_id_mismatch", Conflict, 409, 1;
    /// The content digest of the imported bundle is not the expected one.
    ArtifactImportDigestMismatch = "wp_codebox_artifact_import_digest_mismatch", Conflict, 409, 1;
    /// The run of the imported bundle already has a different stored bundle.
    ArtifactImportConflict = "wp_codebox_artifact_import_conflict", Conflict, 409, 1;
    /// The imported bundle could not be stored.
    ArtifactImportCopyFailed = "wp_codebox_artifact_import_copy_failed", Internal, 507, 1;
    /// A browser artifact has no file and deletes none.
    BrowserArtifactFilesMissing = "wp_codebox_browser_artifact_files_missing", InvalidInput, 400, 1;
    /// A file of a browser artifact is malformed, e.g. has no content.
    BrowserArtifactFileInvalid = "wp_codebox_browser_artifact_file_invalid", InvalidInput, 400, 1;
    /// The path of a file of a browser artifact is not allowed, e.g. leads out of its directory.
    BrowserArtifactPathInvalid = "wp_codebox_browser_artifact_path_invalid", InvalidInput, 400, 1;
    /// Two paths of a browser artifact are equal, at least on a file system that ignores case.
    BrowserArtifactPathDuplicate = "wp_codebox_browser_artifact_path_duplicate", InvalidInput, 400, 1;
    /// The encoding of a file of a browser artifact is neither utf-8 nor base64.
    BrowserArtifactEncodingInvalid = "wp_codebox_browser_artifact_encoding_invalid", InvalidInput, 400, 1;
    /// The content of a file of a browser artifact is not base64.
    BrowserArtifactBase64Invalid = "wp_codebox_browser_artifact_base64_invalid", InvalidInput, 400, 1;
    /// A file of a browser artifact is too large.
    BrowserArtifactFileTooLarge = "wp_codebox_browser_artifact_file_too_large", Limit, 413, 1;
    /// A file of a browser artifact has the extension of a program that a web server runs.
    BrowserArtifactExtensionBlocked = "wp_codebox_browser_artifact_extension_blocked", Denied, 403, 1;
    /// The entry file of a browser artifact is not among its files.
    BrowserArtifactEntrypointMissing = "wp_codebox_browser_artifact_entrypoint_missing", InvalidInput, 400, 1;
    /// The caller named no schema for a browser artifact.
    BrowserArtifactSchemaMissing = "wp_codebox_browser_artifact_schema_missing", InvalidInput, 400, 1;
    /// The uploaded contents equal the code with which the browser session began.
    BrowserArtifactUnchanged = "wp_codebox_browser_artifact_unchanged", Conflict, 409, 1;
    /// The code with which a browser session began is missing on this host or was altered.
    BrowserArtifactBaselineInvalid = "wp_codebox_browser_artifact_baseline_invalid", Integrity, 409, 1;
    /// The archive of an exported bundle, or a download of its files, could not be written.
    ArtifactExportFailed = "wp_codebox_artifact_export_failed", Internal, 507, 1;
    /// The bundle lacks data that a repetition of its run needs, or this host lacks the mount
    /// sources of that run.
    ReplayUnavailable = "wp_codebox_replay_unavailable", Unavailable, 422, 1;
    /// No review action was given.
    ReviewActionMissing = "wp_codebox_review_action_missing", InvalidInput, 400, 1;
    /// The review action is not approve, reject or request-changes.
    ReviewActionInvalid = "wp_codebox_review_action_invalid", InvalidInput, 400, 1;
    /// The host plugin returned an invalid review result.
    ReviewResultInvalid = "wp_codebox_review_result_invalid", Internal, 502, 1;
    /// No plugin of the host site stores approved changes that are to be applied later.
    PendingApplyUnavailable = "wp_codebox_pending_apply_unavailable", Unavailable, 501, 1;
    /// The call has no list of approved files, or the list is empty.
    ApprovedFilesMissing = "wp_codebox_approved_files_missing", InvalidInput, 400, 1;
    /// An approved file is not among the changed files.
    ApprovedFilesInvalid = "wp_codebox_approved_files_invalid", InvalidInput, 400, 1;
    /// The patch cannot be reduced to the approved files.
    PatchUnfilterable = "wp_codebox_patch_unfilterable", Integrity, 400, 1;
    /// The files to change differ from their state before the run.
    ApplyConflict = "wp_codebox_apply_conflict", Conflict, 409, 1;
    /// A new PHP file has a syntax error, so nothing was applied.
    ApplySyntaxInvalid = "wp_codebox_apply_syntax_invalid", Conflict, 422, 1;
    /// Files could not be written, or the site's journal of applied changes cannot be used.
    ApplyFailed = "wp_codebox_apply_failed", Internal, 507, 1;
    /// No applied change has the given id, or none was applied to the given directory.
    ApplyNotFound = "wp_codebox_apply_not_found", NotFound, 404, 1;
    /// The applied change has already been undone.
    ApplyUndone = "wp_codebox_apply_undone", Conflict, 409, 1;
    /// The directory to apply the change to does not contain the code that the run changed.
    ApplyTargetMismatch = "wp_codebox_apply_target_mismatch", Conflict, 409, 1;
    /// The git repository in which approved files are committed cannot be used, or this host has no
    /// git.
    GitRepositoryInvalid = "wp_codebox_git_repository_invalid", Unavailable, 503, 1;
    /// The git branch for the approved files was not made by this site, is checked out, or was
    /// changed by another program at the same time.
    GitBranchConflict = "wp_codebox_git_branch_conflict", Conflict, 409, 1;
    /// Git could not make the commit.
    GitFailed = "wp_codebox_git_failed", Internal, 500, 1;
    /// The settings of the site forbid file changes, e.g. `DISALLOW_FILE_MODS`.
    FileChangesDisallowed = "wp_codebox_file_changes_disallowed", Denied, 403, 126;
    /// The change has files that need a second confirmation, and the approver did not give it.
    ApplyConfirmationMissing = "wp_codebox_apply_confirmation_missing", Denied, 403, 126;
    /// The run of the change did not succeed, e.g. because a check failed, and the user did not
    /// confirm that.
    ApplyChecksUnconfirmed = "wp_codebox_apply_checks_unconfirmed", Denied, 403, 126;
    /// A browser uploaded the contents of the bundle, and the approver did not confirm that.
    ApplyBrowserOriginUnconfirmed = "wp_codebox_apply_browser_origin_unconfirmed", Denied, 403, 126;
    /// The user who asked for the change may not approve it on this site.
    ApplyOwnChange = "wp_codebox_apply_own_change", Denied, 403, 126;
    /// No plugin of the host site handles the filter that applies approved changes.
    ApplyAdapterMissing = "wp_codebox_apply_adapter_missing", Unavailable, 501, 1;
    /// The plugin that applies or stages approved changes threw an exception, or returned a result of the
    /// wrong form.
    ApplyResultInvalid = "wp_codebox_apply_result_invalid", Internal, 502, 1;
    /// A connector request names no connector or no operation, or is too large.
    BrowserConnectorRequestInvalid = "wp_codebox_browser_connector_request_invalid", InvalidInput, 400, 1;
    /// No connector of this site has this name, or the connector cannot be resolved.
    BrowserConnectorUnresolved = "wp_codebox_browser_connector_unresolved", NotFound, 404, 1;
    /// The connector belongs to a provider other than the requested one.
    BrowserConnectorProviderMismatch = "wp_codebox_browser_connector_provider_mismatch", Conflict, 409, 1;
    /// The connector is bound to a model other than the requested one.
    BrowserConnectorModelMismatch = "wp_codebox_browser_connector_model_mismatch", Conflict, 409, 1;
    /// The connector's credentials are missing or denied, or too short or common to be redacted
    /// in responses.
    BrowserConnectorCredentialsUnavailable = "wp_codebox_browser_connector_credentials_unavailable", Denied, 403, 126;
    /// No plugin of the site handles connector requests.
    BrowserConnectorHandlerMissing = "wp_codebox_browser_connector_handler_missing", Unavailable, 501, 1;
    /// The plugin that handles connector requests failed or refused.
    BrowserConnectorHandlerFailed = "wp_codebox_browser_connector_handler_failed", Internal, 502, 1;
    /// The response of the plugin that handles connector requests is invalid.
    BrowserConnectorResponseInvalid = "wp_codebox_browser_connector_response_invalid", Internal, 502, 1;
    /// A request to a model provider has no operation.
    BrowserProviderOperationRequired = "wp_codebox_browser_provider_operation_required", InvalidInput, 400, 1;
    /// A request to a model provider has no inner request, or its inner request is too large.
    BrowserProviderRequestRequired = "wp_codebox_browser_provider_request_required", InvalidInput, 400, 1;
    /// A request to a model provider names no connector of the site.
    BrowserProviderConnectorRequired = "wp_codebox_browser_provider_connector_required", InvalidInput, 400, 1;
    /// No plugin of the site handles requests to a model provider.
    BrowserProviderAdapterMissing = "wp_codebox_browser_provider_adapter_missing", Unavailable, 501, 1;
    /// The plugin that handles requests to a model provider returned an invalid response.
    BrowserProviderAdapterInvalidResponse = "wp_codebox_browser_provider_adapter_invalid_response", Internal, 502, 1;
    /// The site's policy for the provider bridge, which forwards requests to a model provider, is
    /// malformed.
    BrowserProviderBridgePolicyInvalid = "wp_codebox_browser_provider_bridge_policy_invalid", Internal, 500, 1;
    /// The provider bridge does not support this operation.
    BrowserProviderBridgeOperationUnsupported = "wp_codebox_browser_provider_bridge_operation_unsupported", InvalidInput, 400, 1;
    /// The URL of a request to the provider bridge is malformed.
    BrowserProviderBridgeUriInvalid = "wp_codebox_browser_provider_bridge_uri_invalid", InvalidInput, 400, 1;
    /// The URL of a request to the provider bridge is not below an allowed base URL.
    BrowserProviderBridgeUriForbidden = "wp_codebox_browser_provider_bridge_uri_forbidden", Denied, 403, 126;
    /// The path of a request to the provider bridge is malformed.
    BrowserProviderBridgePathInvalid = "wp_codebox_browser_provider_bridge_path_invalid", InvalidInput, 400, 1;
    /// The site's policy for the provider bridge allows no base URL.
    BrowserProviderBridgeBaseUrlMissing = "wp_codebox_browser_provider_bridge_base_url_missing", Internal, 500, 1;
    /// The site's policy for the provider bridge has no authentication.
    BrowserProviderBridgeAuthenticationMissing = "wp_codebox_browser_provider_bridge_authentication_missing", Internal, 500, 1;
    /// The authentication of the provider bridge has no type.
    BrowserProviderBridgeAuthenticationStrategyMissing = "wp_codebox_browser_provider_bridge_authentication_strategy_missing", Internal, 500, 1;
    /// The authentication of the provider bridge has an unknown type or lacks its credential.
    BrowserProviderBridgeAuthenticationStrategyInvalid = "wp_codebox_browser_provider_bridge_authentication_strategy_invalid", Internal, 500, 1;
    /// The site's code that authenticates requests of the provider bridge returned something that
    /// is not a request.
    BrowserProviderBridgeAuthenticatedRequestInvalid = "wp_codebox_browser_provider_bridge_authenticated_request_invalid", Internal, 500, 1;
    /// The site's code that authenticates requests of the provider bridge failed.
    BrowserProviderBridgeAuthenticationFailed = "wp_codebox_browser_provider_bridge_authentication_failed", Internal, 502, 1;
    /// The provider is unreachable, or its response cannot be forwarded.
    BrowserProviderBridgeException = "wp_codebox_browser_provider_bridge_exception", Unavailable, 502, 1;
    /// The site knows no browser session with this id.
    BrowserSessionUnknown = "wp_codebox_browser_session_unknown", NotFound, 404, 1;
    /// The browser session has expired.
    BrowserSessionExpired = "wp_codebox_browser_session_expired", Conflict, 410, 1;
    /// The browser session belongs to another user or site.
    BrowserSessionForeign = "wp_codebox_browser_session_foreign", Denied, 403, 126;
    /// The input names no WordPress site that runs in a browser.
    BrowserContainedSiteRefMissing = "wp_codebox_browser_contained_site_ref_missing", InvalidInput, 400, 1;
    /// The input names a site in a browser in an invalid or contradictory way.
    BrowserContainedSiteRefInvalid = "wp_codebox_browser_contained_site_ref_invalid", InvalidInput, 400, 1;
    /// The request to open or create a site in a browser has no mode.
    BrowserContainedSiteModeRequired = "wp_codebox_browser_contained_site_mode_required", InvalidInput, 400, 1;
    /// The site in a browser cannot be recovered.
    BrowserContainedSiteUnavailable = "wp_codebox_browser_contained_site_unavailable", Conflict, 409, 1;
    /// The site in a browser was prepared anew, or WordPress was updated, since the handle in the
    /// input was made.
    BrowserContainedSiteStaleDigest = "wp_codebox_browser_contained_site_stale_digest", Conflict, 409, 1;
    /// The site in a browser belongs to another session than the input names.
    BrowserContainedSiteSessionMismatch = "wp_codebox_browser_contained_site_session_mismatch", Conflict, 409, 1;
    /// The `scope` in the input belongs to another session of the site in a browser.
    BrowserContainedSiteScopeMismatch = "wp_codebox_browser_contained_site_scope_mismatch", Conflict, 409, 1;
    /// No operation with this name synchronises sites in a browser.
    BrowserContainedSiteSyncOperationInvalid = "wp_codebox_browser_contained_site_sync_operation_invalid", NotFound, 404, 1;
    /// The backend that synchronises sites in a browser failed or returned an invalid result.
    BrowserContainedSiteSyncFailed = "wp_codebox_browser_contained_site_sync_failed", Internal, 502, 1;
    /// The input names no blueprint of a browser session.
    BrowserBlueprintRefMissing = "wp_codebox_browser_blueprint_ref_missing", InvalidInput, 409, 1;
    /// The site no longer has the blueprint.
    BrowserBlueprintRefCacheMiss = "wp_codebox_browser_blueprint_ref_cache_miss", NotFound, 409, 1;
    /// The blueprint reference has expired.
    BrowserBlueprintRefExpired = "wp_codebox_browser_blueprint_ref_expired", Conflict, 409, 1;
    /// The site was prepared from other sources since the blueprint reference was made.
    BrowserBlueprintRefInputHashMismatch = "wp_codebox_browser_blueprint_ref_input_hash_mismatch", Conflict, 409, 1;
    /// The token of a blueprint reference was made for another reference, or not by this site.
    BrowserBlueprintRefTampered = "wp_codebox_browser_blueprint_ref_tampered", Denied, 403, 126;
    /// The blueprint reference belongs to another user or site.
    BrowserBlueprintRefForeign = "wp_codebox_browser_blueprint_ref_foreign", Denied, 403, 126;
    /// The session of the blueprint reference has ended.
    BrowserBlueprintRefReplayed = "wp_codebox_browser_blueprint_ref_replayed", Conflict, 409, 1;
    /// A URL of a browser session is not absolute.
    BrowserUrlInvalid = "wp_codebox_browser_url_invalid", InvalidInput, 400, 1;
    /// A URL of a browser session does not use https.
    BrowserUrlInsecure = "wp_codebox_browser_url_insecure", InvalidInput, 400, 1;
    /// The origin of a URL of a browser session is not allowed.
    BrowserOriginNotAllowed = "wp_codebox_browser_origin_not_allowed", Denied, 403, 126;
    /// A plugin or theme of a browser session is on a host that is not allowed.
    BrowserPluginHostNotAllowed = "wp_codebox_browser_plugin_host_not_allowed", Denied, 403, 126;
    /// A browser session names code that the site does not have.
    BrowserRuntimeComponentUnresolved = "wp_codebox_browser_runtime_component_unresolved", InvalidInput, 422, 1;
    /// A step of a blueprint is not supported in a browser.
    BrowserStepUnsupported = "wp_codebox_browser_step_unsupported", Unavailable, 422, 1;
    /// A path for the supervisor of a browser session does not name a separate file below `/wordpress`
    /// or `/tmp` of the sandbox.
    BrowserRunnerPathInvalid = "wp_codebox_browser_runner_path_invalid", InvalidInput, 400, 1;
    /// The archive of the site for a screenshot is invalid.
    ViewportReplayArchiveInvalid = "wp_codebox_viewport_replay_archive_invalid", InvalidInput, 400, 1;
    /// The route of the page for a screenshot is invalid.
    ViewportReplayRouteInvalid = "wp_codebox_viewport_replay_route_invalid", InvalidInput, 400, 1;
    /// A runtime task names no target, i.e. no runtime that executes it.
    RuntimeTaskTargetRequired = "wp_codebox_runtime_task_target_required", InvalidInput, 400, 1;
    /// No runtime of the site executes tasks for this target.
    RuntimeTaskUnsupportedTarget = "wp_codebox_runtime_task_unsupported_target", Unavailable, 422, 1;
    /// A plugin of the site describes a runtime without id, target or callback.
    RuntimeTaskProviderInvalid = "wp_codebox_runtime_task_provider_invalid", Internal, 500, 1;
    /// The plugin that executes a runtime task failed or returned an invalid result.
    RuntimeTaskProviderInvalidResult = "wp_codebox_runtime_task_provider_invalid_result", Internal, 502, 1;
    /// The request to run a package is incomplete.
    RuntimePackageTaskInvalid = "wp_codebox_runtime_package_task_invalid", InvalidInput, 400, 1;
    /// The package's source is not a readable file that the caller may use.
    RuntimePackageSourceMissing = "wp_codebox_runtime_package_source_missing", InvalidInput, 400, 1;
    /// The workflow of the package names no ability that a sandbox can run.
    RuntimePackageWorkflowUnavailable = "wp_codebox_runtime_package_workflow_unavailable", Unavailable, 422, 1;
    /// A site seed of a task is malformed, or the content that it selects cannot be read.
    SiteSeedInvalid = "wp_codebox_site_seed_invalid", InvalidInput, 400, 1;
    /// A site seed of a task has another type than `parent_site`.
    SiteSeedTypeInvalid = "wp_codebox_site_seed_type_invalid", InvalidInput, 400, 1;
    /// A site seed of a task has no valid name, or the name of another seed.
    SiteSeedNameInvalid = "wp_codebox_site_seed_name_invalid", InvalidInput, 400, 1;
    /// A site seed of a task selects no content.
    SiteSeedScopesMissing = "wp_codebox_site_seed_scopes_missing", InvalidInput, 400, 1;
    /// A scope of a site seed has a member or value that does not fit its kind of content.
    SiteSeedScopeInvalid = "wp_codebox_site_seed_scope_invalid", InvalidInput, 400, 1;
    /// A scope of a site seed has no limit.
    SiteSeedScopeUnbounded = "wp_codebox_site_seed_scope_unbounded", InvalidInput, 400, 1;
    /// A site seed selects options without their names.
    SiteSeedOptionsUnbounded = "wp_codebox_site_seed_options_unbounded", InvalidInput, 400, 1;
    /// A site seed selects users with their names and addresses.
    SiteSeedUsersUnsafe = "wp_codebox_site_seed_users_unsafe", InvalidInput, 400, 1;
    /// A site seed selects the files of media.
    SiteSeedMediaFilesUnsupported = "wp_codebox_site_seed_media_files_unsupported", InvalidInput, 400, 1;
    /// The runtime that the site chose for packages does not exist.
    RuntimeProviderUnavailable = "wp_codebox_runtime_provider_unavailable", Unavailable, 501, 1;
    /// The plugin that runs packages failed or returned an invalid result.
    RuntimeProviderInvalidResult = "wp_codebox_runtime_provider_invalid_result", Internal, 502, 1;
    /// The workload has no steps.
    WordpressWorkloadStepsMissing = "wp_codebox_wordpress_workload_steps_missing", InvalidInput, 400, 1;
    /// A step of a workload names a command that a sandbox cannot run.
    WordpressWorkloadStepUnsupported = "wp_codebox_wordpress_workload_step_unsupported", Unavailable, 422, 1;
    /// A workload asks for something that a sandbox started by a site does not have.
    WordpressWorkloadInputUnsupported = "wp_codebox_wordpress_workload_input_unsupported", Unavailable, 422, 1;
    /// The plugin that runs workloads failed or returned an invalid result.
    WordpressWorkloadProviderInvalidResult = "wp_codebox_wordpress_workload_provider_invalid_result", Internal, 502, 1;
    /// A case of a fuzz suite is malformed.
    FuzzCaseInvalid = "wp_codebox_fuzz_case_invalid", InvalidInput, 400, 1;
    /// No command of a sandbox can call the target of a fuzz suite's case.
    FuzzStepUnsupported = "wp_codebox_fuzz_step_unsupported", Unavailable, 422, 1;
    /// The fuzz suite asks for a supervisor mode or for coverage that this site does not have.
    FuzzSuiteRunnerModeUnavailable = "wp_codebox_fuzz_suite_runner_mode_unavailable", Unavailable, 422, 1;
    /// A host delegation (a task that the site passes to one of its plugins) has neither goal nor
    /// task.
    HostDelegationRequestInvalid = "wp_codebox_host_delegation_request_invalid", InvalidInput, 400, 1;
    /// The `source_digest` of a host delegation (of the files that the task is about) is not a
    /// SHA-256.
    HostDelegationSourceDigestInvalid = "wp_codebox_host_delegation_source_digest_invalid", InvalidInput, 400, 1;
    /// No plugin of the site takes host delegations.
    HostDelegationUnavailable = "wp_codebox_host_delegation_unavailable", Unavailable, 501, 1;
    /// The plugin that takes host delegations failed or returned an invalid result.
    HostDelegationProviderResultInvalid = "wp_codebox_host_delegation_provider_result_invalid", Internal, 502, 1;
    /// The result of a host delegation has an unknown status.
    HostDelegationProviderStatusInvalid = "wp_codebox_host_delegation_provider_status_invalid", Internal, 502, 1;
    /// The result of a host delegation belongs to another request.
    HostDelegationRequestIdMismatch = "wp_codebox_host_delegation_request_id_mismatch", Internal, 502, 1;
    /// The result of a host delegation belongs to another session.
    HostDelegationScopeMismatch = "wp_codebox_host_delegation_scope_mismatch", Internal, 502, 1;
    /// The result of a host delegation is about another source.
    HostDelegationSourceDigestMismatch = "wp_codebox_host_delegation_source_digest_mismatch", Internal, 502, 1;
    /// The request to prepare a runner workspace (a checkout that a plugin of the site manages) is
    /// malformed.
    RunnerWorkspacePrepareInvalidRequest = "wp_codebox_runner_workspace_prepare_invalid_request", InvalidInput, 400, 1;
    /// The backend has no checkout of the repository, and the request names no URL to clone.
    RunnerWorkspacePrepareCloneUrlRequired = "wp_codebox_runner_workspace_prepare_clone_url_required", InvalidInput, 400, 1;
    /// The request names no runner workspace.
    RunnerWorkspaceIdentityInvalidRequest = "wp_codebox_runner_workspace_identity_invalid_request", InvalidInput, 400, 1;
    /// The command for a runner workspace is malformed.
    RunnerWorkspaceCommandInvalidRequest = "wp_codebox_runner_workspace_command_invalid_request", InvalidInput, 400, 1;
    /// The request to publish a runner workspace is malformed.
    RunnerWorkspacePublicationInvalidRequest = "wp_codebox_runner_workspace_publication_invalid_request", InvalidInput, 400, 1;
    /// No plugin of the site keeps runner workspaces, or its configuration is invalid.
    RunnerWorkspaceBackendUnavailable = "wp_codebox_runner_workspace_backend_unavailable", Unavailable, 501, 1;
    /// The backend of runner workspaces returned an invalid response.
    RunnerWorkspaceBackendInvalidResponse = "wp_codebox_runner_workspace_backend_invalid_response", Internal, 502, 1;
    /// The backend of runner workspaces failed.
    RunnerWorkspaceBackendError = "wp_codebox_runner_workspace_backend_error", Internal, 502, 1;
    /// A request to the service has no token, or one that is unknown, expired or revoked.
    ServiceTokenRequired = "wp_codebox_service_token_required", Denied, 401, 126;
    /// The token does not have the scope for this operation.
    ServiceScopeMissing = "wp_codebox_service_scope_missing", Denied, 403, 126;
    /// The service has no such path or object, or the token may not use it.
    ServiceNotFound = "wp_codebox_service_not_found", NotFound, 404, 1;
    /// The path of the service does not have this method.
    ServiceMethodNotAllowed = "wp_codebox_service_method_not_allowed", InvalidInput, 405, 1;
    /// The idempotency key was used for another request.
    IdempotencyConflict = "wp_codebox_idempotency_conflict", Conflict, 409, 1;
    /// The object changed since the client read it: its entity tag is another.
    PreconditionFailed = "wp_codebox_precondition_failed", Conflict, 412, 1;
    /// The body of a request to the service is larger than allowed.
    ServiceRequestTooLarge = "wp_codebox_service_request_too_large", InvalidInput, 413, 1;
    /// The client sent its request too slowly.
    ServiceRequestTimeout = "wp_codebox_service_request_timeout", InvalidInput, 408, 1;
    /// The token made more requests than its limits allow.
    ServiceRateLimited = "wp_codebox_service_rate_limited", Limit, 429, 1;
    /// The service is stopping, has no capacity for the call, lacks the sandbox's extension, or
    /// cannot use its database or reach another service.
    ServiceUnavailable = "wp_codebox_service_unavailable", Unavailable, 503, 125;
    /// The account has fewer credits than the sandbox needs.
    CreditsShort = "wp_codebox_credits_short", Limit, 402, 1;
    /// The service charges credits, and the request names no account to charge.
    AccountMissing = "wp_codebox_account_missing", InvalidInput, 400, 1;
    /// The call contradicts the ledger: the sandbox has no reservation, or one with other terms or
    /// one that is settled or released; or another grant has the same reference.
    LedgerConflict = "wp_codebox_ledger_conflict", Conflict, 409, 1;
    /// The ledger was altered, is older than its anchor (the record of its newest entry), or is not
    /// a ledger.
    LedgerDamaged = "wp_codebox_ledger_damaged", Integrity, 500, 1;
    /// The ledger does not exist, or cannot be opened, locked or written.
    LedgerUnavailable = "wp_codebox_ledger_unavailable", Unavailable, 503, 125;
    /// The price table is malformed.
    PricesInvalid = "wp_codebox_prices_invalid", InvalidInput, 400, 1;
    /// The price table has no price for the extension, a kind of sandbox.
    PriceMissing = "wp_codebox_price_missing", Unavailable, 422, 1;
    /// The audit log entry about an applied change could not be written.
    AuditFailed = "wp_codebox_audit_failed", Internal, 500, 1;
    /// A defect of this program; the message has the detail.
    Internal = "wp_codebox_internal", Internal, 500, 1;
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Error as serialised between processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// Stable error code.
    pub code: ErrorCode,
    /// One sentence: what is wrong and what to do. Never contains a secret.
    pub message: String,
    /// Further suggestions, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// Structured detail; never an empty object. Boxed to keep `Result`s small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<serde_json::Map<String, serde_json::Value>>>,
}

impl ErrorBody {
    /// Creates an error body without hints or data.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hints: Vec::new(),
            data: None,
        }
    }

    /// Returns the error body with one more hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Returns the error body with one more member in `data`.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<serde_json::Value>) -> Self {
        self.data
            .get_or_insert_default()
            .insert(key.to_owned(), value.into());
        self
    }
}

impl std::fmt::Display for ErrorBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for ErrorBody {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn error_codes_are_unique_and_survive_a_json_round_trip() {
        let texts: BTreeSet<_> = ErrorCode::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(texts.len(), ErrorCode::ALL.len());
        for code in ErrorCode::ALL {
            let json = serde_json::to_string(code).unwrap();
            assert_eq!(json, format!("\"{code}\""));
            assert_eq!(serde_json::from_str::<ErrorCode>(&json).unwrap(), *code);
            assert!((400..600).contains(&code.http_status()), "{code}");
            assert!(
                [1, 2, 3, 124, 125, 126, 130].contains(&code.exit_status()),
                "{code}"
            );
        }
    }
}
