<?php
/**
 * The stable error codes. Generated from ext/crates/contracts/src/code.rs by `cargo xtask generate`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

defined( 'ABSPATH' ) || exit;

/**
 * Every error code of the contract with its HTTP status and exit status. An exception of the
 * extension carries both statuses itself. This table is for the errors that PHP code raises; it
 * works without the extension, too.
 */
enum ErrorCode: string {

	case TaskMissing = 'wp_codebox_task_missing';
	case RawCodeForbidden = 'wp_codebox_raw_code_forbidden';
	case InputInvalid = 'wp_codebox_input_invalid';
	case MountInvalid = 'wp_codebox_mount_invalid';
	case MountSourceInvalid = 'wp_codebox_mount_source_invalid';
	case MountDenied = 'wp_codebox_mount_denied';
	case MountSpecialFile = 'wp_codebox_mount_special_file';
	case MountUnreadable = 'wp_codebox_mount_unreadable';
	case MountTooLarge = 'wp_codebox_mount_too_large';
	case GitUnavailable = 'wp_codebox_git_unavailable';
	case MountTargetInvalid = 'wp_codebox_mount_target_invalid';
	case MountTargetOverlap = 'wp_codebox_mount_target_overlap';
	case MountMissing = 'wp_codebox_mount_missing';
	case LimitInvalid = 'wp_codebox_limit_invalid';
	case AgentMissing = 'wp_codebox_agent_missing';
	case AgentProgramMissing = 'wp_codebox_agent_program_missing';
	case ModelMissing = 'wp_codebox_model_missing';
	case ModelInvalid = 'wp_codebox_model_invalid';
	case BudgetInvalid = 'wp_codebox_budget_invalid';
	case BudgetExhausted = 'wp_codebox_budget_exhausted';
	case AgentNoProgress = 'wp_codebox_agent_no_progress';
	case AgentBlocked = 'wp_codebox_agent_blocked';
	case ProviderUnavailable = 'wp_codebox_provider_unavailable';
	case ProviderRejected = 'wp_codebox_provider_rejected';
	case ProviderCredentialsUnavailable = 'wp_codebox_provider_credentials_unavailable';
	case ConnectorCredentialsUnavailable = 'wp_codebox_connector_credentials_unavailable';
	case SandboxToolPolicyInvalid = 'wp_codebox_sandbox_tool_policy_invalid';
	case ToolNotAllowed = 'wp_codebox_tool_not_allowed';
	case ComponentUnavailable = 'wp_codebox_component_unavailable';
	case ComponentPathMissing = 'wp_codebox_component_path_missing';
	case RuntimeTaskRequestInvalid = 'wp_codebox_runtime_task_request_invalid';
	case RuntimeTaskFailed = 'wp_codebox_runtime_task_failed';
	case AgentBundleImportFailed = 'wp_codebox_agent_bundle_import_failed';
	case AgentBundleImporterUnavailable = 'wp_codebox_agent_bundle_importer_unavailable';
	case PolicyInvalid = 'runtime-policy-invalid';
	case CommandDisallowed = 'runtime-command-disallowed';
	case PolicyUnenforceable = 'wp_codebox_policy_unenforceable';
	case CommandUnknown = 'wp_codebox_command_unknown';
	case CommandUnsupported = 'wp_codebox_command_unsupported';
	case CommandFailed = 'wp_codebox_command_failed';
	case RecipeInvalid = 'wp_codebox_recipe_invalid';
	case StepFailed = 'wp_codebox_step_failed';
	case CollectionFailed = 'wp_codebox_collection_failed';
	case ProfileInvalid = 'wp_codebox_profile_invalid';
	case ProfileNotFound = 'wp_codebox_profile_not_found';
	case SandboxNotFound = 'wp_codebox_sandbox_not_found';
	case SandboxNotHeld = 'wp_codebox_sandbox_not_held';
	case SandboxInUse = 'wp_codebox_sandbox_in_use';
	case SnapshotNotFound = 'wp_codebox_snapshot_not_found';
	case SnapshotInvalid = 'wp_codebox_snapshot_invalid';
	case SyncConflict = 'wp_codebox_sync_conflict';
	case PreviewUnavailable = 'wp_codebox_preview_unavailable';
	case BrowserUnavailable = 'wp_codebox_browser_unavailable';
	case ApiAbilityNotSupported = 'wp_codebox_api_ability_not_supported';
	case Forbidden = 'wp_codebox_forbidden';
	case Busy = 'wp_codebox_busy';
	case RunTimeout = 'wp_codebox_run_timeout';
	case MemoryLimit = 'wp_codebox_memory_limit';
	case DiskLimit = 'wp_codebox_disk_limit';
	case OutputLimit = 'wp_codebox_output_limit';
	case CaptureLimit = 'wp_codebox_capture_limit';
	case RunCancelled = 'wp_codebox_run_cancelled';
	case RunFailed = 'wp_codebox_run_failed';
	case RunNotFound = 'wp_codebox_run_not_found';
	case RunAmbiguous = 'wp_codebox_run_ambiguous';
	case TasksMissing = 'wp_codebox_tasks_missing';
	case FanoutWorkersMissing = 'wp_codebox_fanout_workers_missing';
	case FanoutWorkerInvalid = 'wp_codebox_fanout_worker_invalid';
	case FanoutWorkerIdInvalid = 'wp_codebox_fanout_worker_id_invalid';
	case FanoutWorkerIdDuplicate = 'wp_codebox_fanout_worker_id_duplicate';
	case FanoutWorkerGoalMissing = 'wp_codebox_fanout_worker_goal_missing';
	case FanoutWorkerDependencyInvalid = 'wp_codebox_fanout_worker_dependency_invalid';
	case FanoutConcurrencyInvalid = 'wp_codebox_fanout_concurrency_invalid';
	case SandboxStartFailed = 'wp_codebox_sandbox_start_failed';
	case IsolationUnavailable = 'wp_codebox_isolation_unavailable';
	case GuestIdsExhausted = 'wp_codebox_guest_ids_exhausted';
	case SandboxWrapperMissing = 'wp_codebox_sandbox_wrapper_missing';
	case EgressDenied = 'wp_codebox_egress_denied';
	case EgressFailed = 'wp_codebox_egress_failed';
	case EgressUnavailable = 'wp_codebox_egress_unavailable';
	case SecretInvalid = 'wp_codebox_secret_invalid';
	case ExtensionMissing = 'wp_codebox_extension_missing';
	case ExtensionStale = 'wp_codebox_extension_stale';
	case ConfigInvalid = 'wp_codebox_config_invalid';
	case StateDirInvalid = 'wp_codebox_state_dir_invalid';
	case RunnerUnavailable = 'wp_codebox_runner_unavailable';
	case TemplateFailed = 'wp_codebox_template_failed';
	case BundleWriteFailed = 'wp_codebox_bundle_write_failed';
	case CheckFailed = 'wp_codebox_check_failed';
	case SecretInPatch = 'wp_codebox_secret_in_patch';
	case BaselineChanged = 'wp_codebox_baseline_changed';
	case ArtifactIdMissing = 'wp_codebox_artifact_id_missing';
	case ArtifactNotFound = 'wp_codebox_artifact_not_found';
	case ArtifactAmbiguous = 'wp_codebox_artifact_ambiguous';
	case ArtifactOutsideRoot = 'wp_codebox_artifact_outside_root';
	case ArtifactVerificationFailed = 'wp_codebox_artifact_verification_failed';
	case ArtifactUntrusted = 'wp_codebox_artifact_untrusted';
	case ArtifactChanged = 'wp_codebox_artifact_changed';
	case ArtifactTooLarge = 'wp_codebox_artifact_too_large';
	case ArtifactImportSourceMissing = 'wp_codebox_artifact_import_source_missing';
	case ArtifactImportSourceInvalid = 'wp_codebox_artifact_import_source_invalid';
	case ArtifactImportIdMismatch = 'wp_codebox_artifact_import_id_mismatch';
	case ArtifactImportDigestMismatch = 'wp_codebox_artifact_import_digest_mismatch';
	case ArtifactImportConflict = 'wp_codebox_artifact_import_conflict';
	case ArtifactImportCopyFailed = 'wp_codebox_artifact_import_copy_failed';
	case ArtifactExportFailed = 'wp_codebox_artifact_export_failed';
	case ReplayUnavailable = 'wp_codebox_replay_unavailable';
	case ReviewActionMissing = 'wp_codebox_review_action_missing';
	case ReviewActionInvalid = 'wp_codebox_review_action_invalid';
	case ReviewResultInvalid = 'wp_codebox_review_result_invalid';
	case PendingApplyUnavailable = 'wp_codebox_pending_apply_unavailable';
	case ApprovedFilesMissing = 'wp_codebox_approved_files_missing';
	case ApprovedFilesInvalid = 'wp_codebox_approved_files_invalid';
	case PatchUnfilterable = 'wp_codebox_patch_unfilterable';
	case ApplyConflict = 'wp_codebox_apply_conflict';
	case ApplyTargetMismatch = 'wp_codebox_apply_target_mismatch';
	case FileChangesDisallowed = 'wp_codebox_file_changes_disallowed';
	case ApplyAdapterMissing = 'wp_codebox_apply_adapter_missing';
	case ApplyResultInvalid = 'wp_codebox_apply_result_invalid';
	case BrowserConnectorRequestInvalid = 'wp_codebox_browser_connector_request_invalid';
	case BrowserConnectorUnresolved = 'wp_codebox_browser_connector_unresolved';
	case BrowserConnectorProviderMismatch = 'wp_codebox_browser_connector_provider_mismatch';
	case BrowserConnectorModelMismatch = 'wp_codebox_browser_connector_model_mismatch';
	case BrowserConnectorCredentialsUnavailable = 'wp_codebox_browser_connector_credentials_unavailable';
	case BrowserConnectorHandlerMissing = 'wp_codebox_browser_connector_handler_missing';
	case BrowserConnectorHandlerFailed = 'wp_codebox_browser_connector_handler_failed';
	case BrowserConnectorResponseInvalid = 'wp_codebox_browser_connector_response_invalid';
	case BrowserProviderOperationRequired = 'wp_codebox_browser_provider_operation_required';
	case BrowserProviderRequestRequired = 'wp_codebox_browser_provider_request_required';
	case BrowserProviderConnectorRequired = 'wp_codebox_browser_provider_connector_required';
	case BrowserProviderAdapterMissing = 'wp_codebox_browser_provider_adapter_missing';
	case BrowserProviderAdapterInvalidResponse = 'wp_codebox_browser_provider_adapter_invalid_response';
	case BrowserProviderBridgePolicyInvalid = 'wp_codebox_browser_provider_bridge_policy_invalid';
	case BrowserProviderBridgeOperationUnsupported = 'wp_codebox_browser_provider_bridge_operation_unsupported';
	case BrowserProviderBridgeUriInvalid = 'wp_codebox_browser_provider_bridge_uri_invalid';
	case BrowserProviderBridgeUriForbidden = 'wp_codebox_browser_provider_bridge_uri_forbidden';
	case BrowserProviderBridgePathInvalid = 'wp_codebox_browser_provider_bridge_path_invalid';
	case BrowserProviderBridgeBaseUrlMissing = 'wp_codebox_browser_provider_bridge_base_url_missing';
	case BrowserProviderBridgeAuthenticationMissing = 'wp_codebox_browser_provider_bridge_authentication_missing';
	case BrowserProviderBridgeAuthenticationStrategyMissing = 'wp_codebox_browser_provider_bridge_authentication_strategy_missing';
	case BrowserProviderBridgeAuthenticationStrategyInvalid = 'wp_codebox_browser_provider_bridge_authentication_strategy_invalid';
	case BrowserProviderBridgeAuthenticatedRequestInvalid = 'wp_codebox_browser_provider_bridge_authenticated_request_invalid';
	case BrowserProviderBridgeAuthenticationFailed = 'wp_codebox_browser_provider_bridge_authentication_failed';
	case BrowserProviderBridgeException = 'wp_codebox_browser_provider_bridge_exception';
	case AuditFailed = 'wp_codebox_audit_failed';
	case Internal = 'wp_codebox_internal';

	/** HTTP status and exit status by code. */
	private const STATUS = [
		'wp_codebox_task_missing' => [ 400, 1 ],
		'wp_codebox_raw_code_forbidden' => [ 400, 1 ],
		'wp_codebox_input_invalid' => [ 400, 1 ],
		'wp_codebox_mount_invalid' => [ 400, 1 ],
		'wp_codebox_mount_source_invalid' => [ 400, 1 ],
		'wp_codebox_mount_denied' => [ 403, 126 ],
		'wp_codebox_mount_special_file' => [ 400, 1 ],
		'wp_codebox_mount_unreadable' => [ 400, 1 ],
		'wp_codebox_mount_too_large' => [ 413, 1 ],
		'wp_codebox_git_unavailable' => [ 400, 1 ],
		'wp_codebox_mount_target_invalid' => [ 400, 1 ],
		'wp_codebox_mount_target_overlap' => [ 400, 1 ],
		'wp_codebox_mount_missing' => [ 400, 1 ],
		'wp_codebox_limit_invalid' => [ 400, 1 ],
		'wp_codebox_agent_missing' => [ 400, 1 ],
		'wp_codebox_agent_program_missing' => [ 400, 125 ],
		'wp_codebox_model_missing' => [ 400, 1 ],
		'wp_codebox_model_invalid' => [ 400, 1 ],
		'wp_codebox_budget_invalid' => [ 400, 1 ],
		'wp_codebox_budget_exhausted' => [ 507, 3 ],
		'wp_codebox_agent_no_progress' => [ 507, 3 ],
		'wp_codebox_agent_blocked' => [ 409, 3 ],
		'wp_codebox_provider_unavailable' => [ 502, 1 ],
		'wp_codebox_provider_rejected' => [ 502, 3 ],
		'wp_codebox_provider_credentials_unavailable' => [ 403, 126 ],
		'wp_codebox_connector_credentials_unavailable' => [ 403, 126 ],
		'wp_codebox_sandbox_tool_policy_invalid' => [ 400, 1 ],
		'wp_codebox_tool_not_allowed' => [ 403, 126 ],
		'wp_codebox_component_unavailable' => [ 422, 125 ],
		'wp_codebox_component_path_missing' => [ 400, 1 ],
		'wp_codebox_runtime_task_request_invalid' => [ 400, 1 ],
		'wp_codebox_runtime_task_failed' => [ 500, 1 ],
		'wp_codebox_agent_bundle_import_failed' => [ 500, 1 ],
		'wp_codebox_agent_bundle_importer_unavailable' => [ 422, 125 ],
		'runtime-policy-invalid' => [ 400, 126 ],
		'runtime-command-disallowed' => [ 403, 126 ],
		'wp_codebox_policy_unenforceable' => [ 422, 126 ],
		'wp_codebox_command_unknown' => [ 400, 1 ],
		'wp_codebox_command_unsupported' => [ 422, 1 ],
		'wp_codebox_command_failed' => [ 409, 1 ],
		'wp_codebox_recipe_invalid' => [ 400, 1 ],
		'wp_codebox_step_failed' => [ 409, 1 ],
		'wp_codebox_collection_failed' => [ 409, 1 ],
		'wp_codebox_profile_invalid' => [ 400, 1 ],
		'wp_codebox_profile_not_found' => [ 404, 1 ],
		'wp_codebox_sandbox_not_found' => [ 404, 1 ],
		'wp_codebox_sandbox_not_held' => [ 409, 1 ],
		'wp_codebox_sandbox_in_use' => [ 409, 1 ],
		'wp_codebox_snapshot_not_found' => [ 404, 1 ],
		'wp_codebox_snapshot_invalid' => [ 400, 1 ],
		'wp_codebox_sync_conflict' => [ 409, 1 ],
		'wp_codebox_preview_unavailable' => [ 503, 1 ],
		'wp_codebox_browser_unavailable' => [ 503, 125 ],
		'wp_codebox_api_ability_not_supported' => [ 404, 1 ],
		'wp_codebox_forbidden' => [ 403, 126 ],
		'wp_codebox_busy' => [ 429, 125 ],
		'wp_codebox_run_timeout' => [ 504, 124 ],
		'wp_codebox_memory_limit' => [ 507, 1 ],
		'wp_codebox_disk_limit' => [ 507, 1 ],
		'wp_codebox_output_limit' => [ 507, 1 ],
		'wp_codebox_capture_limit' => [ 507, 1 ],
		'wp_codebox_run_cancelled' => [ 409, 130 ],
		'wp_codebox_run_failed' => [ 500, 1 ],
		'wp_codebox_run_not_found' => [ 404, 1 ],
		'wp_codebox_run_ambiguous' => [ 409, 1 ],
		'wp_codebox_tasks_missing' => [ 400, 1 ],
		'wp_codebox_fanout_workers_missing' => [ 400, 1 ],
		'wp_codebox_fanout_worker_invalid' => [ 400, 1 ],
		'wp_codebox_fanout_worker_id_invalid' => [ 400, 1 ],
		'wp_codebox_fanout_worker_id_duplicate' => [ 400, 1 ],
		'wp_codebox_fanout_worker_goal_missing' => [ 400, 1 ],
		'wp_codebox_fanout_worker_dependency_invalid' => [ 400, 1 ],
		'wp_codebox_fanout_concurrency_invalid' => [ 400, 1 ],
		'wp_codebox_sandbox_start_failed' => [ 503, 125 ],
		'wp_codebox_isolation_unavailable' => [ 503, 125 ],
		'wp_codebox_guest_ids_exhausted' => [ 503, 125 ],
		'wp_codebox_sandbox_wrapper_missing' => [ 503, 125 ],
		'wp_codebox_egress_denied' => [ 403, 126 ],
		'wp_codebox_egress_failed' => [ 502, 1 ],
		'wp_codebox_egress_unavailable' => [ 503, 125 ],
		'wp_codebox_secret_invalid' => [ 400, 1 ],
		'wp_codebox_extension_missing' => [ 503, 125 ],
		'wp_codebox_extension_stale' => [ 503, 125 ],
		'wp_codebox_config_invalid' => [ 503, 125 ],
		'wp_codebox_state_dir_invalid' => [ 503, 125 ],
		'wp_codebox_runner_unavailable' => [ 503, 125 ],
		'wp_codebox_template_failed' => [ 503, 125 ],
		'wp_codebox_bundle_write_failed' => [ 507, 1 ],
		'wp_codebox_check_failed' => [ 409, 3 ],
		'wp_codebox_secret_in_patch' => [ 422, 3 ],
		'wp_codebox_baseline_changed' => [ 409, 1 ],
		'wp_codebox_artifact_id_missing' => [ 400, 1 ],
		'wp_codebox_artifact_not_found' => [ 404, 1 ],
		'wp_codebox_artifact_ambiguous' => [ 409, 1 ],
		'wp_codebox_artifact_outside_root' => [ 403, 1 ],
		'wp_codebox_artifact_verification_failed' => [ 400, 1 ],
		'wp_codebox_artifact_untrusted' => [ 403, 1 ],
		'wp_codebox_artifact_changed' => [ 409, 1 ],
		'wp_codebox_artifact_too_large' => [ 413, 1 ],
		'wp_codebox_artifact_import_source_missing' => [ 400, 1 ],
		'wp_codebox_artifact_import_source_invalid' => [ 400, 1 ],
		'wp_codebox_artifact_import_id_mismatch' => [ 409, 1 ],
		'wp_codebox_artifact_import_digest_mismatch' => [ 409, 1 ],
		'wp_codebox_artifact_import_conflict' => [ 409, 1 ],
		'wp_codebox_artifact_import_copy_failed' => [ 507, 1 ],
		'wp_codebox_artifact_export_failed' => [ 507, 1 ],
		'wp_codebox_replay_unavailable' => [ 422, 1 ],
		'wp_codebox_review_action_missing' => [ 400, 1 ],
		'wp_codebox_review_action_invalid' => [ 400, 1 ],
		'wp_codebox_review_result_invalid' => [ 502, 1 ],
		'wp_codebox_pending_apply_unavailable' => [ 501, 1 ],
		'wp_codebox_approved_files_missing' => [ 400, 1 ],
		'wp_codebox_approved_files_invalid' => [ 400, 1 ],
		'wp_codebox_patch_unfilterable' => [ 400, 1 ],
		'wp_codebox_apply_conflict' => [ 409, 1 ],
		'wp_codebox_apply_target_mismatch' => [ 409, 1 ],
		'wp_codebox_file_changes_disallowed' => [ 403, 126 ],
		'wp_codebox_apply_adapter_missing' => [ 501, 1 ],
		'wp_codebox_apply_result_invalid' => [ 502, 1 ],
		'wp_codebox_browser_connector_request_invalid' => [ 400, 1 ],
		'wp_codebox_browser_connector_unresolved' => [ 404, 1 ],
		'wp_codebox_browser_connector_provider_mismatch' => [ 409, 1 ],
		'wp_codebox_browser_connector_model_mismatch' => [ 409, 1 ],
		'wp_codebox_browser_connector_credentials_unavailable' => [ 403, 126 ],
		'wp_codebox_browser_connector_handler_missing' => [ 501, 1 ],
		'wp_codebox_browser_connector_handler_failed' => [ 502, 1 ],
		'wp_codebox_browser_connector_response_invalid' => [ 502, 1 ],
		'wp_codebox_browser_provider_operation_required' => [ 400, 1 ],
		'wp_codebox_browser_provider_request_required' => [ 400, 1 ],
		'wp_codebox_browser_provider_connector_required' => [ 400, 1 ],
		'wp_codebox_browser_provider_adapter_missing' => [ 501, 1 ],
		'wp_codebox_browser_provider_adapter_invalid_response' => [ 502, 1 ],
		'wp_codebox_browser_provider_bridge_policy_invalid' => [ 500, 1 ],
		'wp_codebox_browser_provider_bridge_operation_unsupported' => [ 400, 1 ],
		'wp_codebox_browser_provider_bridge_uri_invalid' => [ 400, 1 ],
		'wp_codebox_browser_provider_bridge_uri_forbidden' => [ 403, 126 ],
		'wp_codebox_browser_provider_bridge_path_invalid' => [ 400, 1 ],
		'wp_codebox_browser_provider_bridge_base_url_missing' => [ 500, 1 ],
		'wp_codebox_browser_provider_bridge_authentication_missing' => [ 500, 1 ],
		'wp_codebox_browser_provider_bridge_authentication_strategy_missing' => [ 500, 1 ],
		'wp_codebox_browser_provider_bridge_authentication_strategy_invalid' => [ 500, 1 ],
		'wp_codebox_browser_provider_bridge_authenticated_request_invalid' => [ 500, 1 ],
		'wp_codebox_browser_provider_bridge_authentication_failed' => [ 502, 1 ],
		'wp_codebox_browser_provider_bridge_exception' => [ 502, 1 ],
		'wp_codebox_audit_failed' => [ 500, 1 ],
		'wp_codebox_internal' => [ 500, 1 ],
	];

	/** HTTP status for `WP_Error` `data.status`. */
	public function http_status(): int {
		return self::STATUS[ $this->value ][0];
	}

	/** Exit status of a command that fails with this code. */
	public function exit_status(): int {
		return self::STATUS[ $this->value ][1];
	}
}
