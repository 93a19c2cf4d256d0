<?php
/**
 * Stages an apply as a pending action that another user accepts.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Review;

use Throwable;
use WP_Error;
use WPCodebox\Apply\ApplyPayload;
use WPCodebox\Apply\ArtifactService;
use WPCodebox\AuditTrail;
use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * A host plugin stores the pending action; this plugin stores none. A staged apply has passed every check of
 * an apply. It contains the sha256 of the manifest and the approval token that binds files and directories,
 * so accepting it applies exactly this change or nothing.
 */
final class StageService {

	public const KIND = 'wp_codebox_apply_back';

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param ExtensionGate $gate     Check that the PHP extension is loaded and its version fits.
	 * @param ApplyPayload  $payloads Builds verified and filtered changes.
	 * @param AuditTrail    $audit    Audit log that records each decision.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly ApplyPayload $payloads,
		private readonly AuditTrail $audit
	) {}

	/**
	 * Stages an apply.
	 *
	 * @param array<string, mixed> $input     Input of an apply; `summary?`, `agent_id?`, `user_id?`,
	 *   `context?`.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, mixed> `wp-codebox/artifact-apply-stage/v1`.
	 * @throws Failure When a check fails; the audit log records the failure too.
	 */
	public function stage( array $input, Authority $authority ): array {
		$this->gate->check();
		$record = [
			'artifact_id'    => (string) ( $input['artifact_id'] ?? '' ),
			'approved_files' => array_values( array_map( 'strval', (array) ( $input['approved_files'] ?? [] ) ) ),
		];
		try {
			$user    = $this->user( $input, $authority );
			$payload = $this->payloads->build( $input, $authority );
			$known   = [
				'artifact_id'     => $payload['artifact_id'],
				'run_id'          => $payload['run_id'],
				'approved_files'  => $payload['approved_files'],
				'content_digest'  => $payload['artifact_content_digest'],
				'manifest_sha256' => $payload['manifest_sha256'],
				'patch_sha256'    => $payload['patch_sha256'],
			];
			$record  = $known + array_intersect_key( $payload, array_flip( [ 'approver', 'approver_claimed' ] ) ) + ApplyPayload::origin_record( $payload );
			$pending = $this->checked( $this->delegate( $this->arguments( $input, $payload, $user ), $payload['artifact'] ) );
		} catch ( Throwable $thrown ) {
			throw $this->audit->failure( 'stage-apply', $record, $thrown );
		}
		$success = false !== ( $pending['success'] ?? true );
		$audit   = $this->audit->write( 'stage-apply', $record + [ 'status' => $success ? 'success' : 'failure' ] );
		return [
			'success'        => $success,
			'schema'         => 'wp-codebox/artifact-apply-stage/v1',
			'verification'   => $payload['artifact_verification'],
			'pending_action' => $pending,
			'audit'          => ArtifactService::audit_reference( $audit ),
		] + $known + $pending;
	}

	/**
	 * Returns the id of the user who owns the pending action. While a user is logged in, only the operator may name
	 * another user.
	 *
	 * @param array<string, mixed> $input     Input of the staging.
	 * @param Authority            $authority User or operator the call runs as.
	 * @throws Failure `wp_codebox_forbidden`.
	 */
	private function user( array $input, Authority $authority ): int {
		$current = get_current_user_id();
		$named   = (int) ( $input['user_id'] ?? $current );
		if ( Authority::Operator !== $authority && $current > 0 && $named !== $current ) {
			throw Failure::because( ErrorCode::Forbidden, __( '"user_id" names another user; leave it out to stage the change in your own name.', 'codebox' ) );
		}
		return $named;
	}

	/**
	 * Returns the pending action for the host plugin to store.
	 *
	 * @param array<string, mixed> $input   Input of the staging.
	 * @param array<string, mixed> $payload Payload of the apply.
	 * @param int                  $user    Id of the owner.
	 * @return array<string, mixed>
	 */
	private function arguments( array $input, array $payload, int $user ): array {
		$apply = [
			'artifact_id'     => $payload['artifact_id'],
			'run_id'          => $payload['run_id'],
			'approved_files'  => $payload['approved_files'],
			'manifest_sha256' => $payload['manifest_sha256'],
			'approval'        => $payload['approval'],
		];
		foreach ( [ 'approver', 'apply_target' ] as $field ) {
			if ( ! empty( $input[ $field ] ) ) {
				$apply[ $field ] = $input[ $field ];
			}
		}
		if ( $payload['browser_origin_confirmed'] ) {
			$apply['confirm_browser_origin'] = true;
		}
		$confirmed = $this->payloads->confirm_files( $payload );
		if ( [] !== $confirmed ) {
			$apply['confirm_sensitive'] = true;
		}
		$artifact = $payload['artifact'];
		$count    = count( $payload['approved_files'] );
		$summary  = trim( (string) ( $input['summary'] ?? '' ) );
		return [
			'kind'         => self::KIND,
			/* translators: %d: number of files. */
			'summary'      => '' !== $summary ? $summary : sprintf( _n( 'Apply %d changed file.', 'Apply %d changed files.', $count, 'codebox' ), $count ),
			'apply_input'  => $apply,
			'preview_data' => array_filter(
				[
					'schema'          => 'wp-codebox/pending-apply-preview/v1',
					'artifact_id'     => $payload['artifact_id'],
					'run_id'          => $payload['run_id'],
					'content_digest'  => $payload['artifact_content_digest'],
					'manifest_sha256' => $payload['manifest_sha256'],
					'patch_sha256'    => $payload['patch_sha256'],
					'created_at'      => $artifact['created_at'] ?? null,
					'verification'    => $payload['artifact_verification'],
					'approved_files'  => $payload['approved_files'],
					'changed_files'   => $payload['changed_files'],
					'test_results'    => $artifact['test_results'] ?? null,
					'review'          => $artifact['review'] ?? null,
					'browser_origin'  => $payload['browser_origin'] ? true : null,
					'confirm_files'   => [] === $confirmed ? null : $confirmed,
				],
				static fn( mixed $value ): bool => null !== $value
			),
			'agent_id'     => (string) ( $input['agent_id'] ?? '' ),
			'user_id'      => $user,
			'context'      => (array) ( $input['context'] ?? [] ),
		];
	}

	/**
	 * Passes the pending action to the host plugin. An exception it throws is logged on the server and hidden from
	 * the caller.
	 *
	 * @param array<string, mixed> $arguments Pending action to store.
	 * @param array<string, mixed> $bundle    Artifact bundle.
	 * @throws Failure `wp_codebox_apply_result_invalid`.
	 */
	private function delegate( array $arguments, array $bundle ): mixed {
		try {
			/**
			 * Stores an apply as a pending action until a user accepts or rejects it.
			 *
			 * When a user decides, the storing plugin calls `can_resolve` of this kind's handler (filter
			 * `wp_codebox_pending_apply_artifact_handlers`). When the action is accepted, it calls the
			 * handler's `apply` with the unchanged `apply_input`.
			 *
			 * @param array|\WP_Error|null $result     Null until a plugin returns its record of the action, a
			 *   map.
			 * @param array                $stage_args {
			 *     Pending action to store.
			 *
			 *     @type string $kind         `wp_codebox_apply_back`.
			 *     @type string $summary      One sentence that describes the change to a reviewer.
			 *     @type array  $apply_input  `artifact_id`, `run_id`, `approved_files`, `manifest_sha256`, `approval`, `approver?`, `apply_target?`, `confirm_browser_origin?`.
			 *     @type array  $preview_data `wp-codebox/pending-apply-preview/v1`, for the reviewer.
			 *     @type string $agent_id     Id of the agent, given by the caller; '' for none.
			 *     @type int    $user_id      Id of the user who owns the action; 0 for none.
			 *     @type array  $context      Data that the caller attached to the action.
			 * }
			 * @param array                $bundle     Artifact bundle.
			 */
			return apply_filters( 'wp_codebox_stage_pending_apply_artifact', null, $arguments, $bundle );
		} catch ( Throwable $thrown ) {
			throw Failure::of_plugin( $thrown, ErrorCode::ApplyResultInvalid, __( 'The plugin that keeps pending actions threw an exception; the PHP error log has it. Nothing was written to the target.', 'codebox' ) );
		}
	}

	/**
	 * Validates the host plugin's record of the action.
	 *
	 * @param mixed $answer Value that the filter returned.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_pending_apply_unavailable`, or the host plugin's own.
	 */
	private function checked( mixed $answer ): array {
		if ( null === $answer ) {
			throw Failure::because(
				ErrorCode::PendingApplyUnavailable,
				__( 'No plugin on this site keeps changes that wait for a decision (pending actions), so nothing was staged.', 'codebox' ),
				[ __( 'Activate a plugin that answers the filter wp_codebox_stage_pending_apply_artifact, or apply the change at once.', 'codebox' ) ]
			);
		}
		if ( $answer instanceof WP_Error ) {
			throw Failure::from_wp_error( $answer );
		}
		if ( ! is_array( $answer ) || [] === $answer || array_is_list( $answer ) ) {
			throw Failure::because( ErrorCode::ApplyResultInvalid, __( 'The plugin that keeps pending actions returned no pending action; check in that plugin whether it has one. Nothing was written to the target.', 'codebox' ) );
		}
		return $answer;
	}
}
