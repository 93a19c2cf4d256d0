<?php
/**
 * Settings of the share that one requester may have of this site.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

defined( 'ABSPATH' ) || exit;

/** Options of the whole installation, like those of Settings. The extension bounds each by the operator's settings. */
final class ShareSettings {

	public const USER_MAX_RUNS = 'wp_codebox_user_max_runs';
	public const SPEND         = 'wp_codebox_spend';

	/** Names of the caps of model cost in a calendar month, as the extension defines them. */
	public const SPEND_FIELDS = [ 'site_microusd', 'requester_microusd' ];

	/** Returns the limit of parallel runs of one user; null for half of the site's. */
	public static function user_max_runs(): ?int {
		$stored = get_site_option( self::USER_MAX_RUNS, 0 );
		return is_numeric( $stored ) && (int) $stored > 0 ? (int) $stored : null;
	}

	/**
	 * Returns the caps of model cost in a calendar month, in millionths of a US dollar.
	 *
	 * @return array<string, int> `site_microusd`, `requester_microusd`; only the fields that are set.
	 */
	public static function spend_caps(): array {
		$stored = get_site_option( self::SPEND, [] );
		$caps   = is_array( $stored ) ? array_intersect_key( $stored, array_flip( self::SPEND_FIELDS ) ) : [];
		return array_filter( $caps, static fn( mixed $cap ): bool => is_int( $cap ) && $cap > 0 );
	}

	/**
	 * Returns the ceilings in force: those of the site, else those of the extension, never above the bounds that the operator
	 * sets with `wp_codebox.max_limits`.
	 *
	 * @param array<string, int> $own Ceilings of the site.
	 * @return array<string, int> Values by field of the task's `limits`; a field without a ceiling is left out.
	 */
	public static function ceilings( array $own ): array {
		$info     = ExtensionGate::info();
		$ceilings = $own + array_filter( (array) ( $info['default_ceilings'] ?? [] ), 'is_int' );
		foreach ( array_filter( (array) ( $info['max_limits'] ?? [] ), 'is_int' ) as $field => $bound ) {
			$ceilings[ $field ] = min( $ceilings[ $field ] ?? $bound, $bound );
		}
		return $ceilings;
	}
}
