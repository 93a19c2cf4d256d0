<?php
/**
 * Normalizes files that a browser made.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Checks a set of documents (a site, a report) and returns them in the standard format, with sizes and digests. Nothing is stored.
 */
final class NormalizeService {

	/** Maximum number of files. */
	private const MAX_FILES = 2000;
	/** Maximum size of all files together, in bytes. */
	private const MAX_TOTAL = 52428800;

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param ExtensionGate $gate Check that the PHP extension is loaded and its version fits.
	 */
	public function __construct( private readonly ExtensionGate $gate ) {}

	/**
	 * Normalizes a set of files.
	 *
	 * @param array<string, mixed> $input `schema_id`, `entrypoint`, `files`; `root?`, `roles?`, `provenance?`, `metadata?`.
	 * @return array<string, mixed> `wp-codebox/browser-artifact-bundle-normalization/v1`.
	 * @throws Failure With a code for each kind of mistake.
	 */
	public function normalize( array $input ): array {
		$this->gate->check();
		$schema = trim( (string) ( $input['schema_id'] ?? '' ) );
		if ( '' === $schema ) {
			throw Failure::because( ErrorCode::BrowserArtifactSchemaMissing, __( 'The input names no schema; give "schema_id", the id of your own schema for these files.', 'codebox' ) );
		}
		$root  = trim( (string) ( $input['root'] ?? '' ), '/' );
		$files = UploadedFile::list( $input['files'] ?? null );
		if ( [] === $files || count( $files ) > self::MAX_FILES ) {
			/* translators: %d: number of files. */
			throw Failure::because( [] === $files ? ErrorCode::BrowserArtifactFilesMissing : ErrorCode::ArtifactTooLarge, Sentence::of( __( 'A browser artifact must have at least 1 and at most %d files; change the list in "files".', 'codebox' ), self::MAX_FILES ) );
		}
		if ( array_sum( array_column( $files, 'size' ) ) > self::MAX_TOTAL ) {
			/* translators: %d: number of MiB. */
			throw Failure::because( ErrorCode::ArtifactTooLarge, Sentence::of( __( 'The files together are larger than %d MiB; give fewer or smaller files.', 'codebox' ), self::MAX_TOTAL >> 20 ) );
		}
		'' === $root || self::assert_path( $root );
		$rows = [];
		foreach ( $files as $file ) {
			$file->assert_document();
			self::assert_path( $file->path );
			$key = mb_strtolower( $file->path );
			if ( isset( $rows[ $key ] ) ) {
				/* translators: %s: path. */
				throw Failure::because( ErrorCode::BrowserArtifactPathDuplicate, Sentence::of( __( 'Two files have the path %s, or paths that differ from it only in upper and lower case; give each file a different path.', 'codebox' ), $file->shown() ) );
			}
			$rows[ $key ] = self::row( $file );
		}
		$entrypoint = (string) ( $input['entrypoint'] ?? '' );
		if ( ! in_array( $entrypoint, array_column( $rows, 'path' ), true ) ) {
			throw Failure::because( ErrorCode::BrowserArtifactEntrypointMissing, __( 'The "entrypoint" is not among the files; give the path of one of them.', 'codebox' ) );
		}
		ksort( $rows, SORT_STRING );
		$rows = array_values( $rows );
		return [
			'success'        => true,
			'schema'         => 'wp-codebox/browser-artifact-bundle-normalization/v1',
			'caller_schema'  => $schema,
			'root'           => $root,
			'entrypoint'     => $entrypoint,
			'files'          => $rows,
			'roles'          => (object) ( $input['roles'] ?? [] ),
			'provenance'     => (object) ( $input['provenance'] ?? [] ),
			'metadata'       => (object) ( $input['metadata'] ?? [] ),
			'content_digest' => hash( 'sha256', "wp-codebox/browser-artifact-content/v1\n" . implode( '', array_map( static fn( array $row ): string => $row['sha256'] . '  ' . $row['path'] . "\n", $rows ) ) ),
		];
	}

	/**
	 * Returns the row of a file.
	 *
	 * @param UploadedFile $file File of the input.
	 * @return array<string, mixed>
	 */
	private static function row( UploadedFile $file ): array {
		$type = wp_check_filetype( $file->path )['type'];
		return array_replace(
			[
				'path'      => $file->path,
				'encoding'  => $file->base64 ? 'base64' : 'utf-8',
				'mime_type' => false === $type ? 'application/octet-stream' : $type,
				'size'      => $file->size,
				'sha256'    => $file->sha256,
				'kind'      => 'file',
				'roles'     => [],
			],
			$file->claims,
			$file->upload()
		);
	}

	/**
	 * Fails for a path that is not a plain relative path.
	 *
	 * @param string $path Path of the input.
	 * @throws Failure `wp_codebox_browser_artifact_path_invalid`.
	 */
	private static function assert_path( string $path ): void {
		$parts = explode( '/', $path );
		$bad   = array_filter( $parts, static fn( string $part ): bool => in_array( $part, [ '', '.', '..' ], true ) || strlen( $part ) > 255 || 1 === preg_match( '/[. ]$|^\.git$/iD', $part ) );
		if ( strlen( $path ) > 1024 || [] !== $bad || 1 === preg_match( '/[\x00-\x1f\x7f\\\\:]/', $path ) || 1 !== preg_match( '//u', $path ) ) {
			throw Failure::because( ErrorCode::BrowserArtifactPathInvalid, __( 'Each path must be relative, without `..`, `.git`, backslash, colon and control characters. It may have at most 1,024 bytes, and each part at most 255; no part may end with a dot or space. Correct the path.', 'codebox' ) );
		}
	}
}
