<?php
/**
 * Result that a host plugin returns after it applied a change.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Apply;

use WP_Error;
use WPCodebox\DirectApply\DirectApply;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Accepts only a complete `wp-codebox/apply-result/v1`. Any other value is a failure, because it does not
 * show which files were applied.
 */
final class ApplyResult {

	private const SCHEMA = 'wp-codebox/apply-result/v1';
	/** Optional members that are texts. */
	private const TEXTS = [ 'commit', 'commit_url', 'pr_url', 'branch', 'message' ];
	/** Members that only direct apply has. */
	private const DIRECT = [ 'health', 'conflicts' ];

	/**
	 * Validates the value that the filter returned.
	 *
	 * @param mixed        $answer   Value that the filter returned.
	 * @param list<string> $approved Paths of the approved files.
	 * @return array<string, mixed> Validated result with `target` as an object.
	 * @throws Failure `wp_codebox_apply_adapter_missing`, `wp_codebox_apply_result_invalid`, or the adapter's own.
	 */
	public function check( mixed $answer, array $approved ): array {
		if ( null === $answer ) {
			throw Failure::because(
				ErrorCode::ApplyAdapterMissing,
				__( 'No plugin on this site applies approved changes, so nothing was written.', 'codebox' ),
				[
					__( 'Activate a plugin that answers the filter wp_codebox_apply_approved_artifact.', 'codebox' ),
					__( 'Or apply the patch by hand: wp codebox artifacts diff <id> | git apply -p1.', 'codebox' ),
				]
			);
		}
		if ( $answer instanceof WP_Error ) {
			throw Failure::from_wp_error( $answer );
		}
		$faults = is_array( $answer ) ? $this->faults( $answer, $approved ) : [ __( 'it is not an array', 'codebox' ) ];
		if ( [] !== $faults ) {
			throw Failure::because(
				ErrorCode::ApplyResultInvalid,
				/* translators: 1: name of a schema, 2: what is wrong. */
				Sentence::of( __( 'The plugin that applies approved changes did not return %1$s: %2$s. Check the target directory by hand: some files may have been written.', 'codebox' ), self::SCHEMA, Sentence::join( ', ', $faults ) ),
				[],
				[ 'faults' => $faults ]
			);
		}
		return $this->fitting( $answer );
	}

	/**
	 * Returns the result without optional members that do not have their type, such as `pr_url` null: the change is applied, so
	 * they must not make the answer of the ability invalid.
	 *
	 * @param array<string, mixed> $answer Result without faults.
	 * @return array<string, mixed>
	 */
	private function fitting( array $answer ): array {
		$texts   = array_filter( array_intersect_key( $answer, array_flip( self::TEXTS ) ), 'is_string' );
		$removed = [ ...self::TEXTS, ...( DirectApply::ADAPTER === $answer['adapter'] ? [] : self::DIRECT ) ];
		return array_diff_key( $answer, array_flip( $removed ) ) + $texts;
	}

	/**
	 * Lists all problems of a result.
	 *
	 * @param array<mixed> $answer   Value that the filter returned.
	 * @param list<string> $approved Paths of the approved files.
	 * @return list<string>
	 */
	private function faults( array $answer, array $approved ): array {
		$faults = [];
		if ( self::SCHEMA !== ( $answer['schema'] ?? null ) ) {
			$faults[] = __( 'schema differs', 'codebox' );
		}
		foreach ( [ 'adapter', 'status', 'audit_reference' ] as $field ) {
			if ( ! is_string( $answer[ $field ] ?? null ) || '' === trim( $answer[ $field ] ) ) {
				/* translators: %s: name of a field. */
				$faults[] = Sentence::of( __( '%s is not text', 'codebox' ), $field );
			}
		}
		$target = $answer['target'] ?? null;
		if ( [] === (array) $target || ! is_object( $target ) && ( ! is_array( $target ) || array_is_list( $target ) ) ) {
			$faults[] = __( '"target" is not an object', 'codebox' );
		}
		$files = $answer['applied_files'] ?? null;
		if ( ! is_array( $files ) || ! array_is_list( $files ) || $files !== array_filter( $files, 'is_string' ) ) {
			$faults[] = __( '"applied_files" is not a list of paths', 'codebox' );
		} elseif ( [] !== array_diff( $files, $approved ) ) {
			$faults[] = __( '"applied_files" names a file that was not approved', 'codebox' );
		}
		return $faults;
	}
}
