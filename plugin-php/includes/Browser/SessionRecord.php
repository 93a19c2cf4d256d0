<?php
/**
 * The server's record of a browser session.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

defined( 'ABSPATH' ) || exit;

/** Owner, expiry and initial code of a session. */
final class SessionRecord {

	/**
	 * Creates a record.
	 *
	 * @param string                                      $session_id Id of the session.
	 * @param string                                      $site_id    Id of the contained site.
	 * @param string                                      $preview_id Id of the preview.
	 * @param string                                      $cache_key  Key of the prepared runtime.
	 * @param string                                      $input_hash SHA-256 of its sources.
	 * @param string                                      $caller_id  Authenticated caller.
	 * @param string                                      $isolation  `opaque` or `separate-host`.
	 * @param int                                         $user_id    User who owns it.
	 * @param int                                         $blog_id    Site that it belongs to.
	 * @param int                                         $created_at Time of creation, in seconds since 1970.
	 * @param int                                         $expires_at Time of expiry, in seconds since 1970.
	 * @param list<array{target: string, archive: string}> $baseline Code that it started with; archive is a SHA-256.
	 */
	public function __construct(
		public readonly string $session_id,
		public readonly string $site_id,
		public readonly string $preview_id,
		public readonly string $cache_key,
		public readonly string $input_hash,
		public readonly string $caller_id,
		public readonly string $isolation,
		public readonly int $user_id,
		public readonly int $blog_id,
		public readonly int $created_at,
		public readonly int $expires_at,
		public readonly array $baseline
	) {}

	/**
	 * Returns the record as plain data.
	 *
	 * @return array<string, mixed>
	 */
	public function to_array(): array {
		return get_object_vars( $this );
	}

	/**
	 * Reads a record from plain data; null when it is not one.
	 *
	 * @param mixed $data Stored data.
	 */
	public static function from( mixed $data ): ?self {
		$fields = [ 'session_id', 'site_id', 'preview_id', 'cache_key', 'input_hash', 'caller_id', 'isolation', 'user_id', 'blog_id', 'created_at', 'expires_at', 'baseline' ];
		if ( ! is_array( $data ) || [] !== array_diff( $fields, array_keys( $data ) ) ) {
			return null;
		}
		foreach ( $fields as $position => $field ) {
			$fits = $position < 7 ? is_string( $data[ $field ] ) : ( 'baseline' === $field ? is_array( $data[ $field ] ) : is_int( $data[ $field ] ) );
			if ( ! $fits ) {
				return null;
			}
		}
		return new self( ...array_intersect_key( $data, array_flip( $fields ) ) );
	}
}
