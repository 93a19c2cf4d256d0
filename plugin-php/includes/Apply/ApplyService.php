<?php
/**
 * Preflight and apply of an approved change.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Apply;

use Throwable;
use WPCodebox\AuditTrail;
use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Sentence;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * The order is fixed: the extension verifies the bundle and filters the patch, the settings decide whether
 * the signature is trusted, the audit log records the start, the host plugin gets the approved part, its
 * result is validated, the audit log records the end. Every failure is recorded too.
 */
final class ApplyService {

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param ExtensionGate  $gate      Check that the PHP extension is loaded and its version fits.
	 * @param ApplyPayload   $payloads  Builds verified and filtered changes.
	 * @param ApplyResult    $results   Validates the adapter's result.
	 * @param AuditTrail     $audit     Audit log that records each decision.
	 * @param Settings       $settings  Settings that turn the adapter of this plugin on.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly ApplyPayload $payloads,
		private readonly ApplyResult $results,
		private readonly AuditTrail $audit,
		private readonly Settings $settings
	) {}

	/**
	 * Returns what an apply would change, or fails where the apply would fail.
	 *
	 * @param array<string, mixed> $input     `artifact_id`, `approved_files`, `approver?`, `apply_target?`, `manifest_sha256?`, `approval?`,
	 *   `confirm_browser_origin?`, `confirm_sensitive?`.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, mixed> `wp-codebox/artifact-apply-preflight/v1`.
	 */
	public function preflight( array $input, Authority $authority ): array {
		$payload = $this->payloads->build( $input, $authority, ConfirmationRule::Report );
		return [
			'success'         => true,
			'schema'          => 'wp-codebox/artifact-apply-preflight/v1',
			'artifact_id'     => $payload['artifact_id'],
			'run_id'          => $payload['run_id'],
			'artifact'        => $payload['artifact'],
			'approved_files'  => $payload['approved_files'],
			'changed_files'   => $payload['changed_files'],
			'patch_sha256'    => $payload['patch_sha256'],
			'content_digest'  => $payload['artifact_content_digest'],
			'manifest_sha256' => $payload['manifest_sha256'],
			'targets'         => $payload['targets'],
			'approval'        => $payload['approval'],
			'verification'    => $payload['artifact_verification'],
			'adapter'         => ApplyAdapters::next( $this->settings ),
			'confirm_files'   => $this->payloads->confirm_files( $payload ),
			'risks'           => $payload['risks'],
			'browser_origin'  => $payload['browser_origin'],
			'payload'         => $this->payloads->printable( $payload ),
		];
	}

	/**
	 * Passes the approved part of a change to the host plugin.
	 *
	 * @param array<string, mixed> $input     Input of the preflight.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, mixed> `wp-codebox/artifact-apply/v1`.
	 * @throws Failure When a check fails; the audit log records the failure too.
	 */
	public function apply( array $input, Authority $authority ): array {
		$this->gate->check();
		$record = [
			'artifact_id'    => (string) ( $input['artifact_id'] ?? '' ),
			'approved_files' => array_values( (array) ( $input['approved_files'] ?? [] ) ),
		];
		try {
			$payload = $this->payloads->build( $input, $authority );
		} catch ( Throwable $thrown ) {
			throw $this->audit->failure( 'apply', $record, $thrown );
		}
		$record = [
			'artifact_id'      => $payload['artifact_id'],
			'run_id'           => $payload['run_id'],
			'approver'         => $payload['approver'],
			'approver_claimed' => $payload['approver_claimed'],
			'approved_files'   => $payload['approved_files'],
			'content_digest'   => $payload['artifact_content_digest'],
			'manifest_sha256'  => $payload['manifest_sha256'],
			'patch_sha256'     => $payload['patch_sha256'],
			'targets'          => $payload['targets'],
		] + ( $payload['target_differs'] ? [ 'target_differs' => true ] : [] ) + ApplyPayload::origin_record( $payload );
		$this->audit->write( 'apply-approved', $record + [ 'status' => 'started' ] );

		try {
			$result = $this->results->check( $this->delegate( $payload ), $payload['approved_files'] );
		} catch ( Throwable $thrown ) {
			throw $this->audit->failure( 'apply', $record, $thrown );
		}
		$success = 'failed' !== $result['status'];
		$audit   = $this->audit_result( $record, $result, $success );
		/**
		 * Fires when the audit log has the result of an apply.
		 *
		 * @param array $result Result of the adapter, `wp-codebox/apply-result/v1`.
		 * @param array $audit  Audit record.
		 */
		do_action( 'wp_codebox_apply_recorded', $result, $audit );
		return [
			'success'         => $success,
			'schema'          => 'wp-codebox/artifact-apply/v1',
			'artifact_id'     => $payload['artifact_id'],
			'run_id'          => $payload['run_id'],
			'approved_files'  => $payload['approved_files'],
			'patch_sha256'    => $payload['patch_sha256'],
			'content_digest'  => $payload['artifact_content_digest'],
			'manifest_sha256' => $payload['manifest_sha256'],
			'verification'    => $payload['artifact_verification'],
			'result'          => $result,
			'audit'           => ArtifactService::audit_reference( $audit ),
		];
	}

	/**
	 * Calls the host plugin. An exception it throws is logged on the server and hidden from the caller.
	 *
	 * @param array<string, mixed> $payload Payload of the apply.
	 * @throws Failure `wp_codebox_apply_result_invalid`.
	 */
	private function delegate( array $payload ): mixed {
		try {
			/**
			 * Applies the approved part of a change.
			 *
			 * @param array|\WP_Error|null $result  Null until a plugin returns `wp-codebox/apply-result/v1`:
			 *                                      `schema`, `adapter`, `status`, `audit_reference`, `target`
			 *                                      (object) and `applied_files` (approved paths that were
			 *                                      written).
			 * @param array                $payload {
			 *     Approved change.
			 *
			 *     @type string       $artifact_id             Artifact id.
			 *     @type array        $artifact                The whole bundle record.
			 *     @type list<string> $approved_files          Approved paths, as in changed-files.
			 *     @type mixed        $approver                Approver named by the caller, else the requester.
			 *     @type bool         $approver_claimed        Whether the caller named `approver`, unverified.
			 *     @type array        $requester               Authenticated user or operator: `{kind, id, login}`.
			 *     @type array|null   $apply_target            The caller's `apply_target`.
			 *     @type string       $patch                   Patch of the approved files only, raw bytes.
			 *     @type string       $patch_sha256            SHA-256 of `patch`.
			 *     @type array        $artifact_content_digest `{algorithm, inputs, value}`.
			 *     @type array        $artifact_verification   `wp-codebox/artifact-bundle-verification/v1`.
			 *     @type list<array>  $changed_files           Approved entries of changed-files.
			 *     @type list<array>  $risks                   `{path, flag, sentence, confirm}` of approved files that
			 *                                                 programs run or obey by their name.
			 *     @type list<array>  $mount_patches           `{mount_target, mount_index, patch, sha256}`, names relative to the mount.
			 *     @type string       $manifest_sha256         SHA-256 of the bundle manifest.
			 *     @type string       $run_id                  Id of the run that made the change.
			 *     @type array        $targets                 Host directory by mount target (directory in the guest).
			 *     @type bool         $target_differs          Whether a target is other code than the run mounted.
			 *     @type string       $approval                HMAC over manifest, approved files, patch, targets.
			 *     @type bool         $confirm_sensitive       Whether the files of `risks` with `confirm`, must-use plugins
			 *                                                 and drop-ins were confirmed as well; always true with one of
			 *                                                 them.
			 *     @type bool         $browser_origin          Whether a browser uploaded the contents; this host did
			 *                                                 not see their code run.
			 *     @type bool         $browser_origin_confirmed Whether a user who may apply changes confirmed that;
			 *                                                 always true with `browser_origin`.
			 * }
			 */
			return apply_filters( 'wp_codebox_apply_approved_artifact', null, $payload );
		} catch ( Throwable $thrown ) {
			throw Failure::of_plugin( $thrown, ErrorCode::ApplyResultInvalid, __( 'The plugin that applies approved changes threw an exception; the PHP error log has it. Check the target directory by hand: some files may have been written.', 'codebox' ) );
		}
	}

	/**
	 * Records the host plugin's result in the audit log.
	 *
	 * @param array<string, mixed> $record  Audit record of the request.
	 * @param array<string, mixed> $result  Apply result.
	 * @param bool                 $success Whether the result reports success.
	 * @return array<string, mixed>
	 */
	private function audit_result( array $record, array $result, bool $success ): array {
		$kept = array_intersect_key( $result, array_flip( [ 'schema', 'adapter', 'status', 'audit_reference', 'target', 'applied_files', 'commit', 'commit_url', 'pr_url', 'branch', 'message', 'health', 'conflicts' ] ) );
		if ( is_string( $kept['message'] ?? null ) ) {
			$kept['message'] = Sentence::english( $kept['message'] );
		}
		foreach ( $kept['health']['pages'] ?? [] as $index => $page ) {
			$kept['health']['pages'][ $index ]['name'] = Sentence::english( $page['name'] );
		}
		try {
			return $this->audit->write(
				'apply',
				$record + [
					'status'  => $success ? 'success' : 'failure',
					'adapter' => $result['adapter'],
					'result'  => $kept,
				]
			);
		} catch ( Failure $failure ) {
			throw Failure::because(
				ErrorCode::AuditFailed,
				__( 'The change was applied or passed on, but the audit log could not be written; note the change by hand and repair the state directory.', 'codebox' ),
				$failure->hints,
				[ 'result' => $kept ]
			);
		}
	}
}
