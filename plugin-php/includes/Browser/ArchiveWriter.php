<?php
/**
 * Writes zip archives.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use ZipArchive;

defined( 'ABSPATH' ) || exit;

/**
 * Equal names and contents give equal bytes on one host: order, timestamps and modes are fixed.
 */
final class ArchiveWriter {

	/** 1980-01-02, in every time zone after the earliest date of the zip format. */
	private const TIME = 315662400;

	/** Mode 0644 of a regular file, as the external attributes of a zip entry. */
	private const MODE = 0100644 << 16;

	/**
	 * Creates the writer with its dependencies.
	 *
	 * @param PrivateFiles $files Store of the archives.
	 */
	public function __construct( private readonly PrivateFiles $files ) {}

	/**
	 * Stores an archive.
	 *
	 * @param array<string, string> $files    Path by name in the archive.
	 * @param array<string, string> $contents Contents by name in the archive.
	 * @return array{sha256: string, bytes: int}
	 * @throws Failure `wp_codebox_browser_archive_unavailable` or one of `PrivateFiles::add()`.
	 */
	public function store( array $files, array $contents = [] ): array {
		self::assert_available();
		$temporary = $this->files->temporary();
		$archive   = new ZipArchive();
		if ( true !== $archive->open( $temporary, ZipArchive::CREATE | ZipArchive::EXCL ) ) {
			throw PrivateDirectory::failed();
		}
		$entries = $files + $contents;
		ksort( $entries, SORT_STRING );
		$added = true;
		foreach ( array_keys( $entries ) as $name ) {
			$name  = (string) $name;
			$added = $added
				&& ( isset( $files[ $name ] ) ? $archive->addFile( $files[ $name ], $name ) : $archive->addFromString( $name, $contents[ $name ] ) )
				&& $archive->setMtimeName( $name, self::TIME )
				&& $archive->setExternalAttributesName( $name, ZipArchive::OPSYS_UNIX, self::MODE )
				&& $archive->setCompressionName( $name, ZipArchive::CM_DEFLATE, 6 );
		}
		// An archive needs an entry: libzip deletes an empty one.
		if ( [] === $entries ) {
			$added = $archive->addFromString( '.codebox-empty', '' ) && $archive->setMtimeName( '.codebox-empty', self::TIME );
		}
		if ( ! $archive->close() || ! $added ) {
			is_file( $temporary ) && wp_delete_file( $temporary );
			throw PrivateDirectory::failed();
		}
		return $this->files->add( $temporary );
	}

	/**
	 * Fails unless PHP can read and write zip archives.
	 *
	 * @throws Failure `wp_codebox_browser_archive_unavailable`.
	 */
	public static function assert_available(): void {
		/**
		 * Filters whether PHP's zip module is used. Returning false shows what a host without it shows.
		 *
		 * @param bool $available Whether the class ZipArchive exists.
		 */
		if ( true !== apply_filters( 'wp_codebox_browser_zip_available', class_exists( ZipArchive::class ) ) ) {
			throw Failure::because(
				ErrorCode::BrowserArchiveUnavailable,
				__( 'This PHP has no zip module, which browser sandboxes need to pack the code.', 'codebox' ),
				[ __( 'Install the PHP module zip (Debian: php-zip) and restart PHP.', 'codebox' ) ]
			);
		}
	}
}
