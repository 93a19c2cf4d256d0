<?php
/**
 * Statements of a caller about an upload.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/** Nothing here is checked or used for a decision; a bundle stores it under `claims`, apart from facts of this host. */
final class CallerClaims {

	/** Maximum size of all statements together as JSON, in bytes. */
	private const MAX_BYTES = 65536;

	/** Maximum depth of a statement. */
	private const MAX_DEPTH = 16;

	/** Members of `session` that are stored. */
	private const SESSION = [ 'id', 'session_id', 'site_id', 'preview_id', 'status' ];

	private const FIELDS = [ 'session', 'provenance', 'caller', 'caller_schema', 'caller_schema_id', 'caller_kind', 'caller_metadata', 'materialization', 'review_hints', 'apply_target' ];

	/**
	 * Returns the statements in an input.
	 *
	 * @param array<string, mixed> $input Input of persist-browser-artifact.
	 * @param list<UploadedFile>   $files Files of the input.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	public static function of( array $input, array $files ): array {
		$claims = array_intersect_key( $input, array_flip( self::FIELDS ) );
		if ( is_array( $claims['session'] ?? null ) ) {
			// The answer that created a session contains a whole blueprint; its ids are enough.
			$claims['session'] = array_filter( array_intersect_key( $claims['session'], array_flip( self::SESSION ) ), 'is_string' );
		}
		$claims = array_filter( $claims, static fn( mixed $value ): bool => ! in_array( $value, [ null, '', [] ], true ) );
		$rows   = [];
		foreach ( $files as $file ) {
			if ( [] !== $file->claims ) {
				$rows[] = [ 'path' => $file->path ] + $file->claims;
			}
		}
		if ( [] !== $rows ) {
			$claims['files'] = $rows;
		}
		$json = wp_json_encode( $claims, 0, self::MAX_DEPTH );
		if ( ! is_string( $json ) || strlen( $json ) > self::MAX_BYTES ) {
			/* translators: 1: list of fields, 2: number of KiB. */
			throw Failure::invalid_input( Sentence::of( __( 'The fields %1$s are nested too deeply, or together are longer than %2$d KiB as JSON; shorten them.', 'codebox' ), implode( ', ', array_keys( $claims ) ), self::MAX_BYTES >> 10 ) );
		}
		return $claims;
	}
}
