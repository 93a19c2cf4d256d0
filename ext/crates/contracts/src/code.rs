//! Stable error codes: one table from code to kind, HTTP status and exit status.
//!
//! A code, once published, keeps its meaning. Every error enum of the other
//! crates maps each of its variants to one of these by exhaustive match.

use serde::{Deserialize, Serialize};

/// What a caller can do about an error; decides the PHP exception class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The input is wrong: change it and call again.
    InvalidInput,
    /// Policy or permission says no.
    Denied,
    /// The thing named does not exist.
    NotFound,
    /// The world changed under the caller: look again, then decide.
    Conflict,
    /// A bundle or signature is not what it claims to be.
    Integrity,
    /// A limit of the run was reached.
    Limit,
    /// Something this host lacks: fix the host.
    Unavailable,
    /// A defect or an I/O failure of ours.
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
            /// The stable text.
            #[must_use]
            pub const fn as_str(self) -> &'static str { match self { $(ErrorCode::$variant => $text,)+ } }
            /// What a caller can do about it.
            #[must_use]
            pub const fn kind(self) -> ErrorKind { match self { $(ErrorCode::$variant => ErrorKind::$kind,)+ } }
            /// HTTP status for `WP_Error` `data.status`.
            #[must_use]
            pub const fn http_status(self) -> u16 { match self { $(ErrorCode::$variant => $http,)+ } }
            /// Process exit status: 1 failure, 124 time, 125 could not start, 126 denied by policy.
            #[must_use]
            pub const fn exit_status(self) -> u8 { match self { $(ErrorCode::$variant => $exit,)+ } }
        }
    };
}

codes! {
    /// No goal was given.
    TaskMissing = "wp_codebox_task_missing", InvalidInput, 400, 1;
    /// `code` or `code_file` was given: raw code never enters through a task.
    RawCodeForbidden = "wp_codebox_raw_code_forbidden", InvalidInput, 400, 1;
    /// The input does not have the shape its schema asks for.
    InputInvalid = "wp_codebox_input_invalid", InvalidInput, 400, 1;
    /// A mount row is malformed.
    MountInvalid = "wp_codebox_mount_invalid", InvalidInput, 400, 1;
    /// A mount source is missing or not a directory.
    MountSourceInvalid = "wp_codebox_mount_source_invalid", InvalidInput, 400, 1;
    /// A mount source is on the deny list or outside the allowed roots.
    MountDenied = "wp_codebox_mount_denied", Denied, 403, 126;
    /// A mount source holds a FIFO, socket or device.
    MountSpecialFile = "wp_codebox_mount_special_file", InvalidInput, 400, 1;
    /// A mount source cannot be read by the runner.
    MountUnreadable = "wp_codebox_mount_unreadable", InvalidInput, 400, 1;
    /// A mount source has more entries or bytes than allowed.
    MountTooLarge = "wp_codebox_mount_too_large", InvalidInput, 413, 1;
    /// A mount cannot have the git repository that was asked for.
    GitUnavailable = "wp_codebox_git_unavailable", InvalidInput, 400, 1;
    /// A mount target is outside `/workspace` and `/wordpress`, or not normalised.
    MountTargetInvalid = "wp_codebox_mount_target_invalid", InvalidInput, 400, 1;
    /// Two mount targets overlap.
    MountTargetOverlap = "wp_codebox_mount_target_overlap", InvalidInput, 400, 1;
    /// Neither `--plugin`, `--theme` nor `--mount` was given and none can be derived.
    MountMissing = "wp_codebox_mount_missing", InvalidInput, 400, 1;
    /// A limit is out of its range.
    LimitInvalid = "wp_codebox_limit_invalid", InvalidInput, 400, 1;
    /// No agent was named and none is configured.
    AgentMissing = "wp_codebox_agent_missing", InvalidInput, 400, 1;
    /// The agent's program does not exist in the guest.
    AgentProgramMissing = "wp_codebox_agent_program_missing", InvalidInput, 400, 125;
    /// No model was named and none is configured.
    ModelMissing = "wp_codebox_model_missing", InvalidInput, 400, 1;
    /// The model's name, address or way of speaking is not accepted.
    ModelInvalid = "wp_codebox_model_invalid", InvalidInput, 400, 1;
    /// The budget of an agent is out of its range.
    BudgetInvalid = "wp_codebox_budget_invalid", InvalidInput, 400, 1;
    /// A budget of the agent is used up; what it did so far is in the bundle.
    BudgetExhausted = "wp_codebox_budget_exhausted", Limit, 507, 3;
    /// The agent went in circles; what it did so far is in the bundle.
    AgentNoProgress = "wp_codebox_agent_no_progress", Limit, 507, 3;
    /// The agent says that it cannot go on.
    AgentBlocked = "wp_codebox_agent_blocked", Conflict, 409, 3;
    /// The model's provider could not be reached or did not answer in its own protocol.
    ProviderUnavailable = "wp_codebox_provider_unavailable", Unavailable, 502, 1;
    /// The model's provider refused the request: key, model name or content.
    ProviderRejected = "wp_codebox_provider_rejected", Denied, 502, 3;
    /// The credentials of a provider are missing or denied on this site.
    ProviderCredentialsUnavailable = "wp_codebox_provider_credentials_unavailable", Denied, 403, 126;
    /// The credentials of a connector are missing or denied on this site.
    ConnectorCredentialsUnavailable = "wp_codebox_connector_credentials_unavailable", Denied, 403, 126;
    /// The tool policy is malformed.
    SandboxToolPolicyInvalid = "wp_codebox_sandbox_tool_policy_invalid", InvalidInput, 400, 1;
    /// The tool is not allowed.
    ToolNotAllowed = "wp_codebox_tool_not_allowed", Denied, 403, 126;
    /// A component cannot be mounted, loaded or activated, or is not ready.
    ComponentUnavailable = "wp_codebox_component_unavailable", Unavailable, 422, 125;
    /// The path of a component is not a directory.
    ComponentPathMissing = "wp_codebox_component_path_missing", InvalidInput, 400, 1;
    /// The task of the guest's WordPress is malformed, or its ability does not exist there.
    RuntimeTaskRequestInvalid = "wp_codebox_runtime_task_request_invalid", InvalidInput, 400, 1;
    /// The ability of the guest's WordPress failed.
    RuntimeTaskFailed = "wp_codebox_runtime_task_failed", Internal, 500, 1;
    /// A bundle of an agent could not be imported in the guest.
    AgentBundleImportFailed = "wp_codebox_agent_bundle_import_failed", Internal, 500, 1;
    /// Nothing in the guest imports bundles of agents.
    AgentBundleImporterUnavailable = "wp_codebox_agent_bundle_importer_unavailable", Unavailable, 422, 125;
    /// The policy document is malformed.
    PolicyInvalid = "runtime-policy-invalid", InvalidInput, 400, 126;
    /// The policy does not allow this command.
    CommandDisallowed = "runtime-command-disallowed", Denied, 403, 126;
    /// The policy asks for something this backend cannot enforce.
    PolicyUnenforceable = "wp_codebox_policy_unenforceable", Denied, 422, 126;
    /// The command id is not in the registry.
    CommandUnknown = "wp_codebox_command_unknown", InvalidInput, 400, 1;
    /// The command is in the registry, but this backend cannot do it; the message says why.
    CommandUnsupported = "wp_codebox_command_unsupported", Unavailable, 422, 1;
    /// A command ran and failed; `data.reason` is the word of its program, the message its sentence.
    CommandFailed = "wp_codebox_command_failed", Conflict, 409, 1;
    /// A recipe is malformed or asks for what cannot be done; `data.issues` lists every reason.
    RecipeInvalid = "wp_codebox_recipe_invalid", InvalidInput, 400, 1;
    /// A step of a recipe failed.
    StepFailed = "wp_codebox_step_failed", Conflict, 409, 1;
    /// A file that a recipe declares was not there or not of its kind.
    CollectionFailed = "wp_codebox_collection_failed", Conflict, 409, 1;
    /// A profile is malformed; `data.issues` lists every reason.
    ProfileInvalid = "wp_codebox_profile_invalid", InvalidInput, 400, 1;
    /// No profile has this id.
    ProfileNotFound = "wp_codebox_profile_not_found", NotFound, 404, 1;
    /// No sandbox has this id.
    SandboxNotFound = "wp_codebox_sandbox_not_found", NotFound, 404, 1;
    /// The run is no sandbox that is held: it takes no requests.
    SandboxNotHeld = "wp_codebox_sandbox_not_held", Conflict, 409, 1;
    /// Something runs in the sandbox that the request cannot go beside.
    SandboxInUse = "wp_codebox_sandbox_in_use", Conflict, 409, 1;
    /// No snapshot has this id or name.
    SnapshotNotFound = "wp_codebox_snapshot_not_found", NotFound, 404, 1;
    /// A snapshot is not what its digests say, or belongs to another kind of sandbox.
    SnapshotInvalid = "wp_codebox_snapshot_invalid", Integrity, 400, 1;
    /// A file in the sandbox is not what the client thinks it replaces.
    SyncConflict = "wp_codebox_sync_conflict", Conflict, 409, 1;
    /// A preview cannot be opened; the message says why.
    PreviewUnavailable = "wp_codebox_preview_unavailable", Unavailable, 503, 1;
    /// The host has no browser, or it cannot run here.
    BrowserUnavailable = "wp_codebox_browser_unavailable", Unavailable, 503, 125;
    /// No ability has this name.
    ApiAbilityNotSupported = "wp_codebox_api_ability_not_supported", NotFound, 404, 1;
    /// The caller may not do this.
    Forbidden = "wp_codebox_forbidden", Denied, 403, 126;
    /// The host's concurrency limit is reached.
    Busy = "wp_codebox_busy", Unavailable, 429, 125;
    /// The wall clock deadline was reached.
    RunTimeout = "wp_codebox_run_timeout", Limit, 504, 124;
    /// The memory limit was reached.
    MemoryLimit = "wp_codebox_memory_limit", Limit, 507, 1;
    /// The disk limit was reached.
    DiskLimit = "wp_codebox_disk_limit", Limit, 507, 1;
    /// The output limit was reached.
    OutputLimit = "wp_codebox_output_limit", Limit, 507, 1;
    /// The change set is larger than a bundle may be.
    CaptureLimit = "wp_codebox_capture_limit", Limit, 507, 1;
    /// The run was cancelled.
    RunCancelled = "wp_codebox_run_cancelled", Conflict, 409, 130;
    /// The run failed for another reason; the message says which.
    RunFailed = "wp_codebox_run_failed", Internal, 500, 1;
    /// No run has this id.
    RunNotFound = "wp_codebox_run_not_found", NotFound, 404, 1;
    /// More than one run matches this prefix.
    RunAmbiguous = "wp_codebox_run_ambiguous", Conflict, 409, 1;
    /// No task was given to a batch.
    TasksMissing = "wp_codebox_tasks_missing", InvalidInput, 400, 1;
    /// No worker was given to a fan-out.
    FanoutWorkersMissing = "wp_codebox_fanout_workers_missing", InvalidInput, 400, 1;
    /// A worker is not an object of the known fields.
    FanoutWorkerInvalid = "wp_codebox_fanout_worker_invalid", InvalidInput, 400, 1;
    /// A worker id is missing or malformed.
    FanoutWorkerIdInvalid = "wp_codebox_fanout_worker_id_invalid", InvalidInput, 400, 1;
    /// Two workers have one id.
    FanoutWorkerIdDuplicate = "wp_codebox_fanout_worker_id_duplicate", InvalidInput, 400, 1;
    /// A worker has no goal.
    FanoutWorkerGoalMissing = "wp_codebox_fanout_worker_goal_missing", InvalidInput, 400, 1;
    /// A dependency is unknown, on itself, or part of a cycle.
    FanoutWorkerDependencyInvalid = "wp_codebox_fanout_worker_dependency_invalid", InvalidInput, 400, 1;
    /// The concurrency is out of its range.
    FanoutConcurrencyInvalid = "wp_codebox_fanout_concurrency_invalid", InvalidInput, 400, 1;
    /// The sandbox could not start.
    SandboxStartFailed = "wp_codebox_sandbox_start_failed", Unavailable, 503, 125;
    /// This host cannot isolate as the policy demands.
    IsolationUnavailable = "wp_codebox_isolation_unavailable", Unavailable, 503, 125;
    /// Every kernel id set aside for guests is in use.
    GuestIdsExhausted = "wp_codebox_guest_ids_exhausted", Unavailable, 503, 125;
    /// The outer sandbox that the run requires cannot be started.
    SandboxWrapperMissing = "wp_codebox_sandbox_wrapper_missing", Unavailable, 503, 125;
    /// A request of the guest is outside the network policy.
    EgressDenied = "wp_codebox_egress_denied", Denied, 403, 126;
    /// A request of the guest was allowed and failed on its way.
    EgressFailed = "wp_codebox_egress_failed", Unavailable, 502, 1;
    /// The egress bridge could not start.
    EgressUnavailable = "wp_codebox_egress_unavailable", Unavailable, 503, 125;
    /// A secret of the run is missing, malformed or bound to no host.
    SecretInvalid = "wp_codebox_secret_invalid", InvalidInput, 400, 1;
    /// The native extension is not loaded.
    ExtensionMissing = "wp_codebox_extension_missing", Unavailable, 503, 125;
    /// The native extension and the plugin do not speak the same contract.
    ExtensionStale = "wp_codebox_extension_stale", Unavailable, 503, 125;
    /// A setting of the extension is missing or wrong.
    ConfigInvalid = "wp_codebox_config_invalid", Unavailable, 503, 125;
    /// The state directory is foreign, too open or not writable.
    StateDirInvalid = "wp_codebox_state_dir_invalid", Unavailable, 503, 125;
    /// The runner could not be started or died.
    RunnerUnavailable = "wp_codebox_runner_unavailable", Unavailable, 503, 125;
    /// The WordPress template could not be built.
    TemplateFailed = "wp_codebox_template_failed", Unavailable, 503, 125;
    /// The bundle could not be written; the work is kept where the message says.
    BundleWriteFailed = "wp_codebox_bundle_write_failed", Internal, 507, 1;
    /// The agent's work did not pass a check.
    CheckFailed = "wp_codebox_check_failed", Conflict, 409, 3;
    /// The patch contains a known secret.
    SecretInPatch = "wp_codebox_secret_in_patch", Denied, 422, 3;
    /// The mounted source changed while the run used it.
    BaselineChanged = "wp_codebox_baseline_changed", Conflict, 409, 1;
    /// No artifact id was given.
    ArtifactIdMissing = "wp_codebox_artifact_id_missing", InvalidInput, 400, 1;
    /// No bundle has this id.
    ArtifactNotFound = "wp_codebox_artifact_not_found", NotFound, 404, 1;
    /// More than one bundle matches this id or prefix.
    ArtifactAmbiguous = "wp_codebox_artifact_ambiguous", Conflict, 409, 1;
    /// The bundle lies outside the artifacts root.
    ArtifactOutsideRoot = "wp_codebox_artifact_outside_root", Denied, 403, 1;
    /// The bundle does not verify.
    ArtifactVerificationFailed = "wp_codebox_artifact_verification_failed", Integrity, 400, 1;
    /// The bundle is not signed by a key this site trusts.
    ArtifactUntrusted = "wp_codebox_artifact_untrusted", Integrity, 403, 1;
    /// The bundle changed after it was reviewed.
    ArtifactChanged = "wp_codebox_artifact_changed", Conflict, 409, 1;
    /// The bundle is larger than an answer may be.
    ArtifactTooLarge = "wp_codebox_artifact_too_large", InvalidInput, 413, 1;
    /// No source of an import was given.
    ArtifactImportSourceMissing = "wp_codebox_artifact_import_source_missing", InvalidInput, 400, 1;
    /// The source of an import is no bundle: unreadable, hostile, or not verifying.
    ArtifactImportSourceInvalid = "wp_codebox_artifact_import_source_invalid", Integrity, 400, 1;
    /// The imported bundle has another id than expected.
    ArtifactImportIdMismatch = "wp_codebox_artifact_import_id_mismatch", Conflict, 409, 1;
    /// The imported bundle has another content digest than expected.
    ArtifactImportDigestMismatch = "wp_codebox_artifact_import_digest_mismatch", Conflict, 409, 1;
    /// Another bundle of the same run is stored here.
    ArtifactImportConflict = "wp_codebox_artifact_import_conflict", Conflict, 409, 1;
    /// The imported bundle could not be stored.
    ArtifactImportCopyFailed = "wp_codebox_artifact_import_copy_failed", Internal, 507, 1;
    /// The archive could not be written.
    ArtifactExportFailed = "wp_codebox_artifact_export_failed", Internal, 507, 1;
    /// The bundle lacks what a replay needs, or this host lacks its mounts.
    ReplayUnavailable = "wp_codebox_replay_unavailable", Unavailable, 422, 1;
    /// No review action was given.
    ReviewActionMissing = "wp_codebox_review_action_missing", InvalidInput, 400, 1;
    /// The review action is not approve, reject or request-changes.
    ReviewActionInvalid = "wp_codebox_review_action_invalid", InvalidInput, 400, 1;
    /// The host plugin's answer is not a review result.
    ReviewResultInvalid = "wp_codebox_review_result_invalid", Internal, 502, 1;
    /// No host plugin stages pending applies.
    PendingApplyUnavailable = "wp_codebox_pending_apply_unavailable", Unavailable, 501, 1;
    /// No approved file was given.
    ApprovedFilesMissing = "wp_codebox_approved_files_missing", InvalidInput, 400, 1;
    /// An approved file is not among the changed files.
    ApprovedFilesInvalid = "wp_codebox_approved_files_invalid", InvalidInput, 400, 1;
    /// The patch cannot be filtered to the approved files.
    PatchUnfilterable = "wp_codebox_patch_unfilterable", Integrity, 400, 1;
    /// The target differs from the baseline of the run.
    ApplyConflict = "wp_codebox_apply_conflict", Conflict, 409, 1;
    /// The target is code that the change was not made from.
    ApplyTargetMismatch = "wp_codebox_apply_target_mismatch", Conflict, 409, 1;
    /// The site does not let its files be changed.
    FileChangesDisallowed = "wp_codebox_file_changes_disallowed", Denied, 403, 126;
    /// No host plugin answers the apply filter.
    ApplyAdapterMissing = "wp_codebox_apply_adapter_missing", Unavailable, 501, 1;
    /// The host plugin's answer is not an apply result.
    ApplyResultInvalid = "wp_codebox_apply_result_invalid", Internal, 502, 1;
    /// A connector request names no connector or operation, or is too large.
    BrowserConnectorRequestInvalid = "wp_codebox_browser_connector_request_invalid", InvalidInput, 400, 1;
    /// This site knows no connector of this name, or it cannot be resolved.
    BrowserConnectorUnresolved = "wp_codebox_browser_connector_unresolved", NotFound, 404, 1;
    /// The connector belongs to another provider than the request names.
    BrowserConnectorProviderMismatch = "wp_codebox_browser_connector_provider_mismatch", Conflict, 409, 1;
    /// The connector is bound to another model than the request names.
    BrowserConnectorModelMismatch = "wp_codebox_browser_connector_model_mismatch", Conflict, 409, 1;
    /// The credentials of the connector are missing, denied, or could not be told from other text.
    BrowserConnectorCredentialsUnavailable = "wp_codebox_browser_connector_credentials_unavailable", Denied, 403, 126;
    /// No plugin of the site handles connector requests.
    BrowserConnectorHandlerMissing = "wp_codebox_browser_connector_handler_missing", Unavailable, 501, 1;
    /// The plugin that handles connector requests failed or refused.
    BrowserConnectorHandlerFailed = "wp_codebox_browser_connector_handler_failed", Internal, 502, 1;
    /// The answer of the plugin that handles connector requests cannot be passed on.
    BrowserConnectorResponseInvalid = "wp_codebox_browser_connector_response_invalid", Internal, 502, 1;
    /// A provider request names no operation.
    BrowserProviderOperationRequired = "wp_codebox_browser_provider_operation_required", InvalidInput, 400, 1;
    /// A provider request has no request, or one that is too large.
    BrowserProviderRequestRequired = "wp_codebox_browser_provider_request_required", InvalidInput, 400, 1;
    /// A provider request inherits no connector.
    BrowserProviderConnectorRequired = "wp_codebox_browser_provider_connector_required", InvalidInput, 400, 1;
    /// No adapter answers provider requests.
    BrowserProviderAdapterMissing = "wp_codebox_browser_provider_adapter_missing", Unavailable, 501, 1;
    /// The adapter's answer is no response.
    BrowserProviderAdapterInvalidResponse = "wp_codebox_browser_provider_adapter_invalid_response", Internal, 502, 1;
    /// The site's policy of the provider bridge is malformed.
    BrowserProviderBridgePolicyInvalid = "wp_codebox_browser_provider_bridge_policy_invalid", Internal, 500, 1;
    /// The provider bridge knows no such operation.
    BrowserProviderBridgeOperationUnsupported = "wp_codebox_browser_provider_bridge_operation_unsupported", InvalidInput, 400, 1;
    /// The address of a bridged request is malformed.
    BrowserProviderBridgeUriInvalid = "wp_codebox_browser_provider_bridge_uri_invalid", InvalidInput, 400, 1;
    /// The address of a bridged request is below none of the allowed base addresses.
    BrowserProviderBridgeUriForbidden = "wp_codebox_browser_provider_bridge_uri_forbidden", Denied, 403, 126;
    /// The path of a bridged request is malformed.
    BrowserProviderBridgePathInvalid = "wp_codebox_browser_provider_bridge_path_invalid", InvalidInput, 400, 1;
    /// The site's policy of the provider bridge allows no base address.
    BrowserProviderBridgeBaseUrlMissing = "wp_codebox_browser_provider_bridge_base_url_missing", Internal, 500, 1;
    /// The site's policy of the provider bridge does not say how to authenticate.
    BrowserProviderBridgeAuthenticationMissing = "wp_codebox_browser_provider_bridge_authentication_missing", Internal, 500, 1;
    /// The authentication of the provider bridge names no type.
    BrowserProviderBridgeAuthenticationStrategyMissing = "wp_codebox_browser_provider_bridge_authentication_strategy_missing", Internal, 500, 1;
    /// The authentication of the provider bridge is of no known type or lacks its credential.
    BrowserProviderBridgeAuthenticationStrategyInvalid = "wp_codebox_browser_provider_bridge_authentication_strategy_invalid", Internal, 500, 1;
    /// What the site's authentication answered is no request.
    BrowserProviderBridgeAuthenticatedRequestInvalid = "wp_codebox_browser_provider_bridge_authenticated_request_invalid", Internal, 500, 1;
    /// The site's authentication of a bridged request failed.
    BrowserProviderBridgeAuthenticationFailed = "wp_codebox_browser_provider_bridge_authentication_failed", Internal, 502, 1;
    /// The provider could not be reached, or its answer cannot be passed on.
    BrowserProviderBridgeException = "wp_codebox_browser_provider_bridge_exception", Unavailable, 502, 1;
    /// The apply audit line could not be written.
    AuditFailed = "wp_codebox_audit_failed", Internal, 500, 1;
    /// A defect of ours; the message carries the detail.
    Internal = "wp_codebox_internal", Internal, 500, 1;
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error as it crosses a process border.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// Stable code.
    pub code: ErrorCode,
    /// One sentence: what is wrong and what to do. Never a secret.
    pub message: String,
    /// Further things to try, each one line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// Structured detail; an object, never empty. Boxed to keep `Result`s small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<serde_json::Map<String, serde_json::Value>>>,
}

impl ErrorBody {
    /// A body without hints or data.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hints: Vec::new(),
            data: None,
        }
    }

    /// The same body with one more hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The same body with one more member in `data`.
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
    fn codes_are_unique_and_round_trip() {
        let texts: BTreeSet<_> = ErrorCode::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(texts.len(), ErrorCode::ALL.len());
        for code in ErrorCode::ALL {
            let json = serde_json::to_string(code).unwrap();
            assert_eq!(json, format!("\"{code}\""));
            assert_eq!(serde_json::from_str::<ErrorCode>(&json).unwrap(), *code);
            assert!((400..600).contains(&code.http_status()), "{code}");
            assert!(
                [1, 3, 124, 125, 126, 130].contains(&code.exit_status()),
                "{code}"
            );
        }
    }
}
