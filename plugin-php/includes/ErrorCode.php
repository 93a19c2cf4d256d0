<?php
/**
 * The stable codes that PHP itself raises.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

defined( 'ABSPATH' ) || exit;

/**
 * Everything the extension raises brings its own HTTP and exit status. These are
 * the few codes that must exist without it or that describe WordPress alone; a
 * test compares each row with the table of the contracts crate.
 */
enum ErrorCode: string {

	case InputInvalid = 'wp_codebox_input_invalid';
	case LimitInvalid = 'wp_codebox_limit_invalid';
	case MountMissing = 'wp_codebox_mount_missing';
	case MountSourceInvalid = 'wp_codebox_mount_source_invalid';
	case MountDenied = 'wp_codebox_mount_denied';
	case ComponentPathMissing = 'wp_codebox_component_path_missing';
	case TaskMissing = 'wp_codebox_task_missing';
	case Busy = 'wp_codebox_busy';
	case RunCancelled = 'wp_codebox_run_cancelled';
	case RunNotFound = 'wp_codebox_run_not_found';
	case RunAmbiguous = 'wp_codebox_run_ambiguous';
	case FanoutWorkerInvalid = 'wp_codebox_fanout_worker_invalid';
	case AgentMissing = 'wp_codebox_agent_missing';
	case SecretInvalid = 'wp_codebox_secret_invalid';
	case ModelMissing = 'wp_codebox_model_missing';
	case ModelInvalid = 'wp_codebox_model_invalid';
	case BudgetInvalid = 'wp_codebox_budget_invalid';
	case ProviderCredentialsUnavailable = 'wp_codebox_provider_credentials_unavailable';
	case ConnectorCredentialsUnavailable = 'wp_codebox_connector_credentials_unavailable';
	case ToolNotAllowed = 'wp_codebox_tool_not_allowed';
	case ApiAbilityNotSupported = 'wp_codebox_api_ability_not_supported';
	case Forbidden = 'wp_codebox_forbidden';
	case ExtensionMissing = 'wp_codebox_extension_missing';
	case ExtensionStale = 'wp_codebox_extension_stale';
	case StateDirInvalid = 'wp_codebox_state_dir_invalid';
	case ArtifactIdMissing = 'wp_codebox_artifact_id_missing';
	case ArtifactOutsideRoot = 'wp_codebox_artifact_outside_root';
	case ArtifactNotFound = 'wp_codebox_artifact_not_found';
	case ArtifactVerificationFailed = 'wp_codebox_artifact_verification_failed';
	case ArtifactUntrusted = 'wp_codebox_artifact_untrusted';
	case ArtifactChanged = 'wp_codebox_artifact_changed';
	case ArtifactTooLarge = 'wp_codebox_artifact_too_large';
	case ArtifactImportSourceMissing = 'wp_codebox_artifact_import_source_missing';
	case ArtifactImportSourceInvalid = 'wp_codebox_artifact_import_source_invalid';
	case ReplayUnavailable = 'wp_codebox_replay_unavailable';
	case ReviewActionMissing = 'wp_codebox_review_action_missing';
	case ReviewActionInvalid = 'wp_codebox_review_action_invalid';
	case ReviewResultInvalid = 'wp_codebox_review_result_invalid';
	case PendingApplyUnavailable = 'wp_codebox_pending_apply_unavailable';
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

	/** HTTP status for `WP_Error` `data.status`. */
	public function http_status(): int {
		return match ( $this ) {
			self::InputInvalid, self::LimitInvalid, self::MountMissing, self::MountSourceInvalid, self::AgentMissing, self::SecretInvalid, self::ArtifactIdMissing => 400,
			self::ArtifactVerificationFailed, self::ArtifactImportSourceMissing, self::ArtifactImportSourceInvalid => 400,
			self::ReviewActionMissing, self::ReviewActionInvalid => 400,
			self::ModelMissing, self::ModelInvalid, self::BudgetInvalid, self::ComponentPathMissing => 400,
			self::BrowserConnectorRequestInvalid, self::BrowserProviderOperationRequired, self::BrowserProviderRequestRequired, self::BrowserProviderConnectorRequired => 400,
			self::BrowserProviderBridgeOperationUnsupported, self::BrowserProviderBridgeUriInvalid, self::BrowserProviderBridgePathInvalid => 400,
			self::BrowserConnectorCredentialsUnavailable, self::BrowserProviderBridgeUriForbidden => 403,
			self::BrowserConnectorUnresolved => 404,
			self::BrowserConnectorProviderMismatch, self::BrowserConnectorModelMismatch => 409,
			self::BrowserProviderBridgePolicyInvalid, self::BrowserProviderBridgeBaseUrlMissing, self::BrowserProviderBridgeAuthenticationMissing, self::BrowserProviderBridgeAuthenticationStrategyMissing => 500,
			self::BrowserProviderBridgeAuthenticationStrategyInvalid, self::BrowserProviderBridgeAuthenticatedRequestInvalid => 500,
			self::BrowserConnectorHandlerMissing, self::BrowserProviderAdapterMissing => 501,
			self::BrowserConnectorHandlerFailed, self::BrowserConnectorResponseInvalid, self::BrowserProviderAdapterInvalidResponse, self::BrowserProviderBridgeAuthenticationFailed => 502,
			self::BrowserProviderBridgeException => 502,
			self::TaskMissing, self::FanoutWorkerInvalid => 400,
			self::MountDenied, self::Forbidden, self::ArtifactOutsideRoot, self::ArtifactUntrusted, self::ProviderCredentialsUnavailable, self::ConnectorCredentialsUnavailable, self::ToolNotAllowed, self::FileChangesDisallowed => 403,
			self::ApiAbilityNotSupported, self::ArtifactNotFound, self::RunNotFound => 404,
			self::ApplyConflict, self::ApplyTargetMismatch, self::ArtifactChanged, self::RunAmbiguous, self::RunCancelled => 409,
			self::ArtifactTooLarge => 413,
			self::ReplayUnavailable => 422,
			self::Busy => 429,
			self::AuditFailed, self::Internal => 500,
			self::ApplyAdapterMissing, self::PendingApplyUnavailable => 501,
			self::ApplyResultInvalid, self::ReviewResultInvalid => 502,
			self::ExtensionMissing, self::ExtensionStale, self::StateDirInvalid => 503,
		};
	}

	/** Exit status of a command that fails with this code. */
	public function exit_status(): int {
		return match ( $this ) {
			self::Busy, self::ExtensionMissing, self::ExtensionStale, self::StateDirInvalid => 125,
			self::MountDenied, self::Forbidden, self::ProviderCredentialsUnavailable, self::ConnectorCredentialsUnavailable, self::ToolNotAllowed, self::FileChangesDisallowed, self::BrowserConnectorCredentialsUnavailable, self::BrowserProviderBridgeUriForbidden => 126,
			self::RunCancelled => 130,
			default => 1,
		};
	}
}
