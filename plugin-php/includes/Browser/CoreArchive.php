<?php
/**
 * Archive of the WordPress core files for browser sandboxes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WP_Theme;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * Packs what PHP needs of this site's core: `wp-admin`, `wp-includes`, the program files of the root directory and
 * one default theme. Scripts, images and fonts are left out, because the sandbox loads them from this site. In the root
 * directory only the files listed here are packed, so never `wp-config.php`, plugins, must-use plugins, drop-ins or uploads.
 */
final class CoreArchive {

	/** Version of these rules; a change makes every site pack its core again. */
	private const RULES = 1;

	/** Option with key, sha256 and size of the newest archive. */
	public const OPTION = 'wp_codebox_browser_core';

	/** Name of the lock file in the directory of the private files. */
	public const LOCK = '.core-lock';

	/** Core's program files in the root directory. */
	private const ROOT = [ 'index.php', 'wp-activate.php', 'wp-blog-header.php', 'wp-comments-post.php', 'wp-config-sample.php', 'wp-cron.php', 'wp-links-opml.php', 'wp-load.php', 'wp-login.php', 'wp-mail.php', 'wp-settings.php', 'wp-signup.php', 'wp-trackback.php', 'xmlrpc.php' ];

	/** Types of files that PHP reads or prints, or whose presence it checks. */
	private const TYPES = [ 'php', 'css', 'svg', 'json', 'html', 'txt', 'crt' ];

	/** Scripts that PHP prints into pages. */
	private const PRINTED_SCRIPTS = '~^js/wp-(?:emoji-loader|embed|embed-template)(?:\.min)?\.js$~D';

	/**
	 * Creates the archive with its dependencies.
	 *
	 * @param PrivateDirectory $directory Directory of the private files, for the lock.
	 * @param PrivateFiles     $files     Store of the archive.
	 * @param ArchiveWriter    $writer    Writer of archives.
	 */
	public function __construct(
		private readonly PrivateDirectory $directory,
		private readonly PrivateFiles $files,
		private readonly ArchiveWriter $writer
	) {}

	/**
	 * Returns the archive of the installed core. It is packed when core, theme or rules changed; a second
	 * request waits for the first one and uses its archive.
	 *
	 * @return array{key: string, version: string, theme: string, sha256: string, bytes: int}
	 * @throws Failure `wp_codebox_browser_archive_unavailable`, `wp_codebox_browser_assets_missing` or one of the store.
	 */
	public function current(): array {
		$theme = self::theme();
		$facts = [
			'version' => wp_get_wp_version(),
			'theme'   => $theme->get_stylesheet(),
		];
		$facts = [ 'key' => sanitize_file_name( implode( '-', [ 'wp', ...array_values( $facts ), (string) $theme->get( 'Version' ), 'r' . self::RULES ] ) ) ] + $facts;
		$known = $this->known( $facts );
		if ( null !== $known ) {
			return $known;
		}
		ArchiveWriter::assert_available();
		// phpcs:disable WordPress.WP.AlternativeFunctions -- a lock needs a file descriptor.
		$lock = fopen( $this->directory->path() . '/' . self::LOCK, 'c' );
		if ( false === $lock || ! flock( $lock, LOCK_EX ) ) {
			throw PrivateDirectory::failed();
		}
		try {
			wp_cache_delete( self::OPTION, 'options' );
			$known = $this->known( $facts );
			if ( null === $known ) {
				$known = $facts + $this->writer->store( self::files( $theme ) );
				update_option( self::OPTION, $known, false );
			}
			return $known;
		} finally {
			fclose( $lock );
		}
		// phpcs:enable
	}

	/** Forgets the archive, so that the next session packs core again. Called after each update of core. */
	public static function forget(): void {
		delete_option( self::OPTION );
	}

	/**
	 * Returns the stored archive if it belongs to the installed core and its file still exists.
	 *
	 * @param array{key: string, version: string, theme: string} $facts Key, core version and theme.
	 * @return array{key: string, version: string, theme: string, sha256: string, bytes: int}|null
	 */
	private function known( array $facts ): ?array {
		$stored = get_option( self::OPTION );
		if ( ! is_array( $stored ) || $facts !== array_intersect_key( $stored, $facts ) || ! is_string( $stored['sha256'] ?? null ) || ! is_int( $stored['bytes'] ?? null ) ) {
			return null;
		}
		$path = $this->files->path( $stored['sha256'] );
		return null !== $path && filesize( $path ) === $stored['bytes'] ? $stored : null;
	}

	/**
	 * Returns the files of the archive: path by name.
	 *
	 * @param WP_Theme $theme Default theme.
	 * @return array<string, string>
	 */
	private static function files( WP_Theme $theme ): array {
		$root  = untrailingslashit( ABSPATH );
		$files = [];
		foreach ( self::ROOT as $name ) {
			is_file( "$root/$name" ) && ! is_link( "$root/$name" ) && $files[ $name ] = "$root/$name";
		}
		foreach ( [
			'wp-admin'    => [ "$root/wp-admin", self::is_read_by_php( ... ) ],
			'wp-includes' => [ $root . '/' . WPINC, self::is_read_by_php( ... ) ],
			'wp-content/themes/' . $theme->get_stylesheet() => [ $theme->get_stylesheet_directory(), static fn( string $name ): bool => self::is_read_by_php( $name ) || str_starts_with( $name, 'screenshot.' ) ],
		] as $name => [ $directory, $accepts ] ) {
			$real = realpath( $directory );
			foreach ( false === $real ? [] : CodeFiles::below( $real, $accepts ) as $relative => $path ) {
				$files[ "$name/$relative" ] = $path;
			}
		}
		return $files;
	}

	/**
	 * Checks whether PHP needs a file of core or of a theme.
	 *
	 * @param string $name Name relative to `wp-admin`, `wp-includes` or the theme.
	 */
	private static function is_read_by_php( string $name ): bool {
		return in_array( strtolower( pathinfo( $name, PATHINFO_EXTENSION ) ), self::TYPES, true ) || 1 === preg_match( self::PRINTED_SCRIPTS, $name );
	}

	/**
	 * Returns the default theme of the sandbox: the active theme if it is a default one, else the newest installed one.
	 *
	 * @throws Failure `wp_codebox_browser_assets_missing`.
	 */
	private static function theme(): WP_Theme {
		$active = wp_get_theme();
		$theme  = 1 === preg_match( '/^twenty[a-z-]+$/D', $active->get_stylesheet() ) && ! $active->parent() && $active->exists() ? $active : WP_Theme::get_core_default_theme();
		if ( false === $theme ) {
			throw Failure::because(
				ErrorCode::BrowserAssetsMissing,
				__( 'No default theme of WordPress is installed, and a browser sandbox starts with one.', 'codebox' ),
				[ __( 'Install a default theme, such as Twenty Twenty-Five; it need not be active.', 'codebox' ) ]
			);
		}
		return $theme;
	}
}
