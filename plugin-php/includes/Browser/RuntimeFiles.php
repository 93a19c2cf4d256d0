<?php
/**
 * Installed runtime files of browser sandboxes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * PHP for the browser and the SQLite integration: public files of about 14 MB that are installed apart from the plugin,
 * one directory for each version of `runtime.json`. All sites of a network share them.
 */
final class RuntimeFiles {

	private const DIRECTORY = 'wp-codebox-browser-runtime';

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param EngineFiles $engine Files of the plugin, with the list of the runtime files.
	 */
	public function __construct( public readonly EngineFiles $engine ) {}

	/** Returns the directory that holds one directory for each version. */
	public function base(): string {
		return untrailingslashit( (string) ( self::uploads()['basedir'] ?? '' ) ) . '/' . self::DIRECTORY;
	}

	/** Returns the directory of the version that the plugin needs. */
	public function directory(): string {
		return $this->base() . '/' . $this->engine->runtime()['version'];
	}

	/**
	 * Returns the address of that directory, with trailing slash. It has the origin of wp-admin, because the page there fetches
	 * the files.
	 *
	 * @throws Failure `wp_codebox_browser_host_invalid`.
	 */
	public function url(): string {
		$directory = $this->directory();
		$content   = untrailingslashit( WP_CONTENT_DIR ) . '/';
		$url       = str_starts_with( $directory, $content )
			? content_url( substr( $directory, strlen( $content ) ) )
			: untrailingslashit( (string) ( self::uploads()['baseurl'] ?? '' ) ) . substr( $directory, strlen( dirname( $this->base() ) ) );
		$url       = set_url_scheme( $url );
		if ( BrowserHost::origin_of( $url ) !== BrowserHost::origin_of( admin_url() ) ) {
			/* translators: %s: origin. */
			throw BrowserHost::refused( Sentence::of( __( 'The uploads of this site are served from %s, and browser sandboxes load their files only from the address of wp-admin.', 'codebox' ), BrowserHost::origin_of( $url ) ), __( 'Let the address of wp-admin serve the uploads as well.', 'codebox' ) );
		}
		return trailingslashit( $url );
	}

	/**
	 * Returns the installed and missing files.
	 *
	 * @param bool $thorough Whether to read every file and compare its hash, not only its size.
	 * @return array<string, array{name: string, bytes: int, sha256: string, status: string}> `installed`, `missing` or `damaged` by name.
	 */
	public function rows( bool $thorough = false ): array {
		$directory = $this->directory();
		return array_map(
			static function ( array $file ) use ( $directory, $thorough ): array {
				$path = "$directory/{$file['name']}";
				clearstatcache( true, $path );
				$status = match ( true ) {
					! is_file( $path ) || is_link( $path ) => 'missing',
					filesize( $path ) !== $file['bytes'] => 'damaged',
					$thorough && hash_file( 'sha256', $path ) !== $file['sha256'] => 'damaged',
					default => 'installed',
				};
				return $file + [ 'status' => $status ];
			},
			$this->engine->runtime()['files']
		);
	}

	/**
	 * Fails unless all files are installed.
	 *
	 * @throws Failure `wp_codebox_browser_assets_missing` with the names of the files.
	 */
	public function check(): void {
		$bad = array_filter( $this->rows(), static fn( array $row ): bool => 'installed' !== $row['status'] );
		if ( [] === $bad ) {
			return;
		}
		throw Failure::because(
			ErrorCode::BrowserAssetsMissing,
			/* translators: %s: list of files. */
			Sentence::of( __( 'The runtime files of browser sandboxes are not installed, or are damaged: %s.', 'codebox' ), implode( ', ', array_keys( $bad ) ) ),
			[
				/* translators: %s: command. */
				Sentence::of( __( 'Install codebox-browser.zip of this release: in the settings of Codebox, or with "%s".', 'codebox' ), 'wp codebox browser-assets install codebox-browser.zip' ),
			],
			[ 'files' => array_keys( $bad ) ]
		);
	}

	/**
	 * Returns the upload directory of the main site of the network.
	 *
	 * @return array<string, mixed>
	 */
	private static function uploads(): array {
		$main = is_multisite() && ! is_main_site();
		$main && switch_to_blog( get_main_site_id() );
		$uploads = wp_get_upload_dir();
		$main && restore_current_blog();
		return $uploads;
	}
}
