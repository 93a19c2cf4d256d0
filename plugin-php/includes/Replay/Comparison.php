<?php
/**
 * Differences between two runs of one task.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Replay;

use WPCodebox\Apply\ArtifactService;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Compares changed files, outcome and check results. Also compares the starting code, as far as the bundle
 * allows: a bundle contains hashes of the changed files only.
 */
final class Comparison {

	private const FIELDS = [ 'status', 'type', 'beforeSha256', 'afterSha256', 'afterMode' ];

	/**
	 * Returns the changed files whose current version on this host differs from the version that the run started with.
	 *
	 * @param array<string, mixed>  $artifact    Artifact bundle.
	 * @param array<string, string> $directories Host directory by mount target.
	 * @return array{differences: list<array<string, mixed>>, notes: list<string>}
	 */
	public function baseline( array $artifact, array $directories ): array {
		$differences = [];
		$unreadable  = 0;
		foreach ( ArtifactService::changed_files( $artifact ) as $entry ) {
			$relative  = (string) ( $entry['relativePath'] ?? '' );
			$directory = $directories[ (string) ( $entry['mountTarget'] ?? '' ) ] ?? '';
			if ( isset( $entry['pathEncoding'] ) || '' === $directory || 1 === preg_match( '#(^|/)\.\.(/|$)#', $relative ) ) {
				++$unreadable;
				continue;
			}
			if ( 'directory' === ( $entry['type'] ?? '' ) ) {
				continue;
			}
			$expected = (string) ( $entry['beforeSha256'] ?? 'absent' );
			$actual   = self::hash( $directory . '/' . $relative );
			if ( $expected !== $actual ) {
				$differences[] = [
					'kind'     => 'baseline',
					'path'     => (string) $entry['path'],
					'status'   => 'different',
					'expected' => $expected,
					'actual'   => $actual,
				];
			}
		}
		return [
			'differences' => $differences,
			/* translators: %d: number of files. */
			'notes'       => 0 === $unreadable ? [] : [ Sentence::of( __( '%d changed files could not be compared with the files on this host.', 'codebox' ), $unreadable ) ],
		];
	}

	/**
	 * Returns the differences between the bundles of two runs.
	 *
	 * @param array<string, mixed> $original Bundle of the original run.
	 * @param array<string, mixed> $replay   Bundle of the replay.
	 * @return list<array<string, mixed>>
	 */
	public function differences( array $original, array $replay ): array {
		$differences = $this->files( $original, $replay );
		$outcomes    = [ (string) ( $original['metadata']['outcome'] ?? '' ), (string) ( $replay['metadata']['outcome'] ?? '' ) ];
		if ( $outcomes[0] !== $outcomes[1] ) {
			$differences[] = [
				'kind'     => 'outcome',
				'status'   => 'different',
				'original' => $outcomes[0],
				'replay'   => $outcomes[1],
			];
		}
		return array_merge( $differences, $this->checks( $original, $replay ) );
	}

	/**
	 * Returns the differences between the changed files.
	 *
	 * @param array<string, mixed> $original Bundle of the original run.
	 * @param array<string, mixed> $replay   Bundle of the replay.
	 * @return list<array<string, mixed>>
	 */
	private function files( array $original, array $replay ): array {
		[ $was, $is ] = array_map( static fn( array $bundle ): array => array_column( ArtifactService::changed_files( $bundle ), null, 'path' ), [ $original, $replay ] );
		$paths        = array_unique( array_merge( array_keys( $was ), array_keys( $is ) ) );
		sort( $paths, SORT_STRING );
		$differences = [];
		foreach ( $paths as $path ) {
			$rows = array_map( static fn( array $all ): ?array => isset( $all[ $path ] ) ? array_intersect_key( $all[ $path ], array_flip( self::FIELDS ) ) : null, [ $was, $is ] );
			// phpcs:ignore Universal.Operators.StrictComparisons -- the order of members says nothing.
			if ( $rows[0] == $rows[1] ) {
				continue;
			}
			$differences[] = array_filter(
				[
					'kind'     => 'changed-file',
					'path'     => (string) $path,
					'status'   => null === $rows[1] ? 'only-in-original' : ( null === $rows[0] ? 'only-in-replay' : 'different' ),
					'original' => $rows[0],
					'replay'   => $rows[1],
				]
			);
		}
		return $differences;
	}

	/**
	 * Returns the differences between the check results, compared by position.
	 *
	 * @param array<string, mixed> $original Bundle of the original run.
	 * @param array<string, mixed> $replay   Bundle of the replay.
	 * @return list<array<string, mixed>>
	 */
	private function checks( array $original, array $replay ): array {
		$results     = array_map(
			static fn( array $bundle ): array => array_map(
				static fn( mixed $suite ): array => array_intersect_key( (array) $suite, array_flip( [ 'name', 'status', 'exitCode' ] ) ),
				array_values( (array) ( $bundle['test_results']['suites'] ?? [] ) )
			),
			[ $original, $replay ]
		);
		$differences = [];
		for ( $index = 0; $index < max( count( $results[0] ), count( $results[1] ) ); $index++ ) {
			$was = $results[0][ $index ] ?? null;
			$is  = $results[1][ $index ] ?? null;
			if ( $was !== $is ) {
				$differences[] = array_filter(
					[
						'kind'     => 'check',
						'check'    => (string) ( $was['name'] ?? $is['name'] ?? '' ),
						'status'   => null === $is ? 'only-in-original' : ( null === $was ? 'only-in-replay' : 'different' ),
						'original' => $was,
						'replay'   => $is,
					]
				);
			}
		}
		return $differences;
	}

	/**
	 * Returns the sha256 of a file's bytes or of a symlink's target; `absent` when nothing exists there, else `other`.
	 *
	 * @param string $path Host path.
	 */
	private static function hash( string $path ): string {
		if ( is_link( $path ) ) {
			return hash( 'sha256', (string) readlink( $path ) );
		}
		if ( ! file_exists( $path ) ) {
			return 'absent';
		}
		return is_file( $path ) && is_readable( $path ) ? (string) hash_file( 'sha256', $path ) : 'other';
	}
}
