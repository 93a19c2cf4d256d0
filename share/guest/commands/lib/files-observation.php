<?php
/**
 * Reports the files below a path.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Reports names, sizes and digests, and contents on request. Number and bytes are limited; the result reports
 * omitted data.
 */
final class Files_Observation {
	/** Limits: entries; then bytes of one hashed file, of all reported contents, of one reported content. */
	private const ENTRIES = 2000;
	private const HASHED  = 16777216;
	private const SHOWN   = 1048576;
	private const CONTENT = 65536;

	/** Bytes of file contents that were reported so far. */
	private int $shown = 0;

	/**
	 * Reports the files below a path.
	 *
	 * @param string $path    File or directory.
	 * @param bool   $content Whether contents are reported.
	 * @return array<string,mixed>
	 */
	public function look( string $path, bool $content ): array {
		if ( ! str_starts_with( $path, '/' ) || str_contains( $path, "\0" ) || in_array( '..', explode( '/', $path ), true ) ) {
			throw Refusal::input( 'path must be absolute and without ..' );
		}
		if ( ! file_exists( $path ) && ! is_link( $path ) ) {
			throw Refusal::input( "there is nothing at $path" );
		}
		$rows = array();
		$more = false;
		foreach ( $this->walk( $path ) as $name ) {
			if ( count( $rows ) >= self::ENTRIES ) {
				$more = true;
				break;
			}
			$rows[] = $this->row( $name, $content );
		}
		return array(
			'path'      => $path,
			'files'     => $rows,
			'truncated' => $more,
		);
	}

	/**
	 * Returns the paths below a directory in a fixed order; symlinks are not followed.
	 *
	 * @param string $path Directory to list.
	 * @return iterable<string>
	 */
	private function walk( string $path ): iterable {
		if ( is_link( $path ) || ! is_dir( $path ) ) {
			yield $path;
			return;
		}
		$names = @scandir( $path );
		foreach ( false === $names ? array() : $names as $name ) {
			if ( '.' !== $name && '..' !== $name && '.git' !== $name ) {
				yield from $this->walk( rtrim( $path, '/' ) . '/' . $name );
			}
		}
	}

	/**
	 * Returns the row of one file: size, digest and, if requested, content.
	 *
	 * @param string $name    Path of the file.
	 * @param bool   $content Whether its content is reported.
	 * @return array<string,mixed>
	 */
	private function row( string $name, bool $content ): array {
		if ( is_link( $name ) ) {
			return array(
				'path'   => $name,
				'type'   => 'link',
				'target' => (string) readlink( $name ),
			);
		}
		$row = array(
			'path' => $name,
			'type' => is_file( $name ) ? 'file' : 'other',
		);
		if ( 'other' === $row['type'] || ! is_readable( $name ) ) {
			return $row;
		}
		$row['bytes'] = (int) filesize( $name );
		if ( $row['bytes'] <= self::HASHED ) {
			$row['sha256'] = (string) hash_file( 'sha256', $name );
		}
		if ( $content && $row['bytes'] <= self::CONTENT && $this->shown + $row['bytes'] <= self::SHOWN ) {
			$bytes        = (string) file_get_contents( $name );
			$this->shown += strlen( $bytes );
			$row += mb_check_encoding( $bytes, 'UTF-8' ) ? array( 'content' => $bytes ) : array( 'base64' => base64_encode( $bytes ) );
		}
		return $row;
	}
}
