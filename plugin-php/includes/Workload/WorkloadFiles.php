<?php
/**
 * Files that a workload leaves in its sandbox and the answer returns.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Workload;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\HostPlugin\HostAnswer;
use WPCodebox\Native\Redactor;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Reads each declared file with a program of the sandbox, which has no more rights than the steps had. The content of a
 * text file is in the answer, redacted; of any other file only size and digest.
 */
final class WorkloadFiles {

	/** Command that the policy of the sandbox must list, so that a program can read the files. */
	public const COMMAND = 'command-agent-run';

	/** Maximum size of a file whose content is returned, in bytes. */
	private const MOST_BYTES = 262144;

	/**
	 * Diagnoses of required files that are missing.
	 *
	 * @var list<array<string, string>>
	 */
	public array $missing = [];

	/**
	 * Creates the reader with its dependencies.
	 *
	 * @param WorkloadSandbox $sandbox Sandbox.
	 */
	public function __construct( private readonly WorkloadSandbox $sandbox ) {}

	/**
	 * Returns a row for each file that exists.
	 *
	 * @param list<array<string, mixed>> $files Rows of the input: `path`, `name`, `required`.
	 * @return list<array<string, mixed>>
	 */
	public function collect( array $files ): array {
		$rows = [];
		foreach ( $files as $index => $file ) {
			$path = trim( (string) ( $file['path'] ?? '' ) );
			try {
				$row = $this->read( $path );
			} catch ( Failure $failure ) {
				$row = null;
			}
			if ( null !== $row ) {
				$rows[] = HostAnswer::filled( [ 'name' => trim( (string) ( $file['name'] ?? $path ) ) ] + $row + array_intersect_key( $file, array_flip( [ 'type', 'contentType', 'metadata' ] ) ) );
			} elseif ( false !== ( $file['required'] ?? true ) ) {
				/* translators: %s: path. */
				$this->missing[] = HostAnswer::diagnosis( ErrorCode::CollectionFailed, Sentence::of( __( 'The file %s does not exist in the sandbox, cannot be read, or its path is not absolute.', 'codebox' ), sanitize_text_field( $path ) ), sprintf( 'artifacts[%d].path', $index ) );
			}
		}
		return $rows;
	}

	/**
	 * Reads one file; null when it does not exist.
	 *
	 * @param string $path Path in the sandbox.
	 * @return array<string, mixed>|null
	 */
	private function read( string $path ): ?array {
		if ( ! str_starts_with( $path, '/' ) || str_contains( $path, "\0" ) ) {
			return null;
		}
		$hash = $this->sandbox->program( [ 'sha256sum', '-b', '--', $path ] );
		$size = $this->sandbox->program( [ 'stat', '-L', '-c', '%s', '--', $path ] );
		if ( 0 !== ( $hash['code'] ?? 1 ) || 0 !== ( $size['code'] ?? 1 ) || 1 !== preg_match( '/^\\\\?([0-9a-f]{64})/', (string) $hash['stdout'], $digest ) ) {
			return null;
		}
		$row = [
			'kind'       => 'file',
			'path'       => $path,
			'size_bytes' => (int) trim( (string) $size['stdout'] ),
			'sha256'     => $digest[1],
		];
		if ( $row['size_bytes'] > self::MOST_BYTES ) {
			return $row;
		}
		$content = (string) ( $this->sandbox->program( [ 'cat', '--', $path ] )['stdout'] ?? '' );
		return $row + ( 1 === preg_match( '//u', $content ) && ! str_contains( $content, "\0" ) ? [ 'content' => Redactor::text( $content ) ] : [] );
	}
}
