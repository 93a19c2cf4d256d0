<?php
/**
 * Failures of references to blueprints.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/** Builds the failure for each reason why a reference gives no blueprint. */
final class RefFailure {

	/**
	 * Builds the failure for a reason of `SiteStatus`.
	 *
	 * @param string               $reason Reason of the resolution.
	 * @param array<string, mixed> $ref    Reference, `wp-codebox/browser-blueprint-ref/v1`.
	 */
	public static function because( string $reason, array $ref ): Failure {
		return match ( $reason ) {
			'foreign'             => self::foreign(),
			'expired_transient'   => self::expired( $ref ),
			'replayed'            => self::failure( ErrorCode::BrowserBlueprintRefReplayed, __( 'The session of this blueprint reference has ended; create a new session.', 'codebox' ), $ref ),
			'input_hash_mismatch' => self::failure( ErrorCode::BrowserBlueprintRefInputHashMismatch, __( 'The code or the blueprint of the site in the browser changed since this blueprint reference was made; create a new session.', 'codebox' ), $ref ),
			'incompatible'        => self::failure( ErrorCode::BrowserBlueprintRefInputHashMismatch, __( 'WordPress or the browser runtime of this site was updated since this blueprint reference was made; create a new session.', 'codebox' ), $ref ),
			'hydratable_ref_missing' => self::failure( ErrorCode::BrowserBlueprintRefMissing, __( 'Name a blueprint: give "ref", or "cache_key" and "input_hash".', 'codebox' ), $ref ),
			default               => self::failure( ErrorCode::BrowserBlueprintRefCacheMiss, __( 'This site no longer has the blueprint; create a new session from the same inputs.', 'codebox' ), $ref ),
		};
	}

	/** Builds the failure of a reference that belongs to another user or site. */
	public static function foreign(): Failure {
		return Failure::because( ErrorCode::BrowserBlueprintRefForeign, __( 'This blueprint reference belongs to another user or site; create a session of your own.', 'codebox' ) );
	}

	/**
	 * Builds the failure of an expired reference.
	 *
	 * @param array<string, mixed> $ref Reference.
	 */
	public static function expired( array $ref = [] ): Failure {
		return self::failure( ErrorCode::BrowserBlueprintRefExpired, __( 'This blueprint reference has expired; create a new session from the same inputs.', 'codebox' ), $ref );
	}

	/**
	 * Builds a failure whose data says how to go on.
	 *
	 * @param ErrorCode            $code    Error code.
	 * @param string               $message Error message, one sentence.
	 * @param array<string, mixed> $ref     Reference.
	 */
	private static function failure( ErrorCode $code, string $message, array $ref ): Failure {
		return Failure::because(
			$code,
			$message,
			[],
			[
				'schema'                   => 'wp-codebox/browser-blueprint-ref-miss/v1',
				'ref'                      => $ref['ref'] ?? '',
				'cache_key'                => $ref['cache_key'] ?? '',
				'input_hash'               => $ref['input_hash'] ?? '',
				'action'                   => 'prepare-new',
				'open_mode'                => 'materialize',
				'preview_state'            => 'miss',
				'reload_required'          => true,
				'requires_materialization' => true,
				'prepare_new_required'     => true,
			]
		);
	}
}
