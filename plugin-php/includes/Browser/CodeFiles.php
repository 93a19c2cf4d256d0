<?php
/**
 * Files of a directory that an archive contains.
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
 * Lists regular files in a fixed order. Symbolic links, special files, version control, `node_modules`, and files that hold
 * credentials or server settings are left out.
 */
final class CodeFiles {

	/** Maximum size of a file in an archive, in bytes; larger files are left out. */
	public const MAX_FILE = 16777216;
	/** Maximum size of all files of an archive, in bytes. */
	public const MAX_BYTES = 104857600;
	/** Maximum number of files of an archive. */
	public const MAX_FILES = 20000;

	private const DIRECTORIES = [ '.git', '.svn', '.hg', '.bzr', '.idea', '.vscode', 'node_modules' ];

	/** Files that the sandbox does not need and that may hold credentials, or that a server reads. */
	private const FILES = '/^(?:wp-config.*\.php|\.env.*|\.ht.*|\.user\.ini|php\.ini|\.git(?:ignore|attributes|modules)?|\.DS_Store|auth\.json|\.npmrc|id_[a-z0-9]+|.*\.(?:pem|key|p12|pfx|log))$/iD';

	/**
	 * Returns the files below a directory: path by name relative to the directory, sorted by name.
	 *
	 * @param string                       $root    Canonical directory.
	 * @param callable(string): bool|null  $accepts Decides by relative name; null accepts all.
	 * @return array<string, string>
	 * @throws Failure `wp_codebox_browser_seed_too_large`.
	 */
	public static function below( string $root, ?callable $accepts = null ): array {
		$files   = [];
		$bytes   = 0;
		$waiting = [ '' ];
		while ( [] !== $waiting ) {
			$directory = array_pop( $waiting );
			$names     = scandir( "$root/$directory" );
			foreach ( false === $names ? [] : $names as $name ) {
				$relative = $directory . $name;
				$path     = "$root/$relative";
				if ( '.' === $name || '..' === $name || is_link( $path ) || ! self::portable( $name ) ) {
					continue;
				}
				if ( is_dir( $path ) ) {
					in_array( $name, self::DIRECTORIES, true ) || $waiting[] = "$relative/";
					continue;
				}
				$size = is_file( $path ) ? (int) filesize( $path ) : self::MAX_FILE + 1;
				if ( $size > self::MAX_FILE || 1 === preg_match( self::FILES, $name ) || ( null !== $accepts && ! $accepts( $relative ) ) ) {
					continue;
				}
				$bytes             += $size;
				$files[ $relative ] = $path;
				if ( $bytes > self::MAX_BYTES || count( $files ) > self::MAX_FILES ) {
					throw self::too_large();
				}
			}
		}
		ksort( $files, SORT_STRING );
		return $files;
	}

	/**
	 * Returns one file: path by file name.
	 *
	 * @param string $path Path of a regular file.
	 * @return array<string, string>
	 * @throws Failure `wp_codebox_browser_seed_too_large`.
	 */
	public static function one( string $path ): array {
		return filesize( $path ) > self::MAX_FILE ? throw self::file_too_large( $path ) : [ basename( $path ) => $path ];
	}

	/**
	 * Builds the failure of a single file that is too large for a browser.
	 *
	 * @param string $path Path of the file.
	 */
	private static function file_too_large( string $path ): Failure {
		/* translators: 1: file name, 2: size, as 20 MB. */
		return Failure::because( ErrorCode::BrowserSeedTooLarge, Sentence::of( __( 'The file %1$s is too large for a browser sandbox, which takes files of at most %2$s; use a sandbox on the host.', 'codebox' ), basename( $path ), (string) size_format( self::MAX_FILE ) ) );
	}

	/** Builds the failure of code that is too large for a browser. */
	public static function too_large(): Failure {
		return Failure::because(
			ErrorCode::BrowserSeedTooLarge,
			/* translators: 1: size, as 100 MB, 2: number of files. */
			Sentence::of( __( 'The code is too large for a browser sandbox, which takes at most %1$s in %2$d files.', 'codebox' ), (string) size_format( self::MAX_BYTES ), self::MAX_FILES ),
			[ __( 'Remove build results and test data from the directory, or use a sandbox on the host.', 'codebox' ) ]
		);
	}

	/**
	 * Checks whether a zip archive and the file system of the browser can have a file of this name.
	 *
	 * @param string $name Name of a file or directory.
	 */
	private static function portable( string $name ): bool {
		return 1 === preg_match( '/^[^\x00-\x1f\x7f\\\\:]+$/Du', $name );
	}
}
