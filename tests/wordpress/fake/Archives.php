<?php
/**
 * Archives of the stand-in extension: not in tar format, but deterministic too.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Native;

final class Archives {

	private const HEAD = "stand-in archive\n";

	public static function pack( string $directory ): string {
		return self::HEAD . json_encode( array_map( 'base64_encode', self::read( $directory ) ) );
	}

	public static function unpack( string $bytes ): string {
		$files = str_starts_with( $bytes, self::HEAD ) ? json_decode( substr( $bytes, strlen( self::HEAD ) ), true ) : null;
		if ( ! is_array( $files ) ) {
			throw Exception::make( 'wp_codebox_artifact_import_source_invalid', 'The bytes are not an archive of a bundle.' );
		}
		$directory = sys_get_temp_dir() . '/codebox-fake-import-' . bin2hex( random_bytes( 8 ) );
		self::write( array_map( 'base64_decode', $files ), $directory );
		return $directory;
	}

	public static function read( string $directory ): array {
		$files = [];
		foreach ( new \RecursiveIteratorIterator( new \RecursiveDirectoryIterator( $directory, \FilesystemIterator::SKIP_DOTS ) ) as $file ) {
			$files[ substr( $file->getPathname(), strlen( $directory ) + 1 ) ] = (string) file_get_contents( $file->getPathname() );
		}
		ksort( $files );
		return $files;
	}

	public static function write( array $files, string $directory ): void {
		foreach ( $files as $path => $bytes ) {
			is_dir( dirname( "$directory/$path" ) ) || mkdir( dirname( "$directory/$path" ), 0700, true );
			file_put_contents( "$directory/$path", $bytes );
		}
	}
}
