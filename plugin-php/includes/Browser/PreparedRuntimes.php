<?php
/**
 * Stores what the blueprints of browser sessions are made of.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

defined( 'ABSPATH' ) || exit;

/**
 * One transient per user, key and digest, so that no user can read or replace the runtime of another. A second one per user
 * and key contains the newest digest. A third per key and digest contains the first owner, so that a refusal can state that
 * the runtime belongs to another user.
 */
final class PreparedRuntimes {

	/** Maximum size of one runtime, in bytes of JSON. */
	public const MOST_BYTES = 8388608;

	/** How long an expired runtime is still known, in seconds. */
	private const REMEMBERED = DAY_IN_SECONDS;

	/**
	 * Creates the store with its dependencies.
	 *
	 * @param SessionStore $sessions Records of sessions.
	 */
	public function __construct( private readonly SessionStore $sessions ) {}

	/**
	 * Returns how long a runtime is kept, in seconds.
	 *
	 * @param array<string, mixed> $prepared `runtime.prepared` of the input.
	 * @param array<string, mixed> $artifact `site_blueprint_artifact` of the input.
	 */
	public static function ttl( array $prepared, array $artifact ): int {
		/**
		 * Filters how long a prepared runtime, its session and its links are kept.
		 *
		 * @param int                  $seconds  Seconds; from one minute to one week.
		 * @param array<string, mixed> $prepared `runtime.prepared` of the input.
		 * @param array<string, mixed> $artifact `site_blueprint_artifact` of the input.
		 */
		$ttl = apply_filters( 'wp_codebox_browser_prepared_runtime_cache_ttl', WEEK_IN_SECONDS, $prepared, $artifact );
		return is_numeric( $ttl ) ? max( MINUTE_IN_SECONDS, min( WEEK_IN_SECONDS, (int) $ttl ) ) : WEEK_IN_SECONDS;
	}

	/**
	 * Stores a runtime of the current user.
	 *
	 * @param array<string, mixed> $runtime Runtime with cache_key, input_hash, session_id, created_at and expires_at.
	 */
	public function keep( array $runtime ): void {
		$for = max( 1, $runtime['expires_at'] - time() ) + self::REMEMBERED;
		[ $key, $hash ] = [ $runtime['cache_key'], $runtime['input_hash'] ];
		set_transient( self::name( 'runtime', self::owner(), $key, $hash ), $runtime + [ 'user_id' => get_current_user_id() ], $for );
		set_transient( self::name( 'site', self::owner(), $key ), $hash, $for );
		if ( false === get_transient( self::name( 'owner', $key, $hash ) ) ) {
			set_transient( self::name( 'owner', $key, $hash ), self::owner(), $for );
		}
	}

	/**
	 * Finds a runtime of the current user.
	 *
	 * @param string $key  Key; '' when unknown.
	 * @param string $hash Digest; '' for the newest.
	 * @return array{reason: string, runtime: array<string, mixed>|null} Reason `recoverable` comes with the runtime.
	 */
	public function find( string $key, string $hash ): array {
		if ( '' === $key ) {
			return self::miss( 'hydratable_ref_missing' );
		}
		$newest = get_transient( self::name( 'site', self::owner(), $key ) );
		$wanted = '' === $hash ? ( is_string( $newest ) ? $newest : '' ) : $hash;
		$found  = '' === $wanted ? false : get_transient( self::name( 'runtime', self::owner(), $key, $wanted ) );
		if ( ! is_array( $found ) || ( $found['user_id'] ?? null ) !== get_current_user_id() ) {
			$owner = '' === $wanted ? false : get_transient( self::name( 'owner', $key, $wanted ) );
			return self::miss( match ( true ) {
				is_string( $owner ) && self::owner() !== $owner => 'foreign',
				is_string( $newest ) && $newest !== $wanted      => 'input_hash_mismatch',
				default                                          => 'cache_miss',
			} );
		}
		if ( $found['expires_at'] <= time() ) {
			return self::miss( 'expired_transient' );
		}
		if ( $this->sessions->ended( $found['session_id'], $found['created_at'] ) ) {
			return self::miss( 'replayed' );
		}
		if ( is_string( $newest ) && $newest !== $wanted ) {
			return self::miss( 'input_hash_mismatch' );
		}
		return [
			'reason'  => 'recoverable',
			'runtime' => $found,
		];
	}

	/**
	 * Returns the answer for a runtime that cannot be used.
	 *
	 * @param string $reason Reason.
	 * @return array{reason: string, runtime: null}
	 */
	private static function miss( string $reason ): array {
		return [
			'reason'  => $reason,
			'runtime' => null,
		];
	}

	/** Returns the current user as part of a name. */
	private static function owner(): string {
		return 'user:' . get_current_user_id();
	}

	/**
	 * Returns the name of a transient.
	 *
	 * @param string $kind     `runtime`, `site` or `owner`.
	 * @param string ...$parts What it belongs to.
	 */
	private static function name( string $kind, string ...$parts ): string {
		return 'wp_codebox_browser_prepared_' . $kind . '_' . substr( hash( 'sha256', implode( ':', $parts ) ), 0, 24 );
	}
}
