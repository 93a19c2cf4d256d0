<?php
/**
 * Opcode cache of this PHP.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\DirectApply;

defined( 'ABSPATH' ) || exit;

/** Makes PHP read changed files again. */
final class OpcodeCache {

	/** Default of `opcache.revalidate_freq`, in seconds. */
	private const REVALIDATE = 2;

	/**
	 * Drops files from the opcode cache of this PHP, and what PHP remembers of their directories.
	 *
	 * @param list<string> $files Host paths.
	 */
	public static function drop( array $files ): void {
		clearstatcache( true );
		require_once ABSPATH . 'wp-admin/includes/file.php';
		foreach ( $files as $file ) {
			wp_opcache_invalidate( (string) $file, true );
		}
	}

	/**
	 * Returns how many milliseconds to wait until the PHP that serves the site uses changed files. 0 in a web request,
	 * which drops the files from the cache of that PHP itself. A command line cannot reach that cache, so it waits
	 * until PHP notices the changed files by itself.
	 */
	public static function settle_ms(): int {
		return 'cli' === PHP_SAPI ? ( self::REVALIDATE * 1000 ) + 500 : 0;
	}
}
