<?php
/**
 * WordPress's update locks.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\DirectApply;

defined( 'ABSPATH' ) || exit;

/**
 * Takes and releases the locks of `WP_Upgrader::create_lock()`, so that no update of WordPress writes the files that
 * a change writes. WordPress stores in a lock only its time. These locks also have an owner, so that the locks of a
 * request that died can be told from those of an update that began since. A network is updated from its main site, so
 * the options of the main site hold the locks.
 */
final class UpdateLocks {

	/** Options with the locks: of updates by a person, and of automatic ones. */
	private const OPTIONS = [ 'core_updater.lock', 'auto_updater.lock' ];

	/** Time in seconds after which WordPress, too, ignores the locks. */
	private const LONGEST = 900;

	/** Returns a new owner id: the time, which WordPress compares, with random digits after the decimal point. */
	public static function owner(): string {
		return sprintf( '%d.%09d', time(), random_int( 0, 999999999 ) );
	}

	/**
	 * Takes all locks, or none; returns whether it did.
	 *
	 * @param string $owner Owner of the locks.
	 */
	public static function take( string $owner ): bool {
		$taken = self::on_main_site(
			static function () use ( $owner ): int {
				global $wpdb;
				$taken = 0;
				foreach ( self::OPTIONS as $option ) {
					// phpcs:ignore WordPress.DB -- as WP_Upgrader: an option could not be taken by one request only.
					$wpdb->query( $wpdb->prepare( 'DELETE FROM %i WHERE option_name = %s AND option_value + 0 < %d', $wpdb->options, $option, time() - self::LONGEST ) );
					// phpcs:ignore WordPress.DB -- as above.
					$taken += (int) $wpdb->query( $wpdb->prepare( "INSERT IGNORE INTO %i ( option_name, option_value, autoload ) VALUES ( %s, %s, 'off' ) /* LOCK */", $wpdb->options, $option, $owner ) );
				}
				return $taken;
			}
		);
		if ( count( self::OPTIONS ) === $taken ) {
			return true;
		}
		self::release( $owner );
		return false;
	}

	/**
	 * Releases the locks that an owner has.
	 *
	 * @param string $owner Owner of the locks; '' has none.
	 */
	public static function release( string $owner ): void {
		if ( '' === $owner ) {
			return;
		}
		self::on_main_site(
			static function () use ( $owner ): int {
				global $wpdb;
				foreach ( self::OPTIONS as $option ) {
					// phpcs:ignore WordPress.DB -- delete_option() would delete the lock of another owner, too.
					$wpdb->query( $wpdb->prepare( 'DELETE FROM %i WHERE option_name = %s AND option_value = %s', $wpdb->options, $option, $owner ) );
					wp_cache_delete( $option, 'options' );
				}
				return 0;
			}
		);
	}

	/**
	 * Calls a function on the main site of the network, or on the only site.
	 *
	 * @param callable(): int $change Changes options.
	 */
	private static function on_main_site( callable $change ): int {
		$moved = is_multisite() && switch_to_blog( get_main_site_id() );
		try {
			return $change();
		} finally {
			$moved && restore_current_blog();
		}
	}
}
