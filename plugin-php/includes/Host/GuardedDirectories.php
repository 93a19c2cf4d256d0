<?php
/**
 * Directories that mounts and applies must not touch.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Host;

use WPCodebox\ExtensionGate;

defined( 'ABSPATH' ) || exit;

/**
 * Covers the site's own directories, those of the runtime (state and shared files) and those of the system. All paths are
 * canonical, so a symlink counts as its target. The extension checks mounts again.
 */
final class GuardedDirectories {

	private const SYSTEM = [ '/boot', '/dev', '/etc', '/proc', '/run', '/sys', '/var/run' ];

	/**
	 * Returns the directories of the site: root, configuration, content, must-use plugins, uploads.
	 *
	 * @return list<string>
	 */
	public function site(): array {
		return $this->canonical(
			[
				ABSPATH,
				// WordPress reads a wp-config.php above its root when the root has none.
				file_exists( ABSPATH . 'wp-config.php' ) ? ABSPATH : dirname( ABSPATH ),
				WP_CONTENT_DIR,
				WPMU_PLUGIN_DIR,
				(string) ( wp_get_upload_dir()['basedir'] ?? '' ),
			]
		);
	}

	/**
	 * Returns the directories that the operator allows: `wp_codebox.mount_roots`.
	 *
	 * @return list<string>
	 */
	public function opened(): array {
		return $this->canonical( (array) ( ExtensionGate::info()['mount_roots'] ?? [] ) );
	}

	/**
	 * Checks whether a directory must not be mounted or written. It must not be, contain or lie in a directory of the system or
	 * the runtime, and must not be or contain a directory of the site. Below a directory of the site it is allowed only in a
	 * plugin, theme or mount root that itself lies inside this directory of the site. So a mount root that contains the site
	 * does not permit the site's own directories.
	 *
	 * @param string       $directory Canonical directory.
	 * @param list<string> $code      Canonical directories of plugins and themes.
	 */
	public function refuses( string $directory, array $code ): bool {
		$info = ExtensionGate::info();
		foreach ( array_merge( self::SYSTEM, $this->canonical( [ $info['state_dir'] ?? '', $info['share_dir'] ?? '' ] ) ) as $other ) {
			if ( Site::is_within( $directory, [ $other ] ) || Site::is_within( $other, [ $directory ] ) ) {
				return true;
			}
		}
		$code = array_merge( $code, $this->opened() );
		foreach ( $this->site() as $own ) {
			$inner = array_filter( $code, static fn( string $root ): bool => Site::is_within( $root, [ $own ] ) );
			if ( Site::is_within( $own, [ $directory ] ) || ( Site::is_within( $directory, [ $own ] ) && ! Site::is_within( $directory, $inner ) ) ) {
				return true;
			}
		}
		return false;
	}

	/**
	 * Returns real paths; a path that does not exist is returned without its trailing slash.
	 *
	 * @param array<mixed> $paths Paths to resolve.
	 * @return list<string>
	 */
	private function canonical( array $paths ): array {
		$paths = array_filter( $paths, static fn( mixed $path ): bool => is_string( $path ) && '' !== $path );
		return array_values( array_unique( array_map( [ Site::class, 'canonical' ], $paths ) ) );
	}
}
