<?php
/**
 * The answer of a host plugin to a review decision.
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
 * A host plugin may take a decision over: it answers `wp-codebox/artifact-review-result/v1`,
 * or `wp-codebox/apply-result/v1` when it applied an approved change itself.
 */
final class ReviewResult {

	public const SCHEMA   = 'wp-codebox/artifact-review-result/v1';
	private const APPLIED = 'wp-codebox/apply-result/v1';

	/**
	 * Creates the check with its dependencies.
	 *
	 * @param ApplyResult $applied Check of an apply result.
	 */
	public function __construct( private readonly ApplyResult $applied ) {}

	/**
	 * Checks what the filter returned.
	 *
	 * @param mixed                $answer   What the filter returned; not null.
	 * @param array<string, mixed> $decision Decision of the caller, with user and time.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_review_result_invalid`, or the host plugin's own.
	 */
	public function check( mixed $answer, array $decision ): array {
		if ( $answer instanceof WP_Error ) {
			throw Failure::from_wp_error( $answer );
		}
		if ( is_array( $answer ) && self::APPLIED === ( $answer['schema'] ?? null ) ) {
			// Whoever rejects approves no file, so that an apply result cannot name any.
			return $this->applied->check( $answer, ReviewDecision::APPROVE === $decision['action'] ? $decision['approved_files'] : [] );
		}
		$faults = is_array( $answer ) ? $this->faults( $answer ) : [ __( 'it is not an array', 'codebox' ) ];
		if ( [] !== $faults ) {
			throw Failure::because(
				ErrorCode::ReviewResultInvalid,
				/* translators: 1: name of a schema, 2: what is wrong. */
				Sentence::of( __( 'The plugin that takes review decisions did not answer %1$s: %2$s. Look at its own records: it may have acted.', 'codebox' ), self::SCHEMA, Sentence::join( ', ', $faults ) ),
				[],
				[ 'faults' => $faults ]
			);
		}
		return [ 'schema' => self::SCHEMA ] + $answer;
	}

	/**
	 * What stands for the answer of a host plugin when there is none: the decision is
	 * on record, and nothing else happens.
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
	 * Everything wrong with an answer.
	 *
	 * @param array<mixed> $answer Result to print.
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
				$faults[] = Sentence::of( __( '%s is no text', 'codebox' ), $field );
			}
		}
		return $faults;
	}
}
