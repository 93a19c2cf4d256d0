<?php
/**
 * Directory of the files that browser sessions download.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Host\ServedDirectories;
use WPCodebox\Host\Site;

defined( 'ABSPATH' ) || exit;

/**
 * Chooses and creates the directory: `sites/<site>/browser` of the state directory where PHP may write there and no
 * web server serves it, else a directory of the uploads whose name cannot be guessed, with files that make
 * Apache refuse it.
 */
final class PrivateDirectory {

	/** Option with the random part of the name below the uploads. */
	public const OPTION = 'wp_codebox_browser_directory';

	private const PREFIX = 'wp-codebox-browser-files-';

	/** Files of a directory below the uploads that refuse requests for it. */
	private const DENY = [
		'.htaccess' => "<IfModule mod_authz_core.c>\nRequire all denied\n</IfModule>\n<IfModule !mod_authz_core.c>\nDeny from all\n</IfModule>\n",
		'index.php' => "<?php\n// Nothing is listed here.\n",
	];

	/**
	 * Creates the chooser with its dependencies.
	 *
	 * @param Site $site Site the plugin runs on.
	 */
	public function __construct( private readonly Site $site ) {}

	/**
	 * Returns the directory, after creating it if it is missing.
	 *
	 * @throws Failure `wp_codebox_browser_storage_failed`.
	 */
	public function path(): string {
		$state = $this->state();
		$path  = $state ?? $this->uploads();
		// phpcs:disable WordPress.WP.AlternativeFunctions -- WP_Filesystem can use FTP credentials, which no request has.
		if ( ! is_dir( $path ) && ! ( wp_mkdir_p( $path ) && chmod( $path, 0700 ) ) ) {
			throw self::failed();
		}
		foreach ( null === $state ? self::DENY : [] as $name => $text ) {
			if ( ! is_file( "$path/$name" ) && strlen( $text ) !== file_put_contents( "$path/$name", $text, LOCK_EX ) ) {
				throw self::failed();
			}
		}
		if ( ! is_writable( $path ) || is_link( $path ) ) {
			throw self::failed();
		}
		// phpcs:enable
		return $path;
	}

	/**
	 * Returns the directories of this site that exist, for the removal of their files. A site that got or lost a state
	 * directory has two.
	 *
	 * @return list<string>
	 */
	public function existing(): array {
		$found = glob( $this->base() . '/' . self::PREFIX . '*', GLOB_ONLYDIR | GLOB_NOSORT );
		$state = $this->state();
		return array_values( array_filter( [ ...( false === $found ? [] : $found ), ...( null !== $state && is_dir( $state ) ? [ $state ] : [] ) ], static fn( string $path ): bool => ! is_link( $path ) ) );
	}

	/** Returns the directory in the state directory; null where there is none, a web server serves it, or PHP may not write to it. */
	private function state(): ?string {
		$root = untrailingslashit( (string) ( ExtensionGate::info()['state_dir'] ?? '' ) );
		if ( '' === $root || ! is_dir( $root ) || null !== ServedDirectories::holding( $root ) ) {
			return null;
		}
		// Everything is writable for root, but the PHP of the web server could not use a file that root creates.
		$owned = ! function_exists( 'posix_geteuid' ) || fileowner( $root ) === posix_geteuid();
		$path  = $root . '/sites/' . $this->site->id() . '/browser';
		$near  = $path;
		while ( ! file_exists( $near ) ) {
			$near = dirname( $near );
		}
		// phpcs:ignore WordPress.WP.AlternativeFunctions -- a directory outside of WordPress.
		return $owned && is_dir( $near ) && is_writable( $near ) ? $path : null;
	}

	/** Returns the directory below the uploads. */
	private function uploads(): string {
		$name = get_option( self::OPTION );
		if ( ! is_string( $name ) || 1 !== preg_match( '/^[0-9a-f]{32}$/D', $name ) ) {
			$name = bin2hex( random_bytes( 16 ) );
			// Two first requests at once: add_option() keeps the name of the first one.
			add_option( self::OPTION, $name, '', false ) || update_option( self::OPTION, $name, false );
			$name = (string) get_option( self::OPTION );
		}
		return $this->base() . '/' . self::PREFIX . $name;
	}

	/** Returns the directory of the uploads of this site. */
	private function base(): string {
		return untrailingslashit( (string) ( wp_get_upload_dir()['basedir'] ?? '' ) );
	}

	/** Builds the failure of a directory that cannot be used. */
	public static function failed(): Failure {
		return Failure::because(
			ErrorCode::BrowserStorageFailed,
			__( 'The files of a browser sandbox cannot be stored: PHP could not write to the directory for them.', 'codebox' ),
			[ __( 'Make the uploads directory of this site writable for PHP, and check that the disk has free space.', 'codebox' ) ]
		);
	}
}
