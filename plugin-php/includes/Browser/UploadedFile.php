<?php
/**
 * A file in the input of the abilities for browser artifacts.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Reads the published shape of a file: `path`, and the content as `content` or `content_base64`; with the encoding
 * base64, `content` is base64 too.
 */
final class UploadedFile {

	/** Size limit of a file that belongs to no session, in bytes. */
	public const MAX_BYTES = 5242880;

	/** Extensions of programs that web servers run. */
	private const PROGRAMS = [ 'php', 'phtml', 'pht', 'phps', 'phar', 'cgi', 'pl', 'py', 'rb', 'asp', 'aspx', 'jsp' ];

	/**
	 * Creates a file.
	 *
	 * @param string               $path    Path as the caller gave it.
	 * @param string               $content Content as the caller gave it.
	 * @param bool                 $base64  Whether `$content` is base64.
	 * @param int                  $size    Number of bytes.
	 * @param string               $sha256  SHA-256 of the bytes.
	 * @param array<string, mixed> $claims  Statements of the caller about the file: `mime_type`, `kind`, `roles`.
	 */
	private function __construct(
		public readonly string $path,
		private readonly string $content,
		public readonly bool $base64,
		public readonly int $size,
		public readonly string $sha256,
		public readonly array $claims
	) {}

	/**
	 * Reads the files of an input.
	 *
	 * @param mixed $rows Field `files` of the input.
	 * @return list<self>
	 * @throws Failure With a code for each kind of mistake.
	 */
	public static function list( mixed $rows ): array {
		if ( ! is_array( $rows ) || ! array_is_list( $rows ) ) {
			throw Failure::because( ErrorCode::BrowserArtifactFilesMissing, __( 'The input has no list of files; give "files" as a list of objects with "path" and "content".', 'codebox' ) );
		}
		return array_map( [ self::class, 'from' ], $rows, array_keys( $rows ) );
	}

	/**
	 * Reads one file.
	 *
	 * @param mixed $row   Row of the list.
	 * @param int   $index Position in the list, from 0.
	 * @throws Failure With a code for each kind of mistake.
	 */
	private static function from( mixed $row, int $index ): self {
		$given = is_array( $row ) ? array_intersect_key( $row, array_flip( [ 'content', 'content_base64' ] ) ) : [];
		$texts = array_filter( $given, 'is_string' );
		if ( ! is_string( $row['path'] ?? null ) || 1 !== count( $given ) || 1 !== count( $texts ) ) {
			/* translators: %d: position in a list, from 0. */
			throw Failure::because( ErrorCode::BrowserArtifactFileInvalid, Sentence::of( __( 'files[%d] needs "path", and either "content" or "content_base64".', 'codebox' ), $index ) );
		}
		$encoding = $row['encoding'] ?? ( isset( $given['content_base64'] ) ? 'base64' : 'utf-8' );
		if ( ! in_array( $encoding, [ 'utf-8', 'base64' ], true ) || ( isset( $given['content_base64'] ) && 'base64' !== $encoding ) ) {
			/* translators: %d: position in a list, from 0. */
			throw Failure::because( ErrorCode::BrowserArtifactEncodingInvalid, Sentence::of( __( 'The "encoding" of files[%d] must be utf-8 or base64; with "content_base64" it must be base64.', 'codebox' ), $index ) );
		}
		$base64  = 'base64' === $encoding;
		$content = (string) reset( $texts );
		// phpcs:ignore WordPress.PHP.DiscouragedPHPFunctions -- bytes in JSON, not obfuscation.
		$bytes = $base64 ? base64_decode( $content, true ) : $content;
		if ( false === $bytes ) {
			/* translators: %d: position in a list, from 0. */
			throw Failure::because( ErrorCode::BrowserArtifactBase64Invalid, Sentence::of( __( 'The content of files[%d] is not base64; encode the bytes of the file without line breaks.', 'codebox' ), $index ) );
		}
		$claims = array_filter( array_intersect_key( $row, array_flip( [ 'mime_type', 'kind', 'roles' ] ) ), static fn( mixed $claim ): bool => '' !== $claim && [] !== $claim );
		return new self( $row['path'], $content, $base64, strlen( $bytes ), hash( 'sha256', $bytes ), $claims );
	}

	/**
	 * Fails for a file that is too large, or that a web server would run as a program: without a session, the code that
	 * it belongs to is unknown.
	 *
	 * @throws Failure `wp_codebox_browser_artifact_file_too_large`, `wp_codebox_browser_artifact_extension_blocked`.
	 */
	public function assert_document(): void {
		if ( $this->size > self::MAX_BYTES ) {
			/* translators: 1: path, 2: number of MiB. */
			throw Failure::because( ErrorCode::BrowserArtifactFileTooLarge, Sentence::of( __( '%1$s is larger than %2$d MiB; upload smaller files.', 'codebox' ), $this->shown(), self::MAX_BYTES >> 20 ) );
		}
		$extensions = array_slice( explode( '.', strtolower( basename( $this->path ) ) ), 1 );
		$blocked    = array_filter( $extensions, static fn( string $extension ): bool => in_array( rtrim( $extension ), self::PROGRAMS, true ) || 1 === preg_match( '/^php\d$/D', $extension ) );
		if ( [] !== $blocked ) {
			/* translators: 1: path, 2: file extension. */
			throw Failure::because( ErrorCode::BrowserArtifactExtensionBlocked, Sentence::of( __( '%1$s has the extension %2$s of a program; without a browser session only documents can be uploaded. To change the code of a plugin or theme, open it in a browser session.', 'codebox' ), $this->shown(), reset( $blocked ) ) );
		}
	}

	/**
	 * Returns path and content for the extension.
	 *
	 * @return array<string, string>
	 */
	public function upload(): array {
		return [
			'path'                                         => $this->path,
			$this->base64 ? 'content_base64' : 'content' => $this->content,
		];
	}

	/** Returns the path, shortened for a message. */
	public function shown(): string {
		return mb_substr( $this->path, 0, 200 );
	}
}
