<?php
/**
 * Result that a host plugin returns for a review decision.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Review;

use WP_Error;
use WPCodebox\Apply\ApplyResult;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * A host plugin can handle a decision: it returns `wp-codebox/artifact-review-result/v1`, or
 * `wp-codebox/apply-result/v1` when it applied an approved change itself.
 */
final class ReviewResult {

	public const SCHEMA   = 'wp-codebox/artifact-review-result/v1';
	private const APPLIED = 'wp-codebox/apply-result/v1';

	/**
	 * Creates the check with its dependencies.
	 *
	 * @param ApplyResult $applied Validator of apply results.
	 */
	public function __construct( private readonly ApplyResult $applied ) {}

	/**
	 * Validates the value that the filter returned.
	 *
	 * @param mixed                $answer   Value that the filter returned; not null.
	 * @param array<string, mixed> $decision Decision of the caller, with user and time.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_review_result_invalid`, or the host plugin's own.
	 */
	public function check( mixed $answer, array $decision ): array {
		if ( $answer instanceof WP_Error ) {
			throw Failure::from_wp_error( $answer );
		}
		if ( is_array( $answer ) && self::APPLIED === ( $answer['schema'] ?? null ) ) {
			// A rejection approves no file, so an apply result for it cannot name any.
			return $this->applied->check( $answer, ReviewDecision::APPROVE === $decision['action'] ? $decision['approved_files'] : [] );
		}
		$faults = is_array( $answer ) ? $this->faults( $answer ) : [ __( 'it is not an array', 'codebox' ) ];
		if ( [] !== $faults ) {
			throw Failure::because(
				ErrorCode::ReviewResultInvalid,
				/* translators: 1: name of a schema, 2: what is wrong. */
				Sentence::of( __( 'The plugin that takes review decisions did not return %1$s: %2$s. Check in that plugin whether the decision took effect.', 'codebox' ), self::SCHEMA, Sentence::join( ', ', $faults ) ),
				[],
				[ 'faults' => $faults ]
			);
		}
		// The decision has taken effect, so a message that is no text must not make later answers invalid.
		return [ 'schema' => self::SCHEMA ] + ( is_string( $answer['message'] ?? '' ) ? $answer : array_diff_key( $answer, [ 'message' => 1 ] ) );
	}

	/**
	 * Builds the result when no host plugin handles the decision: the decision is recorded and nothing else
	 * happens.
	 *
	 * @param array<string, mixed> $decision Decision of the caller, with user and time.
	 * @return array<string, mixed>
	 */
	public function standard( array $decision ): array {
		return [
			'schema'          => self::SCHEMA,
			'adapter'         => 'wp-codebox/default-review-decision',
			'status'          => $decision['action'],
			'audit_reference' => ( $decision['artifact_id'] ?? $decision['run_id'] ?? 'unknown' ) . '#' . $decision['decided_at'],
		];
	}

	/**
	 * Lists all problems of a result.
	 *
	 * @param array<mixed> $answer Value that the filter returned.
	 * @return list<string>
	 */
	private function faults( array $answer ): array {
		$faults = [];
		if ( self::SCHEMA !== ( $answer['schema'] ?? self::SCHEMA ) ) {
			$faults[] = __( 'schema differs', 'codebox' );
		}
		foreach ( [ 'adapter', 'status', 'audit_reference' ] as $field ) {
			if ( ! is_string( $answer[ $field ] ?? null ) || '' === trim( $answer[ $field ] ) ) {
				/* translators: %s: name of a field. */
				$faults[] = Sentence::of( __( '%s is not text', 'codebox' ), $field );
			}
		}
		return $faults;
	}
}
