<?php
/**
 * Installs the runtime files of browser sandboxes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;
use ZipArchive;

defined( 'ABSPATH' ) || exit;

/**
 * Unpacks `codebox-browser.zip`. Every entry must be a file of `runtime.json` with the size and hash that it has there, and none may be
 * missing; nothing else is written. The files get into place by one rename of their directory.
 */
final class RuntimeInstall {

	private const STAGED = '.new-';
	private const OLD    = '.old-';

	/**
	 * Creates the installer with its dependencies.
	 *
	 * @param RuntimeFiles $runtime Installed runtime files.
	 */
	public function __construct( private readonly RuntimeFiles $runtime ) {}

	/**
	 * Installs the files of an archive.
	 *
	 * @param string $archive Path of the archive.
	 * @return array<string, mixed> Status as from `status()`.
	 * @throws Failure `wp_codebox_browser_assets_invalid`, `wp_codebox_browser_archive_unavailable` or `wp_codebox_browser_storage_failed`.
	 */
	public function install( string $archive ): array {
		$this->runtime->engine->check();
		ArchiveWriter::assert_available();
		$expected = $this->runtime->engine->runtime()['files'];
		$zip      = new ZipArchive();
		if ( ! is_file( $archive ) || true !== $zip->open( $archive, ZipArchive::RDONLY | ZipArchive::CHECKCONS ) ) {
			throw self::refused( __( 'it is no zip archive', 'codebox' ) );
		}
		$target = $this->runtime->directory();
		$this->clear();
		$staged = dirname( $target ) . '/' . self::STAGED . bin2hex( random_bytes( 8 ) );
		if ( ! wp_mkdir_p( $staged ) ) {
			$zip->close();
			throw PrivateDirectory::failed();
		}
		try {
			$this->unpack( $zip, $expected, $staged );
			$this->put( $staged, $target );
		} finally {
			$zip->close();
			$this->clear();
		}
		$this->prune();
		return $this->status( true );
	}

	/**
	 * Returns what is installed.
	 *
	 * @param bool $thorough Whether to compare hashes, not only sizes.
	 * @return array<string, mixed> `wp-codebox/browser-assets-status/v1`.
	 */
	public function status( bool $thorough = false ): array {
		$list = $this->runtime->engine->runtime();
		$rows = array_values( $this->runtime->rows( $thorough ) );
		return [
			'schema'    => 'wp-codebox/browser-assets-status/v1',
			'installed' => [] === array_filter( $rows, static fn( array $row ): bool => 'installed' !== $row['status'] ),
			'version'   => $list['version'],
			'php'       => $list['php'],
			'packages'  => $list['packages'],
			'directory' => $this->runtime->directory(),
			'bytes'     => array_sum( array_column( $list['files'], 'bytes' ) ),
			'files'     => $rows,
		];
	}

	/** Deletes the runtime files of every version. */
	public function remove(): void {
		foreach ( self::below( $this->runtime->base() ) as $path ) {
			self::delete( $path );
		}
		self::delete( $this->runtime->base() );
	}

	/**
	 * Writes the entries of an archive into a new directory.
	 *
	 * @param ZipArchive                                                       $zip      Opened archive.
	 * @param array<string, array{name: string, bytes: int, sha256: string}> $expected Files of `runtime.json` by name.
	 * @param string                                                           $staged   New directory.
	 * @throws Failure `wp_codebox_browser_assets_invalid`.
	 */
	private function unpack( ZipArchive $zip, array $expected, string $staged ): void {
		$left = $expected;
		for ( $index = 0; $index < $zip->numFiles; $index++ ) {
			$name = (string) $zip->getNameIndex( $index, ZipArchive::FL_ENC_RAW );
			if ( ! isset( $left[ $name ] ) ) {
				/* translators: %s: name of an entry. */
				throw self::refused( Sentence::of( isset( $expected[ $name ] ) ? __( 'it contains "%s" twice', 'codebox' ) : __( 'it contains "%s", which does not belong to this release', 'codebox' ), substr( sanitize_text_field( $name ), 0, 100 ) ) );
			}
			// A symbolic link is an entry whose content is a path; its type is in the external attributes.
			$system     = 0;
			$attributes = 0;
			$zip->getExternalAttributesIndex( $index, $system, $attributes );
			$type = ZipArchive::OPSYS_UNIX === $system ? ( $attributes >> 16 ) & 0170000 : 0;
			if ( ( 0 !== $type && 0100000 !== $type ) || ! $this->copy( $zip, $index, $left[ $name ], "$staged/$name" ) ) {
				/* translators: %s: name of an entry. */
				throw self::refused( Sentence::of( __( 'its "%s" is not the file of this release', 'codebox' ), $name ) );
			}
			unset( $left[ $name ] );
		}
		if ( [] !== $left ) {
			/* translators: %s: list of file names. */
			throw self::refused( Sentence::of( __( 'it does not contain %s', 'codebox' ), implode( ', ', array_keys( $left ) ) ) );
		}
	}

	/**
	 * Copies one entry, at most as many bytes as expected, and compares its hash.
	 *
	 * @param ZipArchive                                        $zip   Opened archive.
	 * @param int                                               $index Number of the entry.
	 * @param array{name: string, bytes: int, sha256: string} $file  Expected file.
	 * @param string                                            $path  New file.
	 */
	private function copy( ZipArchive $zip, int $index, array $file, string $path ): bool {
		// The size in the directory of the archive may be false, so the loop counts, too.
		if ( ( $zip->statIndex( $index )['size'] ?? -1 ) !== $file['bytes'] ) {
			return false;
		}
		// phpcs:disable WordPress.WP.AlternativeFunctions -- copies a stream; `x` never follows a link.
		$from = $zip->getStreamIndex( $index );
		$to   = fopen( $path, 'xb' );
		if ( false === $from || false === $to ) {
			return false;
		}
		$hash  = hash_init( 'sha256' );
		$bytes = 0;
		while ( ! feof( $from ) && $bytes <= $file['bytes'] ) {
			$part = fread( $from, 65536 );
			if ( false === $part || fwrite( $to, $part ) !== strlen( $part ) ) {
				break;
			}
			$bytes += strlen( $part );
			hash_update( $hash, $part );
		}
		fclose( $from );
		$written = fflush( $to ) && fclose( $to ) && chmod( $path, 0644 );
		// phpcs:enable
		return $written && $bytes === $file['bytes'] && hash_equals( $file['sha256'], hash_final( $hash ) );
	}

	/**
	 * Moves the new directory into place; it replaces an existing one of the same version.
	 *
	 * @param string $staged New directory.
	 * @param string $target Final path of the new directory.
	 */
	private function put( string $staged, string $target ): void {
		// phpcs:disable WordPress.WP.AlternativeFunctions -- rename() switches in one step; WP_Filesystem copies.
		$old = dirname( $target ) . '/' . self::OLD . bin2hex( random_bytes( 8 ) );
		if ( ( file_exists( $target ) || is_link( $target ) ) && ! rename( $target, $old ) ) {
			throw PrivateDirectory::failed();
		}
		if ( ! chmod( $staged, 0755 ) || ! rename( $staged, $target ) ) {
			is_dir( $old ) && rename( $old, $target );
			throw PrivateDirectory::failed();
		}
		// phpcs:enable
	}

	/** Deletes what an interrupted installation left. */
	private function clear(): void {
		foreach ( self::below( $this->runtime->base() ) as $path ) {
			$name = basename( $path );
			if ( str_starts_with( $name, self::STAGED ) || str_starts_with( $name, self::OLD ) ) {
				self::delete( $path );
			}
		}
	}

	/** Deletes the files of other versions. */
	private function prune(): void {
		foreach ( self::below( $this->runtime->base() ) as $path ) {
			if ( $path !== $this->runtime->directory() && 1 === preg_match( '/^[0-9a-f]{16}$/D', basename( $path ) ) ) {
				self::delete( $path );
			}
		}
	}

	/**
	 * Returns the entries of a directory of this class.
	 *
	 * @param string $directory Path.
	 * @return list<string>
	 */
	private static function below( string $directory ): array {
		$names = is_dir( $directory ) && ! is_link( $directory ) ? scandir( $directory ) : false;
		return array_map( static fn( string $name ): string => "$directory/$name", array_values( array_diff( false === $names ? [] : $names, [ '.', '..' ] ) ) );
	}

	/**
	 * Deletes a file, a link, or a directory with its files. A link is deleted and not followed.
	 *
	 * @param string $path Path.
	 */
	private static function delete( string $path ): void {
		if ( is_dir( $path ) && ! is_link( $path ) ) {
			array_map( [ self::class, 'delete' ], self::below( $path ) );
			// phpcs:ignore WordPress.WP.AlternativeFunctions -- a directory of this class.
			rmdir( $path );
		} elseif ( file_exists( $path ) || is_link( $path ) ) {
			// phpcs:ignore WordPress.WP.AlternativeFunctions -- a file of this class; wp_delete_file() would ask filters.
			unlink( $path );
		}
	}

	/**
	 * Builds the failure of an archive that is not installed.
	 *
	 * @param string $reason What is wrong with it.
	 */
	private static function refused( string $reason ): Failure {
		return Failure::because(
			ErrorCode::BrowserAssetsInvalid,
			/* translators: %s: what is wrong. */
			Sentence::of( __( 'This archive is not the codebox-browser.zip of this release: %s. Nothing was installed.', 'codebox' ), $reason ),
			/* translators: %s: version. */
			[ Sentence::of( __( 'Take codebox-browser.zip from release %s of Codebox.', 'codebox' ), \WPCodebox\VERSION ) ]
		);
	}
}
