<?php
/**
 * Files that browser sessions download.
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
 * Stores archives under their sha256. The modification time of a file is the time after which it may be deleted; each
 * link to it moves that time. A link is valid only for one user, site and session.
 */
final class PrivateFiles {

	/** Name of the cron event that deletes old files. */
	public const CLEANUP = 'wp_codebox_browser_cleanup';

	/** Maximum size of one file, in bytes. */
	public const MAX_FILE = 209715200;
	/** Maximum size of all files of a site, in bytes. */
	public const MAX_TOTAL = 1073741824;

	/** Minimum time that a file is stored, in seconds. */
	private const KEEP = DAY_IN_SECONDS;
	/** Seconds after which a temporary file of a request that ended early is deleted. */
	private const UNFINISHED = HOUR_IN_SECONDS;

	private const TEMPORARY = '.unfinished-';

	/**
	 * Creates the store with its dependencies.
	 *
	 * @param PrivateDirectory $directory Directory of the files.
	 * @param string           $site_id   Id of this site.
	 * @param int              $max_total Maximum size of all files, in bytes.
	 */
	public function __construct(
		private readonly PrivateDirectory $directory,
		private readonly string $site_id,
		private readonly int $max_total = self::MAX_TOTAL
	) {}

	/**
	 * Returns the path of a file; null when it is not stored.
	 *
	 * @param string $sha256 Its sha256 in lower-case hexadecimal digits.
	 */
	public function path( string $sha256 ): ?string {
		if ( 1 !== preg_match( '/^[0-9a-f]{64}$/D', $sha256 ) ) {
			return null;
		}
		$path = $this->directory->path() . '/' . $sha256;
		return is_file( $path ) && ! is_link( $path ) ? $path : null;
	}

	/**
	 * Returns the path of a new file in the directory of the store, for `add()`.
	 */
	public function temporary(): string {
		return $this->directory->path() . '/' . self::TEMPORARY . bin2hex( random_bytes( 8 ) );
	}

	/**
	 * Moves a file into the store.
	 *
	 * @param string $temporary_file Path from `temporary()`.
	 * @return array{sha256: string, bytes: int}
	 * @throws Failure `wp_codebox_browser_storage_full` or `wp_codebox_browser_storage_failed`.
	 */
	public function add( string $temporary_file ): array {
		// phpcs:disable WordPress.WP.AlternativeFunctions -- rename() replaces in one step; WP_Filesystem copies.
		$bytes  = is_file( $temporary_file ) ? (int) filesize( $temporary_file ) : 0;
		$sha256 = $bytes > 0 ? (string) hash_file( 'sha256', $temporary_file ) : '';
		$path   = $this->directory->path() . '/' . $sha256;
		if ( '' === $sha256 ) {
			throw PrivateDirectory::failed();
		}
		if ( ! is_file( $path ) ) {
			try {
				$this->assert_space( $bytes );
			} catch ( Failure $failure ) {
				unlink( $temporary_file );
				throw $failure;
			}
		}
		if ( ! chmod( $temporary_file, 0600 ) || ! rename( $temporary_file, $path ) ) {
			throw PrivateDirectory::failed();
		}
		// phpcs:enable
		$this->keep_until( $path, time() + self::KEEP );
		if ( false === wp_next_scheduled( self::CLEANUP ) ) {
			wp_schedule_event( time() + self::KEEP, 'daily', self::CLEANUP );
		}
		return [
			'sha256' => $sha256,
			'bytes'  => $bytes,
		];
	}

	/**
	 * Returns a link to a file for the current user, and keeps the file until the link expires.
	 *
	 * @param string $sha256     Its sha256.
	 * @param string $session_id Id of the browser session.
	 * @param int    $expires_at Time at which the link expires, in seconds since 1970.
	 * @throws Failure `wp_codebox_browser_file_missing`.
	 */
	public function url( string $sha256, string $session_id, int $expires_at ): string {
		$path = $this->path( $sha256 );
		if ( null === $path ) {
			throw self::missing();
		}
		$this->keep_until( $path, $expires_at );
		return rest_url( FileRoute::NAMESPACE . FileRoute::ROUTE . '/' . ( new FileToken( $sha256, get_current_user_id(), $this->site_id, $session_id, $expires_at ) )->text() );
	}

	/**
	 * Deletes files that no valid link needs, and temporary files of requests that ended early.
	 *
	 * @return int Number of deleted files.
	 */
	public function sweep(): int {
		$gone = 0;
		foreach ( $this->directory->existing() as $directory ) {
			foreach ( self::files( $directory ) as $path ) {
				$unfinished = str_starts_with( basename( $path ), self::TEMPORARY );
				if ( (int) filemtime( $path ) + ( $unfinished ? self::UNFINISHED : 0 ) < time() ) {
					wp_delete_file( $path );
					++$gone;
				}
			}
		}
		clearstatcache();
		return $gone;
	}

	/** Deletes every file and directory of this site, when the plugin is uninstalled. */
	public function remove(): void {
		wp_clear_scheduled_hook( self::CLEANUP );
		foreach ( $this->directory->existing() as $directory ) {
			foreach ( [ ...self::files( $directory ), "$directory/.htaccess", "$directory/index.php", "$directory/" . CoreArchive::LOCK ] as $path ) {
				is_file( $path ) && wp_delete_file( $path );
			}
			// phpcs:ignore WordPress.WP.AlternativeFunctions -- a directory of this plugin; fails when it holds foreign files.
			count( (array) scandir( $directory ) ) === 2 && rmdir( $directory );
		}
	}

	/** Builds the failure of a file that is not stored any more. */
	public static function missing(): Failure {
		return Failure::because(
			ErrorCode::BrowserFileMissing,
			__( 'This file of the browser sandbox is not stored any more; open the sandbox again.', 'codebox' )
		);
	}

	/**
	 * Fails unless a file of this size fits into the store.
	 *
	 * @param int $bytes Size of the new file.
	 * @throws Failure `wp_codebox_browser_storage_full`.
	 */
	private function assert_space( int $bytes ): void {
		$used = fn(): int => (int) array_sum( array_map( static fn( string $path ): int => (int) filesize( $path ), self::files( $this->directory->path() ) ) );
		if ( $bytes > self::MAX_FILE ) {
			/* translators: %s: size, as 100 MB. */
			throw Failure::because( ErrorCode::BrowserStorageFull, Sentence::of( __( 'A file of the browser sandbox is larger than %s, the maximum for one file; open a smaller plugin or theme.', 'codebox' ), (string) size_format( self::MAX_FILE ) ) );
		}
		// The new file itself is among the files, as a temporary one.
		if ( $used() <= $this->max_total || ( $this->sweep() > 0 && $used() <= $this->max_total ) ) {
			return;
		}
		throw Failure::because(
			ErrorCode::BrowserStorageFull,
			/* translators: %s: size, as 1 GB. */
			Sentence::of( __( 'The files of browser sandboxes of this site would need more than %s.', 'codebox' ), (string) size_format( $this->max_total ) ),
			[ __( 'Close browser sandboxes and try again in a day, when their files are deleted; or open a smaller plugin or theme.', 'codebox' ) ]
		);
	}

	/**
	 * Moves the time after which a file may be deleted; never to an earlier one.
	 *
	 * @param string $path Path of the file.
	 * @param int    $time Seconds since 1970.
	 */
	private function keep_until( string $path, int $time ): void {
		clearstatcache( true, $path );
		if ( (int) filemtime( $path ) < $time ) {
			// phpcs:ignore WordPress.WP.AlternativeFunctions -- a file of this plugin.
			touch( $path, $time );
		}
	}

	/**
	 * Returns the stored and temporary files of a directory.
	 *
	 * @param string $directory Directory of the store.
	 * @return list<string>
	 */
	private static function files( string $directory ): array {
		$names = scandir( $directory );
		$names = array_filter( false === $names ? [] : $names, static fn( string $name ): bool => 1 === preg_match( '/^(?:[0-9a-f]{64}|\.unfinished-[0-9a-f]{16}\S*)$/D', $name ) );
		return array_values( array_filter( array_map( static fn( string $name ): string => "$directory/$name", $names ), 'is_file' ) );
	}
}
