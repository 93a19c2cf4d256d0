<?php
/**
 * Files of the browser engine that the plugin contains.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;

use const WPCodebox\VERSION;

defined( 'ABSPATH' ) || exit;

/**
 * The directory `assets/browser/` of the plugin: scripts, pages, and `runtime.json`, which lists the large files that are installed
 * apart.
 */
final class EngineFiles {

	public const DIRECTORY = 'assets/browser';

	/** Schema of `runtime.json`. */
	private const SCHEMA = 'wp-codebox/browser-runtime-files/v1';

	/** Files without which no session starts. */
	private const REQUIRED = [ 'client.js', 'remote.html', 'remote.js', 'worker.js', 'sw.js', 'workbench.js', 'workbench.css', 'php-jspi.js', 'php-asyncify.js', 'runtime.json' ];

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param string $plugin Main file of the plugin.
	 */
	public function __construct( private readonly string $plugin ) {}

	/**
	 * Returns the address of a file on this site.
	 *
	 * @param string $name File name.
	 * @throws Failure `wp_codebox_browser_host_invalid` when the plugin is served from another origin than wp-admin.
	 */
	public function url( string $name ): string {
		$url  = plugins_url( self::DIRECTORY . '/' . $name, $this->plugin );
		$page = BrowserHost::origin_of( admin_url() );
		if ( BrowserHost::origin_of( $url ) !== $page ) {
			throw BrowserHost::refused(
				/* translators: 1: origin of the plugin's files, 2: origin of wp-admin. */
				Sentence::of( __( 'The files of this plugin are served from %1$s and wp-admin from %2$s, for example by a content delivery network. A browser sandbox must be loaded from the same address as wp-admin, or from the host in the constant WP_CODEBOX_BROWSER_HOST.', 'codebox' ), BrowserHost::origin_of( $url ), $page ),
				__( 'Let the address of wp-admin serve the files of this plugin, or set the constant WP_CODEBOX_BROWSER_HOST in wp-config.php to a host that serves them.', 'codebox' )
			);
		}
		return add_query_arg( 'ver', VERSION, $url );
	}

	/**
	 * Returns the address of a file on the separate host, which serves the same plugin directory.
	 *
	 * @param string $name   File name.
	 * @param string $origin Origin of the host.
	 */
	public function url_on( string $name, string $origin ): string {
		$path = (string) wp_parse_url( plugins_url( self::DIRECTORY . '/' . $name, $this->plugin ), PHP_URL_PATH );
		return add_query_arg( 'ver', VERSION, $origin . $path );
	}

	/**
	 * Returns the names of required files that are missing.
	 *
	 * @return list<string>
	 */
	public function missing(): array {
		return array_values( array_filter( self::REQUIRED, fn( string $name ): bool => ! is_file( $this->path( $name ) ) || 0 === filesize( $this->path( $name ) ) ) );
	}

	/**
	 * Returns the content of `runtime.json`.
	 *
	 * @return array{php: string, packages: string, files: array<string, array{name: string, bytes: int, sha256: string}>, version: string}
	 * @throws Failure `wp_codebox_browser_assets_missing`.
	 */
	public function runtime(): array {
		$path = $this->path( 'runtime.json' );
		// phpcs:ignore WordPress.WP.AlternativeFunctions -- a file of this plugin, no address.
		$text  = is_file( $path ) ? (string) file_get_contents( $path ) : '';
		$data  = json_decode( $text, true );
		$files = [];
		foreach ( is_array( $data ) && self::SCHEMA === ( $data['schema'] ?? '' ) && is_array( $data['files'] ?? null ) ? $data['files'] : [] as $file ) {
			$name  = is_string( $file['name'] ?? null ) ? $file['name'] : '';
			$valid = 1 === preg_match( '/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/D', $name ) && is_int( $file['bytes'] ?? null ) && $file['bytes'] > 0 && is_string( $file['sha256'] ?? null ) && 1 === preg_match( '/^[0-9a-f]{64}$/D', $file['sha256'] );
			if ( ! $valid || isset( $files[ $name ] ) ) {
				$files = [];
				break;
			}
			$files[ $name ] = [
				'name'   => $name,
				'bytes'  => $file['bytes'],
				'sha256' => $file['sha256'],
			];
		}
		if ( [] === $files ) {
			throw self::incomplete( [ self::DIRECTORY . '/runtime.json' ] );
		}
		return [
			'php'      => (string) ( $data['php'] ?? '' ),
			'packages' => (string) ( $data['packages'] ?? '' ),
			'files'    => $files,
			'version'  => substr( hash( 'sha256', $text ), 0, 16 ),
		];
	}

	/**
	 * Fails unless the plugin contains every file of the engine.
	 *
	 * @throws Failure `wp_codebox_browser_assets_missing`.
	 */
	public function check(): void {
		$missing = $this->missing();
		if ( [] !== $missing ) {
			throw self::incomplete( array_map( static fn( string $name ): string => self::DIRECTORY . "/$name", $missing ) );
		}
	}

	/**
	 * Returns the path of a file.
	 *
	 * @param string $name File name.
	 */
	private function path( string $name ): string {
		return $this->directory() . '/' . $name;
	}

	/** Returns the directory of the files. */
	public function directory(): string {
		return dirname( $this->plugin ) . '/' . self::DIRECTORY;
	}

	/**
	 * Builds the failure of an incomplete plugin.
	 *
	 * @param list<string> $names Missing files.
	 */
	private static function incomplete( array $names ): Failure {
		return Failure::because(
			ErrorCode::BrowserAssetsMissing,
			/* translators: %s: list of files. */
			Sentence::of( __( 'This installation of Codebox is not complete, so no browser sandbox can start. Missing or damaged: %s.', 'codebox' ), implode( ', ', $names ) ),
			[ __( 'Install the plugin again from its zip archive.', 'codebox' ) ],
			[ 'files' => $names ]
		);
	}
}
