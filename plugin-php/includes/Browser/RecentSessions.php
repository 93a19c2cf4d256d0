<?php
/**
 * Sessions that a reload of the page continues.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

defined( 'ABSPATH' ) || exit;

/**
 * Stores the newest session of each plugin, theme and bundle in the meta data of its user.
 */
final class RecentSessions {

	private const META = 'wp_codebox_browser_sessions';

	/** Seconds that a session is continued. */
	private const SECONDS = 6 * HOUR_IN_SECONDS;
	/** Maximum number of sessions of a user. */
	private const COUNT = 10;
	/** Maximum size of a session as JSON, in bytes; a larger one is not continued. */
	private const BYTES = 262144;

	/**
	 * Returns the session of a subject for the current user; null when there is none.
	 *
	 * @param string $subject Kind and slug.
	 * @return array<string, mixed>|null
	 */
	public static function get( string $subject ): ?array {
		return self::rows()[ $subject ]['session'] ?? null;
	}

	/**
	 * Stores the session of a subject for the current user.
	 *
	 * @param string               $subject Kind and slug.
	 * @param array<string, mixed> $session Answer of the ability that created it.
	 */
	public static function keep( string $subject, array $session ): void {
		if ( strlen( (string) wp_json_encode( $session ) ) > self::BYTES ) {
			return;
		}
		$rows             = array_slice( array_diff_key( self::rows(), [ $subject => 1 ] ), -self::COUNT + 1, null, true );
		$rows[ $subject ] = [
			'until'   => time() + self::SECONDS,
			'session' => $session,
		];
		update_user_meta( get_current_user_id(), self::META, wp_slash( $rows ) );
	}

	/**
	 * Returns the stored sessions that are not too old.
	 *
	 * @return array<string, array{until: int, session: array<string, mixed>}>
	 */
	private static function rows(): array {
		$rows = get_user_meta( get_current_user_id(), self::META, true );
		return array_filter( is_array( $rows ) ? $rows : [], static fn( mixed $row ): bool => is_array( $row ) && (int) ( $row['until'] ?? 0 ) > time() && is_array( $row['session'] ?? null ) );
	}
}
