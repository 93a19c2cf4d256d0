<?php
/**
 * Directories that a web server serves.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Host;

defined( 'ABSPATH' ) || exit;

/**
 * Covers what this process can know: WordPress, its content directories and the document root. Symlinks,
 * aliases or other virtual hosts may serve more. The parent directory of WordPress that holds wp-config.php
 * is not included; it is the usual place for files that must not be served.
 */
final class ServedDirectories {

	/**
	 * Returns the served directory that is the given directory or contains it; null when there is none.
	 *
	 * @param string $directory Path of a directory.
	 */
	public static function holding( string $directory ): ?string {
		$real = self::real( $directory );
		foreach ( '' === $real ? [] : self::all() as $served ) {
			if ( Site::is_within( $real, [ $served ] ) ) {
				return $served;
			}
		}
		return null;
	}

	/**
	 * Returns the canonical directories whose files a web server may serve.
	 *
	 * @return list<string>
	 */
	private static function all(): array {
		$themes      = $GLOBALS['wp_theme_directories'] ?? [];
		$directories = [
			ABSPATH,
			self::home(),
			WP_CONTENT_DIR,
			WP_PLUGIN_DIR,
			WPMU_PLUGIN_DIR,
			(string) ( wp_get_upload_dir()['basedir'] ?? '' ),
			// phpcs:ignore WordPress.Security.ValidatedSanitizedInput.InputNotSanitized -- the server sets it, and sanitize_text_field() could change the path.
			isset( $_SERVER['DOCUMENT_ROOT'] ) && is_string( $_SERVER['DOCUMENT_ROOT'] ) ? wp_unslash( $_SERVER['DOCUMENT_ROOT'] ) : '',
			...array_values( array_filter( is_array( $themes ) ? $themes : [], 'is_string' ) ),
		];
		return array_values( array_unique( array_filter( array_map( [ self::class, 'real' ], $directories ), static fn( string $path ): bool => ! in_array( $path, [ '', '/' ], true ) ) ) );
	}

	/** Returns the directory of the site's home URL, when WordPress is in a subdirectory; or ''. */
	private static function home(): string {
		$home = untrailingslashit( (string) get_option( 'home' ) );
		$site = untrailingslashit( (string) get_option( 'siteurl' ) );
		$core = untrailingslashit( ABSPATH );
		$path = str_starts_with( $site, $home . '/' ) ? substr( $site, strlen( $home ) ) : '';
		return '' !== $path && str_ends_with( $core, $path ) ? substr( $core, 0, -strlen( $path ) ) : '';
	}

	/**
	 * Returns the canonical path, resolved through the nearest existing parent; '' for a path that is not
	 * absolute.
	 *
	 * @param string $path Path to resolve.
	 */
	private static function real( string $path ): string {
		if ( ! str_starts_with( $path, '/' ) ) {
			return '';
		}
		$path = untrailingslashit( $path );
		$real = realpath( '' === $path ? '/' : $path );
		if ( false !== $real ) {
			return $real;
		}
		return rtrim( self::real( dirname( $path ) ), '/' ) . '/' . basename( $path );
	}
}
