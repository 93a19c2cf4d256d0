<?php
/**
 * Directories whose files a web server hands out.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Host;

defined( 'ABSPATH' ) || exit;

/**
 * What this process can know of it: WordPress, its content directories and the document root. A
 * link below them, an alias or another virtual host may serve more. The directory of a
 * wp-config.php above WordPress is none: it is the usual place for what must not be served.
 */
final class ServedDirectories {

	/**
	 * The served directory that is or holds another one; null when none does.
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
	 * The served directories, canonical.
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
			// phpcs:ignore WordPress.Security.ValidatedSanitizedInput.InputNotSanitized -- of the server, and sanitize_text_field() would make another path of it.
			isset( $_SERVER['DOCUMENT_ROOT'] ) && is_string( $_SERVER['DOCUMENT_ROOT'] ) ? wp_unslash( $_SERVER['DOCUMENT_ROOT'] ) : '',
			...array_values( array_filter( is_array( $themes ) ? $themes : [], 'is_string' ) ),
		];
		return array_values( array_unique( array_filter( array_map( [ self::class, 'real' ], $directories ), static fn( string $path ): bool => ! in_array( $path, [ '', '/' ], true ) ) ) );
	}

	/** Where the address of the site begins, when WordPress has a directory of its own below it; or ''. */
	private static function home(): string {
		$home = untrailingslashit( (string) get_option( 'home' ) );
		$site = untrailingslashit( (string) get_option( 'siteurl' ) );
		$core = untrailingslashit( ABSPATH );
		$path = str_starts_with( $site, $home . '/' ) ? substr( $site, strlen( $home ) ) : '';
		return '' !== $path && str_ends_with( $core, $path ) ? substr( $core, 0, -strlen( $path ) ) : '';
	}

	/**
	 * The canonical path, through the nearest parent that exists; '' for what is no absolute path.
	 *
	 * @param string $path A path.
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
