<?php
/**
 * Plugins of the guest's site.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Finds the plugins of the site, reports and changes their state.
 */
final class Plugins {

	/**
	 * Returns the main file of the plugin that the command's arguments name.
	 *
	 * @param Arguments $arguments Arguments plugin, slug, path, file.
	 * @return string|null Relative to the plugins directory; null when it is not installed.
	 */
	public static function named( Arguments $arguments ): ?string {
		require_once ABSPATH . 'wp-admin/includes/plugin.php';
		$given = $arguments->first( 'plugin', 'path', 'slug' );
		if ( '' === $given ) {
			throw Refusal::input( 'name a plugin: plugin=DIRECTORY, or plugin=DIRECTORY/FILE.php' );
		}
		// An absolute guest path is accepted too.
		$root  = untrailingslashit( WP_PLUGIN_DIR ) . '/';
		$given = trim( str_starts_with( $given, $root ) ? substr( $given, strlen( $root ) ) : $given, '/' );
		if ( 1 === preg_match( '~(?:^|/)\.\.?(?:/|$)|[\x00\\\\]~', $given ) || str_starts_with( $arguments->first( 'plugin', 'path', 'slug' ), '/' ) && ! str_starts_with( $arguments->first( 'plugin', 'path', 'slug' ), $root ) ) {
			throw Refusal::input( sprintf( 'a plugin must be below %s', $root ) );
		}
		$file = $arguments->first( 'file' );
		wp_clean_plugins_cache( false );
		$files = array_keys( get_plugins() );
		foreach ( array_filter( array( '' === $file ? null : $given . '/' . ltrim( $file, '/' ), $given, $given . '/' . $given . '.php', $given . '.php' ) ) as $candidate ) {
			if ( in_array( $candidate, $files, true ) ) {
				return $candidate;
			}
		}
		if ( '' === $file ) {
			foreach ( $files as $candidate ) {
				if ( str_starts_with( $candidate, $given . '/' ) ) {
					return $candidate;
				}
			}
		}
		return null;
	}

	/**
	 * Returns the main file of the plugin that the command's arguments name; fails when it is not installed.
	 *
	 * @param Arguments $arguments Arguments plugin, slug, path, file.
	 */
	public static function get( Arguments $arguments ): string {
		return self::named( $arguments ) ?? throw new Refusal( 'plugin-missing', sprintf( 'there is no plugin %s below wp-content/plugins; mount its directory there', Arguments::shown( $arguments->first( 'plugin', 'path', 'slug' ) ) ) );
	}

	/**
	 * Describes the state of a plugin for results: installed, active, version.
	 *
	 * @param string|null $file Plugin file; null for a plugin that is not installed.
	 * @return array<string,mixed>
	 */
	public static function state( ?string $file ): array {
		if ( null === $file ) {
			return array(
				'plugin'        => null,
				'installed'     => false,
				'active'        => false,
				'networkActive' => false,
			);
		}
		$head = get_plugin_data( WP_PLUGIN_DIR . '/' . $file, false, false );
		return array(
			'plugin'        => $file,
			'name'          => cut( $head['Name'], 200 ),
			'version'       => cut( $head['Version'], 100 ),
			'installed'     => true,
			'active'        => is_plugin_active( $file ),
			'networkActive' => is_multisite() && is_plugin_active_for_network( $file ),
		);
	}

	/**
	 * Activates or deactivates a plugin.
	 *
	 * @param string $file    Plugin file.
	 * @param string $action  Action: activate or deactivate.
	 * @param bool   $network Whether the change is network-wide.
	 */
	public static function change( string $file, string $action, bool $network ): void {
		if ( $network && ! is_multisite() ) {
			throw Refusal::input( 'network is set, but the site is not a multisite network' );
		}
		if ( 'deactivate' === $action ) {
			deactivate_plugins( $file, false, $network );
		} else {
			$result = activate_plugin( $file, '', $network );
			if ( is_wp_error( $result ) && 'unexpected_output' !== $result->get_error_code() ) {
				throw new Refusal( 'plugin-refused', sprintf( 'WordPress does not activate %s: %s', $file, wp_strip_all_tags( $result->get_error_message() ) ) );
			}
		}
		if ( is_plugin_active( $file ) !== ( 'activate' === $action ) ) {
			throw new Refusal( 'plugin-refused', sprintf( '%s did not %s as requested', $file, $action ) );
		}
	}

	/**
	 * Lists all installed plugins.
	 *
	 * @return list<array<string,mixed>>
	 */
	public static function all(): array {
		require_once ABSPATH . 'wp-admin/includes/plugin.php';
		return array_map( array( self::class, 'state' ), array_keys( get_plugins() ) );
	}
}
