<?php
/**
 * Source of an imported bundle.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Transfer;

use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Host\HostPath;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Exactly one of: a directory or archive on the host, a manifest on the host, or the bytes of an archive.
 */
final class ImportSource {

	/** Size limit of an archive in the input, in decoded bytes. */
	public const MAX_BYTES = 16777216;

	/**
	 * Creates a source.
	 *
	 * @param string      $kind  Kind `path` or `archive`.
	 * @param string      $path  Canonical host path; '' for an archive in the input.
	 * @param string|null $bytes Bytes of the archive.
	 */
	private function __construct(
		public readonly string $kind,
		public readonly string $path,
		public readonly ?string $bytes
	) {}

	/**
	 * Returns the source that the input of an import names.
	 *
	 * @param array<string, mixed> $input     Ability input with `source_bundle_path`, `source_manifest_path`
	 *   or `archive`.
	 * @param HostPath             $paths     Checks paths given by the caller.
	 * @param Authority            $authority User or operator the call runs as.
	 * @throws Failure `wp_codebox_artifact_import_source_missing`, or the error of an invalid source.
	 */
	public static function from( array $input, HostPath $paths, Authority $authority ): self {
		$given = array_filter(
			array_intersect_key( $input, array_flip( [ 'source_bundle_path', 'source_manifest_path', 'archive' ] ) ),
			static fn( mixed $value ): bool => is_string( $value ) && '' !== trim( $value )
		);
		if ( [] === $given ) {
			throw Failure::because( ErrorCode::ArtifactImportSourceMissing, __( 'No source was given; give "source_bundle_path", "source_manifest_path" or "archive".', 'codebox' ) );
		}
		if ( count( $given ) > 1 ) {
			/* translators: %s: list of fields. */
			throw Failure::invalid_input( Sentence::of( __( 'The import has several sources (%s); give one.', 'codebox' ), implode( ', ', array_keys( $given ) ) ) );
		}
		if ( isset( $given['archive'] ) ) {
			return new self( 'archive', '', self::decoded( $given['archive'] ) );
		}
		$path = $paths->readable( (string) reset( $given ), $authority );
		if ( isset( $given['source_manifest_path'] ) && 'manifest.json' !== basename( $path ) ) {
			throw Failure::because( ErrorCode::ArtifactImportSourceInvalid, __( '"source_manifest_path" must be the path of a manifest.json; for a directory or an archive give "source_bundle_path".', 'codebox' ) );
		}
		return new self( 'path', $path, null );
	}

	/**
	 * Returns the source in the form shown in responses.
	 *
	 * @return array<string, string|int>
	 */
	public function describe(): array {
		return null === $this->bytes
			? [
				'kind' => $this->kind,
				'path' => $this->path,
			]
			: [
				'kind'   => $this->kind,
				'bytes'  => strlen( $this->bytes ),
				'sha256' => hash( 'sha256', $this->bytes ),
			];
	}

	/**
	 * Decodes an archive from the input after checking its size.
	 *
	 * @param string $text Base64 text.
	 * @throws Failure `wp_codebox_artifact_too_large`, `wp_codebox_artifact_import_source_invalid`.
	 */
	private static function decoded( string $text ): string {
		// phpcs:ignore WordPress.PHP.DiscouragedPHPFunctions -- bytes in JSON, not obfuscation.
		$bytes = strlen( $text ) > 4 * intdiv( self::MAX_BYTES + 2, 3 ) ? null : base64_decode( $text, true );
		if ( null === $bytes || strlen( (string) $bytes ) > self::MAX_BYTES ) {
			/* translators: %d: number of MiB. */
			throw Failure::because( ErrorCode::ArtifactTooLarge, Sentence::of( __( 'The archive is larger than %d MiB; put it on the host and give its path in "source_bundle_path".', 'codebox' ), self::MAX_BYTES >> 20 ) );
		}
		if ( false === $bytes || '' === $bytes ) {
			throw Failure::because( ErrorCode::ArtifactImportSourceInvalid, __( 'The archive is not base64; encode the bytes of the archive without line breaks.', 'codebox' ) );
		}
		return $bytes;
	}
}
