<?php
/**
 * Bundle directories of the stand-in.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Native;

final class Bundles {

	public static function root(): string {
		return (string) getenv( 'WP_CODEBOX_FAKE_STATE' );
	}

	public static function directory( string $site ): string {
		$directory = self::root() . '/sites/' . $site . '/artifacts';
		if ( ! is_dir( $directory ) ) {
			mkdir( $directory, 0700, true );
		}
		return $directory;
	}

	public static function write( string $site, string $run_id, array $entries, array $patches, array $review, array $files ): array {
		$directory = self::directory( $site ) . '/' . $run_id;
		mkdir( $directory . '/files/diffs', 0700, true );
		$files['files/changed-files.json'] = (string) json_encode(
			[
				'schema' => 'wp-codebox/changed-files/v1',
				'files'  => $entries,
			],
			JSON_UNESCAPED_SLASHES
		);
		$files['files/patch.diff']         = implode( '', array_merge( [], ...array_map( 'array_values', $patches ) ) );
		$files['files/review.json']        = (string) json_encode( $review );
		$files['patches.json']             = (string) json_encode( array_map( static fn( array $mount ): array => array_map( 'base64_encode', $mount ), $patches ) );
		$value                             = self::digest( $files['files/changed-files.json'], $files['files/patch.diff'] );
		$manifest                          = [
			'id'            => 'artifact-bundle-sha256-' . $value,
			'contentDigest' => [
				'algorithm' => 'sha256',
				'inputs'    => [ 'files/changed-files.json', 'files/patch.diff' ],
				'value'     => $value,
			],
			'createdAt'     => ( new \DateTimeImmutable() )->format( 'Y-m-d\TH:i:s.u\Z' ),
			'runtime'       => [ 'id' => $run_id ],
			'files'         => [],
		];
		ksort( $files );
		foreach ( $files as $path => $bytes ) {
			is_dir( dirname( $directory . '/' . $path ) ) || mkdir( dirname( $directory . '/' . $path ), 0700, true );
			file_put_contents( $directory . '/' . $path, $bytes );
			$manifest['files'][] = [
				'path'   => $path,
				'sha256' => [
					'algorithm' => 'sha256',
					'value'     => hash( 'sha256', $bytes ),
				],
			];
		}
		file_put_contents( $directory . '/manifest.json', json_encode( $manifest, JSON_UNESCAPED_SLASHES ) );
		return [
			'path'            => $directory,
			'bundle_id'       => $manifest['id'],
			'manifest_sha256' => hash_file( 'sha256', $directory . '/manifest.json' ),
		];
	}

	public static function digest( string $changed, string $patch ): string {
		return hash( 'sha256', "wp-codebox/artifact-content/v1\nfiles/changed-files.json\n" . $changed . "\nfiles/patch.diff\n" . $patch );
	}

	public static function json( string $directory, string $member ): array {
		$value = is_file( $directory . '/' . $member ) ? json_decode( (string) file_get_contents( $directory . '/' . $member ), true ) : null;
		return is_array( $value ) ? $value : [];
	}

	public static function find( string $site, string $reference ): string {
		$found = [];
		foreach ( glob( self::directory( $site ) . '/run_*' ) ?: [] as $directory ) {
			$ids = [ basename( $directory ), (string) ( self::json( $directory, 'manifest.json' )['id'] ?? '' ) ];
			foreach ( $ids as $id ) {
				if ( str_starts_with( $id, $reference ) ) {
					$found[ $directory ] = true;
				}
			}
		}
		if ( [] === $found ) {
			throw Exception::make( 'wp_codebox_artifact_not_found', sprintf( 'There is no bundle "%s"; list them with artifacts list.', $reference ) );
		}
		if ( count( $found ) > 1 ) {
			throw Exception::make( 'wp_codebox_artifact_ambiguous', sprintf( '"%s" fits %d bundles; give more of the run id.', $reference, count( $found ) ) );
		}
		return (string) array_key_first( $found );
	}

	public static function remove( string $directory ): void {
		foreach ( new \RecursiveIteratorIterator( new \RecursiveDirectoryIterator( $directory, \FilesystemIterator::SKIP_DOTS ), \RecursiveIteratorIterator::CHILD_FIRST ) as $item ) {
			$item->isDir() && ! $item->isLink() ? rmdir( $item->getPathname() ) : unlink( $item->getPathname() );
		}
		rmdir( $directory );
	}
}
