<?php
/**
 * Downloads approved files.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Transfer;

use Throwable;
use WPCodebox\Apply\ArtifactService;
use WPCodebox\AuditTrail;
use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Host\HostPath;
use WPCodebox\Host\Site;
use WPCodebox\Native\Artifacts;

defined( 'ABSPATH' ) || exit;

/**
 * Returns approved files of a bundle that verifies: their part of the patch, or their new contents as a zip archive.
 * The extension makes the archive, because PHP's zip module is optional.
 */
final class DownloadService {

	/** Forms of a download and their media types. */
	public const FORMS = [
		'patch' => 'text/x-diff',
		'zip'   => 'application/zip',
	];

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param ArtifactService $artifacts Reader of the artifact bundles.
	 * @param HostPath        $paths     Checks paths given by the caller.
	 * @param Site            $site      Site the plugin runs on.
	 * @param AuditTrail      $audit     Audit log that records each download.
	 */
	public function __construct(
		private readonly ArtifactService $artifacts,
		private readonly HostPath $paths,
		private readonly Site $site,
		private readonly AuditTrail $audit
	) {}

	/**
	 * Returns the files as base64, for the response of an ability.
	 *
	 * @param array<string, mixed> $input `artifact_id`, `files?`: changed paths, default all; `as?`: `patch` or `zip`.
	 * @return array<string, mixed> `wp-codebox/approved-files-download/v1`.
	 */
	public function answer( array $input ): array {
		$made = $this->bytes( $input );
		// phpcs:ignore WordPress.PHP.DiscouragedPHPFunctions -- bytes in JSON, not obfuscation.
		return [ 'content' => base64_encode( $made['content'] ) ] + $made;
	}

	/**
	 * Returns the files as raw bytes.
	 *
	 * @param array<string, mixed> $input Input as for `answer()`.
	 * @return array<string, mixed> Document with unencoded `content`.
	 */
	public function bytes( array $input ): array {
		return $this->made( $input, static fn( string $bytes ): array => [ 'content' => $bytes ] );
	}

	/**
	 * Writes the files to a new host file.
	 *
	 * @param array<string, mixed> $input     Input as for `answer()`.
	 * @param string               $path      Absolute path of the file to create.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, mixed> Document with `path` and without `content`.
	 */
	public function file( array $input, string $path, Authority $authority ): array {
		return $this->made(
			$input,
			function ( string $bytes ) use ( $path, $authority ): array {
				$path = $this->paths->writable( $path, $authority );
				// phpcs:disable WordPress.WP.AlternativeFunctions -- `x` creates the file; WP_Filesystem cannot.
				$file = ! file_exists( $path ) && is_writable( dirname( $path ) ) ? fopen( $path, 'x' ) : false;
				if ( false === $file || strlen( $bytes ) !== fwrite( $file, $bytes ) || ! fclose( $file ) ) {
					throw Failure::because( ErrorCode::ArtifactExportFailed, __( 'The file could not be written; name a new file in a directory you may write to.', 'codebox' ) );
				}
				// phpcs:enable
				return [ 'path' => $path ];
			}
		);
	}

	/**
	 * Makes the download and records it in the audit log.
	 *
	 * @param array<string, mixed>                   $input Input as for `answer()`.
	 * @param callable(string): array<string, mixed> $store Stores the bytes.
	 * @return array<string, mixed>
	 * @throws Failure When the bundle does not verify, a file is unknown, or the result is too large.
	 */
	private function made( array $input, callable $store ): array {
		$artifact = $this->artifacts->artifact( $input );
		$known    = array_intersect_key( $artifact, array_flip( [ 'artifact_id', 'run_id' ] ) );
		$form     = (string) ( $input['as'] ?? 'patch' );
		$files    = array_values( array_unique( array_map( 'strval', (array) ( $input['files'] ?? [] ) ) ) );
		try {
			$bytes = Artifacts::download( $this->site->id(), (string) $artifact['run_id'], $files, $form, ExportService::MAX_BYTES );
			$place = $store( $bytes );
		} catch ( Throwable $thrown ) {
			throw $this->audit->failure( 'export', $known, $thrown );
		}
		$facts = [
			'as'     => $form,
			'bytes'  => strlen( $bytes ),
			'sha256' => hash( 'sha256', $bytes ),
		];
		$files = [] === $files ? array_column( ArtifactService::changed_files( $artifact ), 'path' ) : $files;
		$audit = $this->audit->write(
			'export',
			$known + [
				'status'         => 'success',
				'approved_files' => $files,
				'result'         => $facts + array_intersect_key( $place, [ 'path' => 1 ] ),
			]
		);
		return [
			'success'    => true,
			'schema'     => 'wp-codebox/approved-files-download/v1',
			'media_type' => self::FORMS[ $form ],
			'filename'   => $artifact['run_id'] . '.' . $form,
			'files'      => $files,
			'audit'      => ArtifactService::audit_reference( $audit ),
		] + $known + $facts + $place;
	}
}
