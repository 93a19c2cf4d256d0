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
	 * Returns how the caller names the plugin, relative to the plugins directory: a directory, a main file, or
	 * ''. Accepts an absolute path in the plugins directory, also by the link to a mounted plugin.
	 *
	 * @param Arguments $arguments Arguments plugin, path, slug, file.
	 */
	public static function reference( Arguments $arguments ): string {
		$given = $arguments->first( 'plugin', 'path', 'slug' );
		$given = '' === $given ? $arguments->first( 'file' ) : $given;
		$root  = guest_path( untrailingslashit( WP_PLUGIN_DIR ) ) . '/';
		$path  = guest_path( $given );
		foreach ( $arguments->mounts as $mount ) {
			$link = (string) ( $mount['link'] ?? '' );
			if ( '' !== $link && str_starts_with( $path . '/', $link . '/' ) ) {
				$path = $mount['target'] . substr( $path, strlen( $link ) );
				break;
			}
		}
		$inside = str_starts_with( $path, $root ) || ! str_starts_with( $path, '/' );
		if ( ! $inside || 1 === preg_match( '~(?:^|/)\.\.?(?:/|$)|[\x00\\\\]~', $path ) ) {
			throw Refusal::input( sprintf( 'a plugin must be below %s, but it is %s', $root, Arguments::shown( $given ) ) );
		}
		$path = str_starts_with( $path, $root ) ? substr( $path, strlen( $root ) ) : (string) preg_replace( '~^(?:wordpress/)?wp-content/plugins/~', '', $path );
		return trim( $path, '/' );
	}

	/**
	 * Returns the main file of the plugin that the command's arguments name.
	 *
	 * @param Arguments $arguments Arguments plugin, path, slug, file.
	 * @return string|null Relative to the plugins directory; null when it is not installed.
	 */
	public static function named( Arguments $arguments ): ?string {
		require_once ABSPATH . 'wp-admin/includes/plugin.php';
		$given = self::reference( $arguments );
		if ( '' === $given ) {
			throw Refusal::input( 'name a plugin: plugin=DIRECTORY, or plugin=DIRECTORY/FILE.php' );
		}
		wp_clean_plugins_cache( false );
		$files      = array_keys( get_plugins() );
		$file       = ltrim( $arguments->first( 'file' ), '/' );
		$candidates = array( $given, $given . '/' . basename( $given ) . '.php', $given . '.php' );
		if ( '' !== $file && $file !== $given ) {
			// `file` is relative to the plugin's directory, or begins with it.
			$candidates = array( $given . '/' . $file );
			if ( dirname( $file ) === $given || $file === $given . '.php' ) {
				$candidates[] = $file;
			}
			if ( str_ends_with( $given, '/' . $file ) ) {
				$candidates[] = $given;
			}
		}
		foreach ( $candidates as $candidate ) {
			if ( in_array( $candidate, $files, true ) ) {
				return $candidate;
			}
		}
		if ( '' === $file || $file === $given ) {
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
	 * @param Arguments $arguments Arguments plugin, path, slug, file.
	 */
	public static function get( Arguments $arguments ): string {
		return self::named( $arguments ) ?? throw new Refusal( 'plugin-missing', sprintf( 'there is no plugin %s below wp-content/plugins; mount its directory there', Arguments::shown( self::reference( $arguments ) ) ) );
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
	 * Returns the main files of the active plugins of the site, or of the network.
	 *
	 * @param string $scope Scope: site or network.
	 * @return list<string>
	 */
	public static function active( string $scope ): array {
		if ( 'site' === $scope ) {
			return array_values( (array) get_option( 'active_plugins', array() ) );
		}
		return is_multisite() ? array_keys( (array) get_site_option( 'active_sitewide_plugins', array() ) ) : array();
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
