<?php
/**
 * This site as the extension sees it.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Host;

use WPCodebox\Authority;

defined( 'ABSPATH' ) || exit;

/**
 * The site's partition of the state directory, and which of its directories a run may see.
 */
final class Site {

	/**
	 * Creates the site with its dependencies.
	 *
	 * @param InstalledCode      $code    Lookup of installed plugins and themes.
	 * @param GuardedDirectories $guarded What no run may touch.
	 */
	public function __construct(
		private readonly InstalledCode $code,
		private readonly GuardedDirectories $guarded = new GuardedDirectories()
	) {}

	/** Partition of the state directory: stable for one blog of one installation. */
	public function id(): string {
		$blog = get_current_blog_id();
		$seed = ABSPATH . '|' . get_current_network_id() . '|' . $blog;
		return 'site-' . $blog . '-' . substr( hash( 'sha256', $seed ), 0, 12 );
	}

	/** Directory whose WordPress core the guest gets. */
	public function wordpress(): string {
		return self::canonical( ABSPATH );
	}

	/**
	 * Directories that are never mounted, nor what holds them, nor what lies below them and
	 * is no code.
	 *
	 * @return list<string>
	 */
	public function denied(): array {
		return $this->guarded->site();
	}

	/**
	 * Whether a directory must be neither mounted nor written, by users and the operator alike.
	 *
	 * @param string $directory Canonical directory.
	 */
	public function refuses( string $directory ): bool {
		return $this->guarded->refuses( $directory, $this->code->directories() );
	}

	/**
	 * Directories at or below which a caller may mount or apply; null: wherever it is not denied.
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
	 * Directories of installed plugins and themes, and the configured mount roots.
	 *
	 * @return list<string>
	 */
	public function known_roots(): array {
		return array_values( array_unique( array_merge( $this->code->directories(), $this->guarded->opened() ) ) );
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
	public static function canonical( string $path ): string {
		$real = realpath( $path );
		return false === $real ? untrailingslashit( $path ) : $real;
	}
}
