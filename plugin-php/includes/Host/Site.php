<?php
/**
 * Id and directories of this site, for the extension.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Host;

use WPCodebox\Authority;

defined( 'ABSPATH' ) || exit;

/**
 * Provides the id that separates this site's data in the state directory, and the directories that a run may see.
 */
final class Site {

	/**
	 * Creates the site with its dependencies.
	 *
	 * @param InstalledCode      $code    Lookup of installed plugins and themes.
	 * @param GuardedDirectories $guarded Directories that no run may touch.
	 */
	public function __construct(
		private readonly InstalledCode $code,
		private readonly GuardedDirectories $guarded = new GuardedDirectories()
	) {}

	/** Returns the name of this site's subdirectory of the state directory. It is stable for one blog of one installation. */
	public function id(): string {
		$blog = get_current_blog_id();
		$seed = ABSPATH . '|' . get_current_network_id() . '|' . $blog;
		return 'site-' . $blog . '-' . substr( hash( 'sha256', $seed ), 0, 12 );
	}

	/** Returns the directory of the WordPress core files mounted into the guest. */
	public function wordpress(): string {
		return self::canonical( ABSPATH );
	}

	/**
	 * Returns directories that are never mounted. Also refused are directories that contain one of them, and
	 * everything below one of them that is not plugin or theme code.
	 *
	 * @return list<string>
	 */
	public function denied(): array {
		return $this->guarded->site();
	}

	/**
	 * Checks whether a directory must not be mounted or written, by users or the operator.
	 *
	 * @param string $directory Canonical directory.
	 */
	public function refuses( string $directory ): bool {
		return $this->guarded->refuses( $directory, $this->code->directories() );
	}

	/**
	 * Returns the directories at or below which a caller may mount or apply; null allows every directory that
	 * is not denied.
	 *
	 * @param Authority $authority User or operator the call runs as.
	 * @return list<string>|null
	 */
	public function allowed_roots( Authority $authority ): ?array {
		if ( Authority::Operator === $authority ) {
			return null;
		}
		return $this->known_roots();
	}

	/**
	 * Returns directories of installed plugins and themes, and the configured mount roots.
	 *
	 * @return list<string>
	 */
	public function known_roots(): array {
		return array_values( array_unique( array_merge( $this->code->directories(), $this->guarded->opened() ) ) );
	}

	/**
	 * Checks whether a canonical path is one of the roots or lies below one.
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
	 * Returns the real path, or the given path without a trailing slash when it does not exist.
	 *
	 * @param string $path Path to resolve.
	 */
	public static function canonical( string $path ): string {
		$real = realpath( $path );
		return false === $real ? untrailingslashit( $path ) : $real;
	}
}
