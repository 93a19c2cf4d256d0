<?php
/**
 * Plugins that are a single file in the plugin directory.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Host;

use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * Such a plugin has no directory to mount, so only browser sessions use it. Their bundles have the plugin directory as
 * mount target, with an origin which says that only single-file plugins may change there. Symlinks do not count.
 */
final class SingleFilePlugins {

	/** Mount target: the plugin directory in the guest. */
	public const TARGET = '/wordpress/wp-content/plugins';

	/** Origin of a mount that has only such plugins. */
	public const ORIGIN = [ 'kind' => 'plugin-files' ];

	/**
	 * Returns the installed plugins of a single file: path by file name.
	 *
	 * @return array<string, string>
	 */
	public static function all(): array {
		if ( ! function_exists( 'get_plugins' ) ) {
			require_once ABSPATH . 'wp-admin/includes/plugin.php';
		}
		$files = [];
		foreach ( array_keys( get_plugins() ) as $file ) {
			$path = WP_PLUGIN_DIR . '/' . $file;
			if ( ! str_contains( (string) $file, '/' ) && is_file( $path ) && ! is_link( $path ) ) {
				$files[ (string) $file ] = $path;
			}
		}
		return $files;
	}

	/**
	 * Returns the path of a plugin; null when there is no such plugin.
	 *
	 * @param string $name File name, with or without `.php`.
	 */
	public static function path( string $name ): ?string {
		return self::all()[ str_ends_with( $name, '.php' ) ? $name : $name . '.php' ] ?? null;
	}

	/**
	 * Returns the host directory to which the change of a plugin belongs.
	 *
	 * @param string $file File name of the plugin.
	 * @throws Failure `wp_codebox_apply_conflict` when the plugin is not installed any more.
	 */
	public static function directory_of( string $file ): string {
		if ( ! isset( self::all()[ $file ] ) ) {
			throw InstalledCode::gone( $file, self::TARGET . '/' . $file );
		}
		return (string) realpath( WP_PLUGIN_DIR );
	}
}
