<?php
/**
 * This site as the extension sees it.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Host;

use WPCodebox\Authority;
use WPCodebox\Native\Extension;

defined( 'ABSPATH' ) || exit;

/**
 * The site's partition of the state directory, and which of its directories a run may see.
 */
final class Site {

	/**
	 * Wires the site.
	 *
	 * @param InstalledCode $code Installed plugins and themes.
	 */
	public function __construct( private readonly InstalledCode $code ) {}

	/** Partition of the state directory: stable for one blog of one installation. */
	public function id(): string {
		$blog = get_current_blog_id();
		$seed = ABSPATH . '|' . get_current_network_id() . '|' . $blog;
		return 'site-' . $blog . '-' . substr( hash( 'sha256', $seed ), 0, 12 );
	}

	/** Directory whose WordPress core the guest gets. */
	public function wordpress(): string {
		return $this->canonical( ABSPATH );
	}

	/**
	 * Directories that are never mounted, nor an ancestor of them.
	 *
	 * @return list<string>
	 */
	public function denied(): array {
		$directories = [
			ABSPATH,
			$this->config_directory(),
			WP_CONTENT_DIR,
			(string) ( wp_get_upload_dir()['basedir'] ?? '' ),
		];
		$denied      = [];
		foreach ( $directories as $directory ) {
			if ( '' !== $directory ) {
				$denied[] = $this->canonical( $directory );
			}
		}
		return array_values( array_unique( $denied ) );
	}

	/**
	 * Directories at or below which a caller may mount or apply; null: wherever it is not denied.
	 *
	 * @param Authority $authority In whose name.
	 * @return list<string>|null
	 */
	public function allowed_roots( Authority $authority ): ?array {
		if ( Authority::Operator === $authority ) {
			return null;
		}
		return $this->known_roots();
	}

	/**
	 * Directories of installed plugins and themes, and the configured mount roots.
	 *
	 * @return list<string>
	 */
	public function known_roots(): array {
		$configured = Extension::info()['mount_roots'] ?? [];
		$configured = is_array( $configured ) ? array_filter( $configured, 'is_string' ) : [];
		return array_values( array_unique( array_merge( $this->code->directories(), array_map( [ $this, 'canonical' ], $configured ) ) ) );
	}

	/**
	 * Whether a canonical path is one of the roots or lies below one.
	 *
	 * @param string       $path  Canonical path.
	 * @param list<string> $roots Canonical roots.
	 */
	public static function is_within( string $path, array $roots ): bool {
		foreach ( $roots as $root ) {
			if ( $path === $root || str_starts_with( $path, rtrim( $root, '/' ) . '/' ) ) {
				return true;
			}
		}
		return false;
	}

	/**
	 * The real path, or the given one without a trailing slash when it does not exist.
	 *
	 * @param string $path A path.
	 */
	public function canonical( string $path ): string {
		$real = realpath( $path );
		return false === $real ? untrailingslashit( $path ) : $real;
	}

	/** Directory of the wp-config.php in use: ABSPATH, or its parent when the file is there. */
	private function config_directory(): string {
		return file_exists( ABSPATH . 'wp-config.php' ) ? ABSPATH : dirname( ABSPATH );
	}
}
