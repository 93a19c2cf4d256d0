<?php
/**
 * Directories that no mount and no apply may touch.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Host;

use WPCodebox\ExtensionGate;

defined( 'ABSPATH' ) || exit;

/**
 * The site's own directories, those of the runtime and those of the system. All paths are
 * canonical, so a link counts as what it leads to. The extension judges mounts again.
 */
final class GuardedDirectories {

	private const SYSTEM = [ '/boot', '/dev', '/etc', '/proc', '/run', '/sys', '/var/run' ];

	/**
	 * Directories of the site: root, configuration, content, must-use plugins, uploads.
	 *
	 * @return list<string>
	 */
	public function site(): array {
		return $this->canonical(
			[
				ABSPATH,
				// WordPress reads a wp-config.php above its root when there is none in it.
				file_exists( ABSPATH . 'wp-config.php' ) ? ABSPATH : dirname( ABSPATH ),
				WP_CONTENT_DIR,
				WPMU_PLUGIN_DIR,
				(string) ( wp_get_upload_dir()['basedir'] ?? '' ),
			]
		);
	}

	/**
	 * Directories that the operator opened: `wp_codebox.mount_roots`.
	 *
	 * @return list<string>
	 */
	public function opened(): array {
		return $this->canonical( (array) ( ExtensionGate::info()['mount_roots'] ?? [] ) );
	}

	/**
	 * Whether a directory is refused: it holds or lies in the system or the runtime, or it is
	 * or holds a directory of the site, or lies below one outside of the code given. A mount root
	 * opens what it holds of a directory that it lies in, and nothing of one that it holds.
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
	 * Real paths; the given one without a trailing slash where there is nothing.
	 *
	 * @param array<mixed> $paths Paths.
	 * @return list<string>
	 */
	private function canonical( array $paths ): array {
		$paths = array_filter( $paths, static fn( mixed $path ): bool => is_string( $path ) && '' !== $path );
		return array_values( array_unique( array_map( [ Site::class, 'canonical' ], $paths ) ) );
	}
}
