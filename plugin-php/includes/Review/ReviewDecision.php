<?php
/**
 * Decision of a reviewer.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Review;

use WPCodebox\AuditTrail;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Builds `wp-codebox/artifact-review-decision/v1` from the reviewer's input and the data of the bundle that the decision
 * is about.
 */
final class ReviewDecision {

	public const APPROVE = 'approve';
	public const ACTIONS = [ self::APPROVE, 'reject', 'request-changes' ];

	private const MESSAGE = 'wp-codebox:artifact-review-decision';

	/**
	 * Creates the reader with its dependencies.
	 *
	 * @param AuditTrail $audit Audit log; supplies requester and approver.
	 */
	public function __construct( private readonly AuditTrail $audit ) {}

	/**
	 * Returns the action that the reviewer chose: `approve`, `reject` or `request-changes`.
	 *
	 * @param array<string, mixed> $input Input of the ability review-artifact.
	 * @throws Failure `wp_codebox_review_action_missing`, `wp_codebox_review_action_invalid`.
	 */
	public function action( array $input ): string {
		$action = trim( (string) ( $input['action'] ?? '' ) );
		if ( '' === $action ) {
			/* translators: %s: list of actions. */
			throw Failure::because( ErrorCode::ReviewActionMissing, Sentence::of( __( 'No review action was given; give one of %s.', 'codebox' ), implode( ', ', self::ACTIONS ) ) );
		}
		if ( ! in_array( $action, self::ACTIONS, true ) ) {
			/* translators: %s: list of actions. */
			throw Failure::because( ErrorCode::ReviewActionInvalid, Sentence::of( __( 'There is no such review action; give one of %s.', 'codebox' ), implode( ', ', self::ACTIONS ) ) );
		}
		return $action;
	}

	/**
	 * Builds the decision document. Missing optional values are omitted.
	 *
	 * @param string               $action       Action of the decision.
	 * @param array<string, mixed> $input        Input of the ability review-artifact.
	 * @param array<string, mixed> $artifact     Bundle, as far as it can be read.
	 * @param array<string, mixed> $verification Report of the bundle verifier.
	 * @return array<string, mixed> `wp-codebox/artifact-review-decision/v1`.
	 */
	public function document( string $action, array $input, array $artifact, array $verification ): array {
		$provenance = array_filter(
			[
				'artifact' => $artifact['metadata']['provenance'] ?? null,
				'review'   => $artifact['review']['provenance'] ?? null,
			]
		);
		$decision   = [
			'schema'                   => 'wp-codebox/artifact-review-decision/v1',
			'action'                   => $action,
			'artifact_id'              => $artifact['artifact_id'] ?? null,
			'run_id'                   => $artifact['run_id'] ?? null,
			'approved_files'           => array_values( array_unique( array_map( 'strval', (array) ( $input['approved_files'] ?? [] ) ) ) ),
			...$this->audit->approver( $input ),
			'reason'                   => $input['reason'] ?? null,
			'decided_at'               => $this->decided_at( $input ),
			'source'                   => 'wp-codebox/review-artifact',
			'provenance'               => $provenance,
			'content_digest'           => $artifact['manifest']['contentDigest'] ?? null,
			'manifest_sha256'          => $verification['manifest_sha256'] ?? null,
			'reviewed_manifest_sha256' => $input['manifest_sha256'] ?? null,
			'apply_target'             => $input['apply_target'] ?? null,
			'requester'                => $this->audit->requester(),
			'context'                  => $input['context'] ?? null,
		];
		return array_filter( $decision, static fn( mixed $value, string $field ): bool => 'approved_files' === $field || ( null !== $value && '' !== $value && [] !== $value ), ARRAY_FILTER_USE_BOTH );
	}

	/**
	 * Adds to an approval the host directories that the apply will write to, and whether a user confirmed that a browser
	 * uploaded the contents.
	 *
	 * @param array<string, mixed> $decision Decision of the caller, with user and time.
	 * @param array<string, mixed> $payload  Payload of the following apply.
	 * @return array<string, mixed>
	 */
	public function bound( array $decision, array $payload ): array {
		return $decision + array_filter( array_intersect_key( $payload, array_flip( [ 'targets', 'target_differs', 'browser_origin_confirmed' ] ) ) );
	}

	/**
	 * Returns the decision as a message with a type, for other plugins.
	 *
	 * @param array<string, mixed> $decision Decision of the caller, with user and time.
	 * @return array<string, mixed>
	 */
	public function message( array $decision ): array {
		return [
			'type'     => self::MESSAGE,
			'decision' => $decision,
		];
	}

	/**
	 * Returns the fields of the decision that the audit log stores.
	 *
	 * @param array<string, mixed> $decision Decision of the caller, with user and time.
	 * @return array<string, mixed>
	 */
	public function record( array $decision ): array {
		return array_intersect_key( $decision, array_flip( [ 'action', 'artifact_id', 'run_id', 'approved_files', 'approver', 'approver_claimed', 'reason', 'decided_at', 'content_digest', 'manifest_sha256', 'reviewed_manifest_sha256', 'targets', 'target_differs', 'browser_origin_confirmed' ] ) );
	}

	/**
	 * Returns the time of the decision: from the input, else now.
	 *
	 * @param array<string, mixed> $input Input of the ability review-artifact.
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	private function decided_at( array $input ): string {
		$given = trim( (string) ( $input['decided_at'] ?? '' ) );
		if ( '' === $given ) {
			return gmdate( 'Y-m-d\TH:i:s\Z' );
		}
		if ( 1 !== preg_match( '/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/D', $given ) || false === strtotime( $given ) ) {
			throw Failure::invalid_input( __( '"decided_at" is not an RFC 3339 time; write it as 2026-01-31T12:00:00Z, or leave it out.', 'codebox' ) );
		}
		return $given;
	}
}
