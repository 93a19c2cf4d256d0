<?php
/**
 * Reading, verifying and deciding on bundles of the stand-in.
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

	public static function verify( string $directory ): array {
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
		return [
			'schema'          => 'wp-codebox/artifact-bundle-verification/v1',
			'valid'           => [] === $violations,
			'violations'      => $violations,
			'signature'       => [
				'status' => [] === $violations ? $signature : 'invalid',
				'key_id' => 'fake-key',
			],
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
			'metadata'      => Bundles::json( $directory, 'metadata.json' ),
			'changed_files' => Bundles::json( $directory, 'files/changed-files.json' ),
			'review'        => Bundles::json( $directory, 'files/review.json' ),
			'test_results'  => null,
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
		$verification = self::verify( $directory );
		if ( ! $verification['valid'] ) {
			throw Exception::make( 'wp_codebox_artifact_verification_failed', 'The bundle does not verify.', [], [ 'violations' => $verification['violations'] ] );
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

	public static function discard( string $site, string $reference ): array {
		$directory = Bundles::find( $site, $reference );
		$row       = self::row( $directory );
		Bundles::remove( $directory );
		return array_filter( array_intersect_key( $row, array_flip( [ 'artifact_id', 'run_id' ] ) ) ) + [ 'discarded' => true ];
	}

	public static function audit( string $site, array $record ): array {
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
		return $record;
	}

	public static function auditLog( string $site, int $limit = 100 ): array {
		$file  = Bundles::directory( $site ) . '/../audit.jsonl';
		$lines = is_file( $file ) ? file( $file ) : [];
		return [
			'valid'   => true,
			'entries' => array_map( static fn( string $line ): array => json_decode( $line, true ), array_slice( $lines, -$limit ) ),
		];
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
		];
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
