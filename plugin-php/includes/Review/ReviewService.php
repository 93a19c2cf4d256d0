<?php
/**
 * Records review decisions about bundles.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Review;

use Throwable;
use WPCodebox\Apply\ApplyPayload;
use WPCodebox\Apply\ApplyService;
use WPCodebox\Apply\ArtifactService;
use WPCodebox\AuditTrail;
use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * An approval passes all checks of an apply before any hook runs, and needs the apply capability. A rejection
 * or a request for changes is possible for every bundle, even a damaged or modified one: the verifier's
 * report is part of the result. Every decision, also a refused one, is one line of the audit log.
 */
final class ReviewService {

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param ExtensionGate   $gate         Check that the PHP extension is loaded and its version fits.
	 * @param ArtifactService $artifacts    Reader of the artifact bundles.
	 * @param ApplyPayload    $payloads     Builds the payload of an apply.
	 * @param ApplyService    $applies      Applies changes.
	 * @param ReviewDecision  $decisions    Builds decision documents.
	 * @param ReviewResult    $results      Validates the host plugin's result.
	 * @param Capabilities    $capabilities Permission checks of the user.
	 * @param AuditTrail      $audit        Audit log that records each decision.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly ArtifactService $artifacts,
		private readonly ApplyPayload $payloads,
		private readonly ApplyService $applies,
		private readonly ReviewDecision $decisions,
		private readonly ReviewResult $results,
		private readonly Capabilities $capabilities,
		private readonly AuditTrail $audit
	) {}

	/**
	 * Carries out a review decision and records it in the audit log.
	 *
	 * @param array<string, mixed> $input     Ability input: `artifact_id`, `action`, the apply fields for an
	 *   approval; `reason?`, `decided_at?`, `context?`.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, mixed> `wp-codebox/artifact-review-result/v1`.
	 * @throws Failure When a check fails; the audit log records the failure too.
	 */
	public function review( array $input, Authority $authority ): array {
		$this->gate->check();
		$record = [
			'artifact_id'    => (string) ( $input['artifact_id'] ?? '' ),
			'action'         => (string) ( $input['action'] ?? '' ),
			'approved_files' => array_values( array_map( 'strval', (array) ( $input['approved_files'] ?? [] ) ) ),
		];
		try {
			$action = $this->decisions->action( $input );
			$this->assert_may( $action, $authority );
			$artifact     = $this->artifacts->artifact( $input );
			$verification = $this->artifacts->verification( $artifact );
			// The report reaches hooks and callers, which must not see host paths.
			unset( $verification['manifest'], $verification['bundleDirectory'] );
			$decision = $this->decisions->document( $action, $input, $artifact, $verification );
			$record   = $this->decisions->record( $decision );
			if ( ReviewDecision::APPROVE === $action ) {
				$payload  = $this->payloads->build( $input, $authority );
				$decision = $this->decisions->bound( $decision, $payload );
				$record   = $this->decisions->record( $decision );
				$input    = $this->bound( $input, $decision, $payload );
				// The host plugin may write files from here on, so the decision is recorded first.
				$this->audit->write( 'review', $record + [ 'status' => 'started' ] );
			}
			$result = $this->decided( $decision, $input, $artifact, $verification, $authority );
		} catch ( Throwable $thrown ) {
			throw $this->audit->failure( 'review', $record, $thrown );
		}
		$success = 'failed' !== $result['status'];
		$audit   = $this->audit->write(
			'review',
			$record + [
				'status'  => $success ? 'success' : 'failure',
				'adapter' => $result['adapter'],
				'result'  => array_intersect_key( $result, array_flip( [ 'schema', 'status', 'audit_reference', 'applied_files', 'message' ] ) ),
			]
		);
		return [
			'success'      => $success,
			'schema'       => ReviewResult::SCHEMA,
			'action'       => $action,
			'verification' => $verification,
			'decision'     => $decision,
			'message'      => $this->decisions->message( $decision ),
			'result'       => $result,
			'audit'        => ArtifactService::audit_reference( $audit ),
		] + array_intersect_key( $decision, array_flip( [ 'artifact_id', 'run_id', 'approved_files', 'content_digest', 'manifest_sha256' ] ) );
	}

	/**
	 * Requires the apply capability for an approval; the ability itself checks only the review capability.
	 *
	 * @param string    $action    Action of the decision.
	 * @param Authority $authority User or operator the call runs as.
	 * @throws Failure `wp_codebox_forbidden`.
	 */
	private function assert_may( string $action, Authority $authority ): void {
		if ( ReviewDecision::APPROVE === $action && Authority::Operator !== $authority && ! $this->capabilities->allows( Capabilities::APPLY ) ) {
			throw Failure::because(
				ErrorCode::Forbidden,
				/* translators: %s: name of a capability. */
				Sentence::of( __( 'Approving a change also applies it, and this user lacks the capability %s.', 'codebox' ), Capabilities::APPLY ),
				[ __( 'Reject the bundle or request changes to it, or ask a user with this capability to approve it.', 'codebox' ) ]
			);
		}
	}

	/**
	 * Returns the input of the apply, bound to the bundle and directories that were just checked.
	 *
	 * @param array<string, mixed> $input    Input of the review.
	 * @param array<string, mixed> $decision Decision of the caller, with user and time.
	 * @param array<string, mixed> $payload  Payload of the apply.
	 * @return array<string, mixed>
	 */
	private function bound( array $input, array $decision, array $payload ): array {
		$input['artifact_id']     = $payload['run_id'];
		$input['manifest_sha256'] = $payload['manifest_sha256'];
		$input['approval']        = $payload['approval'];
		$input['approved_files']  = $decision['approved_files'];
		return $input;
	}

	/**
	 * Passes the decision to the host plugin. Without an answer, applies an approval and only records any other decision.
	 *
	 * @param array<string, mixed> $decision     Decision of the caller, with user and time.
	 * @param array<string, mixed> $input        Input of the review.
	 * @param array<string, mixed> $artifact     Artifact bundle.
	 * @param array<string, mixed> $verification Report of the bundle verifier.
	 * @param Authority            $authority    User or operator the call runs as.
	 * @return array<string, mixed>
	 */
	private function decided( array $decision, array $input, array $artifact, array $verification, Authority $authority ): array {
		$answer = $this->ask( $decision, $artifact, $verification );
		if ( null !== $answer ) {
			return $this->results->check( $answer, $decision );
		}
		if ( ReviewDecision::APPROVE === $decision['action'] ) {
			return $this->applies->apply( $input, $authority )['result'];
		}
		return $this->results->standard( $decision );
	}

	/**
	 * Calls the host plugin. An exception it throws is logged on the server and hidden from the caller.
	 *
	 * @param array<string, mixed> $decision     Decision of the caller, with user and time.
	 * @param array<string, mixed> $artifact     Artifact bundle.
	 * @param array<string, mixed> $verification Report of the bundle verifier.
	 * @throws Failure `wp_codebox_review_result_invalid`.
	 */
	private function ask( array $decision, array $artifact, array $verification ): mixed {
		try {
			/**
			 * Handles a review decision in a host plugin.
			 *
			 * An approval reaches this filter only when an apply of the same files would pass every check. A
			 * rejected bundle may be damaged: see `artifact_verification`.
			 *
			 * @param array|\WP_Error|null $result  Null until a plugin returns
			 *                                      `wp-codebox/artifact-review-result/v1` (`adapter`,
			 *                                      `status`, `audit_reference`), or
			 *                                      `wp-codebox/apply-result/v1` when it applied an approved
			 *                                      change itself. If it stays null, an approval is applied
			 *                                      and any other decision is only recorded.
			 * @param array                $request {
			 *     Decision of the reviewer.
			 *
			 *     @type array $decision              `wp-codebox/artifact-review-decision/v1`.
			 *     @type array $message               The decision as a message: `type`, `decision`.
			 *     @type array $artifact              The bundle, as far as it can be read.
			 *     @type array $artifact_verification `wp-codebox/artifact-bundle-verification/v1`.
			 * }
			 */
			return apply_filters(
				'wp_codebox_review_artifact_decision',
				null,
				[
					'decision'              => $decision,
					'message'               => $this->decisions->message( $decision ),
					'artifact'              => $artifact,
					'artifact_verification' => $verification,
				]
			);
		} catch ( Throwable $thrown ) {
			throw Failure::of_plugin( $thrown, ErrorCode::ReviewResultInvalid, __( 'The plugin that takes review decisions threw an exception; the PHP error log has it. Check in that plugin whether the decision took effect.', 'codebox' ) );
		}
	}
}
