<?php
/**
 * Record of a bundle, as abilities return it.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Apply;

defined( 'ABSPATH' ) || exit;

/** Adds members to the bundle record that the extension returns. Fields that could not be read are omitted, not null. */
final class BundleRecord {

	/** Start of an artifact id; the content digest follows. */
	private const ID_PREFIX = 'artifact-bundle-sha256-';

	/** Files of a bundle that a reviewer reads first. */
	private const FILES = [
		'manifest'      => 'manifest.json',
		'metadata'      => 'metadata.json',
		'changed_files' => 'files/changed-files.json',
		'patch'         => 'files/patch.diff',
		'test_results'  => 'files/test-results.json',
		'review'        => 'files/review.json',
	];

	/**
	 * Adds to a record the artifact id as `id`, the content digest, and the paths of the files that a reviewer reads first.
	 *
	 * @param array<string, mixed> $record Record from the extension.
	 * @return array<string, mixed>
	 */
	public static function present( array $record ): array {
		$record = array_filter( $record, static fn( mixed $value ): bool => null !== $value );
		$id     = (string) ( $record['artifact_id'] ?? '' );
		if ( '' !== $id ) {
			$record = [ 'id' => $id ] + $record;
		}
		if ( str_starts_with( $id, self::ID_PREFIX ) ) {
			$record['content_digest'] = substr( $id, strlen( self::ID_PREFIX ) );
		}
		if ( ! isset( $record['directory'] ) ) {
			return $record;
		}
		$directory       = (string) $record['directory'];
		$paths           = array_map( static fn( string $name ): string => $directory . '/' . $name, self::FILES );
		$record['paths'] = array_filter( $paths, 'is_file' );
		foreach ( [ 'patch', 'changed_files', 'test_results', 'review' ] as $name ) {
			$record[ 'has_' . $name ] = isset( $record['paths'][ $name ] );
		}
		return $record;
	}

	/**
	 * Returns the reference to a bundle, as the results of agent tasks have it.
	 *
	 * @param array<string, mixed> $record Result of `present()`.
	 * @return array<string, mixed>
	 */
	public static function reference( array $record ): array {
		$reference = [
			'kind' => 'codebox-artifact-bundle',
			'id'   => (string) ( $record['artifact_id'] ?? '' ),
			'path' => (string) ( $record['directory'] ?? '' ),
		];
		if ( isset( $record['content_digest'] ) ) {
			$reference['digest'] = [
				'algorithm' => 'sha256',
				'value'     => (string) $record['content_digest'],
			];
		}
		return $reference;
	}
}
