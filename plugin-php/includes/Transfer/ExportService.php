<?php
/**
 * Exports bundles.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Transfer;

use Throwable;
use WPCodebox\Apply\ArtifactService;
use WPCodebox\AuditTrail;
use WPCodebox\Authority;
use WPCodebox\Host\HostPath;
use WPCodebox\Host\Site;
use WPCodebox\Native\Artifacts;

defined( 'ABSPATH' ) || exit;

/**
 * Exports a bundle that verifies as a deterministic tar: the same bundle always gives the same bytes.
 */
final class ExportService {

	/** Size limit of an archive inside a response, in bytes. */
	public const MAX_BYTES = ImportSource::MAX_BYTES;

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param ArtifactService $artifacts Reader of the artifact bundles.
	 * @param HostPath        $paths     Checks paths given by the caller.
	 * @param Site            $site      Site the plugin runs on.
	 * @param AuditTrail      $audit     Audit log that records each decision.
	 */
	public function __construct(
		private readonly ArtifactService $artifacts,
		private readonly HostPath $paths,
		private readonly Site $site,
		private readonly AuditTrail $audit
	) {}

	/**
	 * Returns the archive of a bundle as base64, for the response of an ability.
	 *
	 * @param array<string, mixed> $input Ability input with `artifact_id`.
	 * @return array<string, mixed> `wp-codebox/artifact-export/v1`.
	 */
	public function answer( array $input ): array {
		$made  = $this->bytes( $input );
		$bytes = $made['archive'];
		// phpcs:ignore WordPress.PHP.DiscouragedPHPFunctions -- bytes in JSON, not obfuscation.
		return [ 'archive' => base64_encode( $bytes ) ] + $made;
	}

	/**
	 * Returns the archive of a bundle as raw bytes.
	 *
	 * @param array<string, mixed> $input Ability input with `artifact_id`.
	 * @return array<string, mixed> Export document with unencoded `archive`, `wp-codebox/artifact-export/v1`.
	 */
	public function bytes( array $input ): array {
		return $this->made(
			$input,
			fn( string $run_id ): array => [ 'archive' => Artifacts::archive( $this->site->id(), $run_id, self::MAX_BYTES ) ]
		);
	}

	/**
	 * Writes a bundle of any size to a new host file.
	 *
	 * @param array<string, mixed> $input     Ability input with `artifact_id`.
	 * @param string               $path      Absolute path of the file to create.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, mixed> Export document with `path` and without `archive`,
	 *   `wp-codebox/artifact-export/v1`.
	 */
	public function file( array $input, string $path, Authority $authority ): array {
		return $this->made(
			$input,
			function ( string $run_id ) use ( $path, $authority ): array {
				$made = Artifacts::export( $this->site->id(), $run_id, $this->paths->writable( $path, $authority ) );
				return array_intersect_key( $made, array_flip( [ 'path', 'bytes', 'sha256' ] ) );
			}
		);
	}

	/**
	 * Creates the archive and records the export in the audit log.
	 *
	 * @param array<string, mixed>                 $input Ability input with `artifact_id`.
	 * @param callable(string): array<string, mixed> $make  Creates the archive.
	 * @return array<string, mixed>
	 */
	private function made( array $input, callable $make ): array {
		$artifact = $this->artifacts->artifact( $input );
		$known    = array_intersect_key( $artifact, array_flip( [ 'artifact_id', 'run_id' ] ) );
		try {
			$made = $make( (string) $artifact['run_id'] );
		} catch ( Throwable $thrown ) {
			throw $this->audit->failure( 'export', $known, $thrown );
		}
		if ( isset( $made['archive'] ) ) {
			$made += [
				'bytes'  => strlen( $made['archive'] ),
				'sha256' => hash( 'sha256', $made['archive'] ),
			];
		}
		$audit = $this->audit->write(
			'export',
			$known + [
				'status' => 'success',
				'result' => array_intersect_key( $made, array_flip( [ 'path', 'bytes', 'sha256' ] ) ),
			]
		);
		return [
			'success'    => true,
			'schema'     => 'wp-codebox/artifact-export/v1',
			'media_type' => 'application/x-tar',
			'filename'   => $artifact['run_id'] . '.tar',
			'audit'      => ArtifactService::audit_reference( $audit ),
		] + $known + $made;
	}
}
