<?php
/**
 * Reads, verifies, exports, imports and discards bundles of the stand-in extension.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Native;

final class Artifacts {

	public static function canonicalJson( mixed $value ): string {
		return (string) json_encode( $value );
	}

	public static function contentDigest( string $directory, array $inputs = [] ): array {
		return Bundles::json( $directory, 'manifest.json' )['contentDigest'];
	}

	/** Id of the key of every signature. A status `…-known` needs it in the caller's list of trusted keys. */
	private const KEY = 'fadefadefadefadefadefadefadefadefadefadefadefadefadefadefadefade';

	public static function verify( string $directory, array $options = [] ): array {
		$violations = [];
		$manifest   = Bundles::json( $directory, 'manifest.json' );
		if ( [] === $manifest ) {
			$violations[] = [
				'code'    => 'missing-manifest',
				'path'    => 'manifest.json',
				'message' => 'There is no manifest.',
			];
		}
		foreach ( $manifest['files'] ?? [] as $file ) {
			$path = $directory . '/' . $file['path'];
			if ( ! is_file( $path ) || hash_file( 'sha256', $path ) !== $file['sha256']['value'] ) {
				$violations[] = [
					'code'    => 'file-hash-mismatch',
					'path'    => $file['path'],
					'message' => 'Its bytes differ from its hash.',
				];
			}
		}
		$signature = getenv( 'WP_CODEBOX_FAKE_SIGNATURE' ) ?: 'signed-by-this-host';
		if ( str_ends_with( $signature, '-known' ) && ! in_array( self::KEY, $options['trusted_keys'] ?? [], true ) ) {
			$signature = 'signed-by-unknown';
		}
		return [
			'schema'          => 'wp-codebox/artifact-bundle-verification/v1',
			'bundleDirectory' => $directory,
			'valid'           => [] === $violations,
			'violations'      => $violations,
			'signature'       => [
				'status' => [] === $violations ? $signature : 'invalid',
				'key_id' => self::KEY,
			] + ( [] === $violations ? [ 'coverage' => getenv( 'WP_CODEBOX_FAKE_COVERAGE' ) ?: 'manifest' ] + ( str_starts_with( $signature, 'browser-' ) ? [ 'origin' => 'browser' ] : [] ) : [] ),
			'manifest_sha256' => (string) ( is_file( $directory . '/manifest.json' ) ? hash_file( 'sha256', $directory . '/manifest.json' ) : str_repeat( '0', 64 ) ),
		];
	}

	public static function list( string $site ): array {
		$rows = [];
		foreach ( glob( Bundles::directory( $site ) . '/run_*' ) ?: [] as $directory ) {
			$rows[] = self::row( $directory ) + [ 'changed_files' => count( Bundles::json( $directory, 'files/changed-files.json' )['files'] ?? [] ) ];
		}
		usort( $rows, static fn( array $a, array $b ): int => $b['created_at'] <=> $a['created_at'] );
		return $rows;
	}

	public static function get( string $site, string $reference ): array {
		$directory = Bundles::find( $site, $reference );
		return self::row( $directory ) + [
			'manifest'      => Bundles::json( $directory, 'manifest.json' ),
			'metadata'      => Bundles::json( $directory, 'metadata.json' ) ?: null,
			'changed_files' => Bundles::json( $directory, 'files/changed-files.json' ),
			'review'        => Bundles::json( $directory, 'files/review.json' ),
			'test_results'  => Bundles::json( $directory, 'files/test-results.json' ) ?: null,
		];
	}

	public static function diff( string $site, string $reference, array $paths = [] ): string {
		$directory = Bundles::find( $site, $reference );
		if ( [] === $paths ) {
			return (string) file_get_contents( $directory . '/files/patch.diff' );
		}
		return implode( '', self::pieces( $directory, self::approved( $directory, $paths ) ) );
	}

	public static function preflight( string $site, string $reference, array $request ): array {
		$directory    = Bundles::find( $site, $reference );
		$verification = self::verify( $directory, $request );
		if ( ! $verification['valid'] ) {
			throw Exception::make( 'wp_codebox_artifact_verification_failed', 'The bundle does not verify.', [], [ 'violations' => $verification['violations'] ] );
		}
		if ( isset( $verification['signature']['origin'] ) && empty( $request['confirm_browser_origin'] ) ) {
			throw Exception::make( 'wp_codebox_apply_browser_origin_unconfirmed', 'A browser uploaded the contents; confirm that.' );
		}
		if ( isset( $request['manifest_sha256'] ) && $request['manifest_sha256'] !== $verification['manifest_sha256'] ) {
			throw Exception::make( 'wp_codebox_artifact_changed', 'The bundle changed after it was reviewed.' );
		}
		if ( 'changed' === ( Bundles::json( $directory, 'files/review.json' )['baseline'] ?? '' ) ) {
			throw Exception::make( 'wp_codebox_baseline_changed', 'The mounted source changed while the run used it; run the task again.' );
		}
		$entries   = self::approved( $directory, $request['approved_files'] );
		$conflicts = [];
		foreach ( $entries as $entry ) {
			$host   = $request['targets'][ $entry['mountTarget'] ] . '/' . $entry['relativePath'];
			$actual = is_file( $host ) ? hash_file( 'sha256', $host ) : null;
			if ( $actual !== ( $entry['beforeSha256'] ?? null ) ) {
				$conflicts[] = [
					'path'   => $entry['path'],
					'reason' => 'changed',
				];
			}
		}
		if ( [] !== $conflicts ) {
			throw Exception::make( 'wp_codebox_apply_conflict', 'The target differs from what the run started from; nothing was written.', [], [ 'conflicts' => $conflicts ] );
		}
		$patch  = implode( '', self::pieces( $directory, $entries ) );
		$mounts = [];
		foreach ( $entries as $entry ) {
			$mounts[ $entry['mountIndex'] ]['mount_target'] = $entry['mountTarget'];
			$mounts[ $entry['mountIndex'] ]['mount_index']  = $entry['mountIndex'];
			$mounts[ $entry['mountIndex'] ]['patch']        = ( $mounts[ $entry['mountIndex'] ]['patch'] ?? '' ) . implode( '', self::pieces( $directory, [ $entry ] ) );
		}
		foreach ( $mounts as $index => $mount ) {
			$mounts[ $index ]['sha256'] = hash( 'sha256', $mount['patch'] );
		}
		return [
			'artifact_id'     => self::row( $directory )['artifact_id'],
			'run_id'          => basename( $directory ),
			'approved_files'  => array_column( $entries, 'path' ),
			'changed_files'   => $entries,
			'patch'           => $patch,
			'patch_sha256'    => hash( 'sha256', $patch ),
			'mount_patches'   => array_values( $mounts ),
			'content_digest'  => self::contentDigest( $directory ),
			'manifest_sha256' => $verification['manifest_sha256'],
			'signature'       => $verification['signature'],
			'verification'    => $verification,
		];
	}

	public static function files( string $site, string $reference ): array {
		$directory = Bundles::find( $site, $reference );
		self::sound( $directory );
		return array_map(
			static fn( array $entry ): array => $entry + self::piece( self::pieces( $directory, [ $entry ] )[0] ),
			Bundles::json( $directory, 'files/changed-files.json' )['files']
		);
	}

	private static function sound( string $directory ): void {
		$verification = self::verify( $directory );
		if ( ! $verification['valid'] ) {
			throw Exception::make( 'wp_codebox_artifact_verification_failed', 'The bundle does not verify.', [], [ 'violations' => $verification['violations'] ] );
		}
	}

	private static function piece( string $patch ): array {
		return 1 === preg_match( '//u', $patch ) ? [ 'patch' => $patch ] : [ 'patch_base64' => base64_encode( $patch ) ];
	}

	public static function export( string $site, string $reference, string $path ): array {
		$directory = Bundles::find( $site, $reference );
		self::sound( $directory );
		$file = @fopen( $path, 'x' );
		if ( false === $file ) {
			throw Exception::make( 'wp_codebox_artifact_export_failed', 'The file exists already or cannot be made; name a new one.' );
		}
		$bytes = Archives::pack( $directory );
		fwrite( $file, $bytes );
		fclose( $file );
		chmod( $path, 0600 );
		return array_intersect_key( self::row( $directory ), array_flip( [ 'artifact_id', 'run_id' ] ) ) + [ 'path' => $path, 'bytes' => strlen( $bytes ), 'sha256' => hash( 'sha256', $bytes ) ];
	}

	public static function archive( string $site, string $reference, int $maxBytes ): string {
		self::sound( Bundles::find( $site, $reference ) );
		$bytes = Archives::pack( Bundles::find( $site, $reference ) );
		if ( strlen( $bytes ) > ( (int) getenv( 'WP_CODEBOX_FAKE_ARCHIVE_LIMIT' ) ?: $maxBytes ) ) {
			throw Exception::make( 'wp_codebox_artifact_too_large', 'The archive is too large for an answer; export it to a file.' );
		}
		return $bytes;
	}

	public static function import( string $site, string $path, array $options = [] ): array {
		if ( is_file( $path ) && 'manifest.json' !== basename( $path ) ) {
			return self::importArchive( $site, (string) file_get_contents( $path ), $options );
		}
		return self::take( $site, is_dir( $path ) ? $path : dirname( $path ), $options );
	}

	public static function importArchive( string $site, string $bytes, array $options = [] ): array {
		$directory = Archives::unpack( $bytes );
		try {
			return self::take( $site, $directory, $options );
		} finally {
			Bundles::remove( $directory );
		}
	}

	/** The stand-in has no baseline to compare with, so nothing ever differs. */
	public static function compose( string $site, array $request ): array {
		throw Exception::make( 'wp_codebox_browser_artifact_unchanged', 'The uploaded contents equal the code with which the session began.' );
	}

	public static function auditRecords( string $site, int $after = 0, int $limit = 100, array $anchors = [] ): array {
		$file    = Bundles::directory( $site ) . '/../audit.jsonl';
		$records = array_map( static fn( string $line ): array => json_decode( $line, true ), is_file( $file ) ? file( $file ) : [] );
		$broken  = null;
		foreach ( $records as $index => $record ) {
			$body = array_diff_key( $record, [ 'hash' => 1 ] );
			if ( null === $broken && ( $record['seq'] !== $index + 1 || $record['hash'] !== hash( 'sha256', (string) json_encode( $body ) ) ) ) {
				$broken = $index + 1;
			}
		}
		$problem = null === $broken ? null : sprintf( 'record %d has another hash than it says', $broken );
		$anchor  = Bundles::root() . "/anchors/$site.json";
		foreach ( [ is_file( $anchor ) ? json_decode( (string) file_get_contents( $anchor ), true ) : [], $anchors['fake'] ?? [] ] as $known ) {
			$missing = ( $known['seq'] ?? 0 ) - count( $records );
			$problem ??= $missing > 0 ? sprintf( '%d records were removed from the end of the audit log', $missing ) : null;
		}
		return [
			'records' => $after < 0 ? array_slice( $records, max( $after, -$limit ) ) : array_slice( $records, $after, $limit ),
			'total'   => count( $records ),
			'chain'   => [
				'valid' => null === $problem,
				'head'  => (string) ( end( $records )['hash'] ?? str_repeat( '0', 64 ) ),
			] + array_filter( [ 'broken_at' => $broken, 'problem' => $problem ] ),
		];
	}

	public static function auditOf( string $site, array $runs ): array {
		$named = static fn( array $record ): bool => [] !== array_intersect( $runs, [ $record['run_id'] ?? '', $record['artifact_id'] ?? '' ] );
		return [
			'records'  => array_values( array_filter( self::auditRecords( $site, 0, PHP_INT_MAX )['records'], $named ) ),
			'complete' => false === getenv( 'WP_CODEBOX_FAKE_AUDIT_SINCE' ),
			'since'    => getenv( 'WP_CODEBOX_FAKE_AUDIT_SINCE' ) ?: null,
		];
	}

	public static function auditOfOperations( string $site, array $operations, int $before = 0, int $limit = 50 ): array {
		$run   = static fn( array $record ): array => [ $operations[ $record['event'] ], $record['run_id'] ?? $record['artifact_id'] ?? '' ];
		$found = [];
		foreach ( self::auditRecords( $site, 0, PHP_INT_MAX )['records'] as $record ) {
			if ( ! isset( $operations[ $record['event'] ] ) ) {
				continue;
			}
			if ( 'started' !== ( $record['status'] ?? '' ) ) {
				$starts = array_keys( array_filter( $found, static fn( array $start ): bool => 'started' === ( $start['status'] ?? '' ) && $run( $start ) === $run( $record ) ) );
				foreach ( array_slice( $starts, -1 ) as $start ) {
					unset( $found[ $start ] );
				}
			}
			if ( 0 === $before || $record['seq'] < $before ) {
				$found[] = $record;
			}
		}
		return [
			'records'  => array_slice( array_values( $found ), -$limit ),
			'complete' => count( $found ) <= $limit,
			'since'    => null,
		];
	}

	private static function take( string $site, string $source, array $options ): array {
		$verification = self::verify( $source );
		if ( ! $verification['valid'] ) {
			throw Exception::make( 'wp_codebox_artifact_import_source_invalid', 'The source is not a bundle, or does not verify.', [], [ 'violations' => $verification['violations'] ] );
		}
		$manifest = Bundles::json( $source, 'manifest.json' );
		if ( ( $options['expected_artifact_id'] ?? $manifest['id'] ) !== $manifest['id'] ) {
			throw Exception::make( 'wp_codebox_artifact_import_id_mismatch', 'The source is another bundle than expected.' );
		}
		if ( ( $options['expected_content_digest'] ?? $manifest['contentDigest']['value'] ) !== $manifest['contentDigest']['value'] ) {
			throw Exception::make( 'wp_codebox_artifact_import_digest_mismatch', 'The source holds another change than expected.' );
		}
		$run_id = (string) $manifest['runtime']['id'];
		$target = Bundles::directory( $site ) . '/' . $run_id;
		$status = 'created';
		if ( is_dir( $target ) ) {
			$status = self::verify( $target )['manifest_sha256'] === $verification['manifest_sha256'] && self::verify( $target )['valid'] ? 'existing' : 'updated';
			if ( 'updated' === $status && empty( $options['replace'] ) ) {
				throw Exception::make( 'wp_codebox_artifact_import_conflict', 'Another bundle of this run is stored here; give replace.' );
			}
			if ( 'updated' === $status ) {
				Bundles::remove( $target );
			}
		}
		if ( 'existing' !== $status ) {
			Archives::write( Archives::read( $source ), $target );
		}
		return [
			'status'          => $status,
			'artifact_id'     => $manifest['id'],
			'run_id'          => $run_id,
			'directory'       => $target,
			'manifest_sha256' => $verification['manifest_sha256'],
			'verification'    => self::verify( $target, $options ),
		];
	}

	public static function discard( string $site, string $reference ): array {
		$directory = Bundles::find( $site, $reference );
		$row       = self::row( $directory );
		Bundles::remove( $directory );
		return array_filter( array_intersect_key( $row, array_flip( [ 'artifact_id', 'run_id' ] ) ) ) + [ 'discarded' => true ];
	}

	public static function audit( string $site, array $record, array $anchors = [] ): array {
		if ( '1' === getenv( 'WP_CODEBOX_FAKE_AUDIT_BROKEN' ) || ( 'result' === getenv( 'WP_CODEBOX_FAKE_AUDIT_BROKEN' ) && 'apply' === $record['event'] ) ) {
			throw Exception::make( 'wp_codebox_state_dir_invalid', 'The audit log is not writable.' );
		}
		$file   = Bundles::directory( $site ) . '/../audit.jsonl';
		$lines  = is_file( $file ) ? file( $file ) : [];
		$record = [
			'seq'       => count( $lines ) + 1,
			'timestamp' => gmdate( 'c' ),
			'previous'  => hash( 'sha256', (string) end( $lines ) ),
		] + $record;
		$record['hash'] = hash( 'sha256', (string) json_encode( $record ) );
		file_put_contents( $file, json_encode( $record, JSON_UNESCAPED_SLASHES ) . "\n", FILE_APPEND );
		$anchor = [ 'key_id' => 'fake', 'seq' => $record['seq'], 'head' => $record['hash'] ];
		$path   = Bundles::root() . '/anchors';
		is_dir( $path ) || mkdir( $path, 0700 );
		file_put_contents( "$path/$site.json", json_encode( $anchor ) );
		return [ 'record' => $record, 'anchor' => $anchor ];
	}

	private static function row( string $directory ): array {
		$manifest = Bundles::json( $directory, 'manifest.json' );
		$review   = Bundles::json( $directory, 'files/review.json' );
		return [
			'artifact_id'    => $manifest['id'] ?? null,
			'run_id'         => basename( $directory ),
			'created_at'     => $manifest['createdAt'] ?? '',
			'outcome'        => $review['outcome'] ?? '',
			'summary'        => $review['summary'] ?? '',
			'directory'      => $directory,
			'valid_manifest' => [] !== $manifest,
		] + ( isset( $review['summaryDetail'] ) ? [ 'summary_detail' => $review['summaryDetail'] ] : [] );
	}

	private static function approved( string $directory, array $paths ): array {
		if ( [] === $paths ) {
			throw Exception::make( 'wp_codebox_approved_files_missing', 'No approved file was given.' );
		}
		$entries = Bundles::json( $directory, 'files/changed-files.json' )['files'];
		$unknown = array_diff( $paths, array_column( $entries, 'path' ) );
		if ( [] !== $unknown ) {
			throw Exception::make( 'wp_codebox_approved_files_invalid', sprintf( '%s is not among the changed files.', reset( $unknown ) ), [], [ 'files' => array_values( $unknown ) ] );
		}
		return array_values( array_filter( $entries, static fn( array $entry ): bool => in_array( $entry['path'], $paths, true ) ) );
	}

	private static function pieces( string $directory, array $entries ): array {
		$patches = Bundles::json( $directory, 'patches.json' );
		return array_map( static fn( array $entry ): string => base64_decode( $patches[ $entry['mountIndex'] ][ $entry['relativePath'] ] ), $entries );
	}
}
