<?php
/**
 * Must-use plugin that answers the recovery link.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\DirectApply;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * A copy of `must-use/0-codebox-recovery.php` in the must-use directory while direct apply is on. Each apply writes it
 * again if it differs, so a link is answered by the version of the plugin that made it.
 */
final class RecoveryFile {

	/** Name of the file. WordPress loads must-use plugins in the order of their names. */
	private const NAME = '0-codebox-recovery.php';

	/**
	 * Registers what keeps the file in step with the setting.
	 *
	 * @param string $plugin Main file of the plugin.
	 */
	public static function register( string $plugin ): void {
		foreach ( [ 'add', 'update', 'delete' ] as $verb ) {
			add_action( $verb . ( is_multisite() ? '_site' : '' ) . '_option_' . Settings::DIRECT_APPLY, [ self::class, 'follow' ], 10, 0 );
		}
		// After an update of the plugin, or when somebody deleted the file.
		add_action( 'admin_init', [ self::class, 'follow' ], 10, 0 );
		// The other sites of a network may still use the file.
		register_deactivation_hook( $plugin, static fn( bool $network = false ) => is_multisite() && ! $network ? null : self::remove() );
	}

	/** Writes or deletes the file as the setting says. Notices tells why it cannot be written. */
	public static function follow(): void {
		if ( self::is_wanted() ) {
			self::failure();
		} else {
			self::remove();
		}
	}

	/** Returns why the file is missing or old and cannot be written; null when it is current. */
	public static function failure(): ?Failure {
		try {
			self::write();
			return null;
		} catch ( Failure $failure ) {
			return $failure;
		}
	}

	/**
	 * Writes the file unless it is current.
	 *
	 * @throws Failure `wp_codebox_file_changes_disallowed`, `wp_codebox_apply_failed`.
	 */
	public static function write(): void {
		$file = self::path();
		if ( self::is_current() ) {
			return;
		}
		if ( ! wp_is_file_mod_allowed( 'wp_codebox_recovery_file' ) ) {
			throw Failure::because(
				ErrorCode::FileChangesDisallowed,
				/* translators: %s: file. */
				Sentence::of( __( 'This site does not let its files be changed (DISALLOW_FILE_MODS or the filter file_mod_allowed), so the file %s with the recovery link of direct apply cannot be written.', 'codebox' ), $file )
			);
		}
		// No .php at the end: WordPress would load the file while it is written.
		$new  = $file . '.' . bin2hex( random_bytes( 8 ) );
		$code = (string) file_get_contents( self::source() );
		// phpcs:disable Generic.PHP.NoSilencedErrors, WordPress.WP.AlternativeFunctions -- failures are thrown; WP_Filesystem has no rename that replaces a file at once.
		$done = wp_mkdir_p( WPMU_PLUGIN_DIR ) && '' !== $code && strlen( $code ) === @file_put_contents( $new, $code ) && @chmod( $new, 0644 ) && @rename( $new, $file );
		if ( ! $done ) {
			is_file( $new ) && @unlink( $new );
			// phpcs:enable
			throw Failure::because(
				ErrorCode::ApplyFailed,
				/* translators: %s: file. */
				Sentence::of( __( 'The file %s cannot be written; without it the recovery link of direct apply does not work when a change breaks the site.', 'codebox' ), $file ),
				[
					/* translators: 1: directory, 2: file. */
					Sentence::of( __( 'Let the user that PHP runs as write the directory %1$s and check its free space, or copy the file %2$s there.', 'codebox' ), dirname( $file ), self::source() ),
				]
			);
		}
		OpcodeCache::drop( [ $file ] );
	}

	/** Deletes the file. Without a valid link it does nothing, so a failure is only logged. */
	public static function remove(): void {
		$file = self::path();
		if ( is_file( $file ) ) {
			wp_delete_file( $file );
		}
		clearstatcache( true, $file );
		if ( is_file( $file ) ) {
			// phpcs:ignore WordPress.PHP.DevelopmentFunctions -- see above.
			error_log( "wp-codebox: $file cannot be deleted" );
		}
	}

	/** Returns whether the file is there and of this version of the plugin. */
	public static function is_current(): bool {
		return is_file( self::path() ) && is_readable( self::path() ) && file_get_contents( self::path() ) === file_get_contents( self::source() );
	}

	/**
	 * Returns the must-use plugins that WordPress loads before the file. If one of them fails, the link does not work.
	 *
	 * @return list<string> Names of files.
	 */
	public static function loaded_before(): array {
		$names = array_map( 'basename', wp_get_mu_plugins() );
		return array_values( array_filter( $names, static fn( string $name ): bool => strcmp( $name, self::NAME ) < 0 ) );
	}

	/** Returns whether direct apply is on; of several networks, which share the must-use directory, on one of them. */
	private static function is_wanted(): bool {
		$networks = is_multisite() ? get_networks(
			[
				'fields' => 'ids',
				'number' => 0,
			]
		) : [ 0 ];
		foreach ( $networks as $network ) {
			if ( (bool) get_network_option( (int) $network, Settings::DIRECT_APPLY, false ) ) {
				return true;
			}
		}
		return false;
	}

	/** Returns the path of the file in the must-use directory. */
	private static function path(): string {
		return WPMU_PLUGIN_DIR . '/' . self::NAME;
	}

	/** Returns the path of the file in the plugin. */
	private static function source(): string {
		return dirname( __DIR__, 2 ) . '/must-use/' . self::NAME;
	}
}
