<?php
/**
 * `wp codebox artifacts export|import|reimport`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Apply\BundleTrust;
use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Failure;
use WPCodebox\Transfer\ImportSource;

defined( 'ABSPATH' ) || exit;

/**
 * Exports and imports bundles.
 */
final class TransferCommands extends Command {

	/**
	 * Writes a bundle as an archive. The same bundle always gives the same bytes.
	 *
	 * ## OPTIONS
	 *
	 * [<id>]
	 * : Run id, artifact id, or the beginning of either.
	 *
	 * [--artifact-id=<id>]
	 * : Same as the argument <id>.
	 *
	 * [--output=<file>]
	 * : New file to write; - for STDOUT (at most 16 MiB). Default: <run id>.tar in the current directory.
	 *
	 * [--format=<format>]
	 * : Output format of the result.
	 * ---
	 * default: table
	 * options:
	 *   - table
	 *   - json
	 *   - yaml
	 *   - csv
	 *   - ids
	 *   - count
	 * ---
	 *
	 * [--fields=<fields>]
	 * : Columns: run_id, artifact_id, path, bytes, sha256.
	 *
	 * [--porcelain]
	 * : Print only the sha256 of the archive.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox artifacts export run_0123 --output=/srv/bundles/run_0123.tar
	 *
	 *     # From one host to another.
	 *     $ wp codebox artifacts export run_0123 --output=- | ssh other 'wp codebox artifacts import -'
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function export( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox artifacts export',
			Capabilities::REVIEW,
			'wp-codebox/export-artifact-bundle',
			$flags,
			function ( Authority $authority ) use ( $args, $flags ): int {
				$input = JsonInput::artifact( $args, $flags );
				if ( '-' === ( $flags['output'] ?? '' ) ) {
					if ( stream_isatty( STDOUT ) ) {
						throw Failure::invalid_input( __( 'An archive is binary and is not printed to a terminal; give --output=<file> or redirect STDOUT.', 'codebox' ) );
					}
					$this->console->data( $this->services->exports->bytes( $input )['archive'] );
					return 0;
				}
				$path   = (string) ( $flags['output'] ?? $this->services->artifacts->artifact( $input )['run_id'] . '.tar' );
				$answer = $this->services->exports->file( $input, $this->absolute( $path ), $authority );
				$this->console->say( sprintf( 'Written to %s, %s.', $answer['path'], Quantity::human_bytes( (int) $answer['bytes'] ) ) );
				$this->row( $answer, [ 'run_id', 'path', 'bytes', 'sha256' ], $answer['sha256'], $flags );
				return 0;
			}
		);
	}

	/**
	 * Imports a bundle after verifying it. Its signature alone decides whether the site trusts it.
	 *
	 * Importing the same bundle again changes nothing.
	 *
	 * ## OPTIONS
	 *
	 * <path>
	 * : Bundle directory, its manifest.json, or an archive of it; - reads an archive of at most 16 MiB from STDIN.
	 *
	 * [--expected-artifact-id=<id>]
	 * : Expected artifact id; a bundle with a different id is refused.
	 *
	 * [--expected-content-digest=<sha256>]
	 * : Expected contentDigest.value of the manifest; a bundle with a different digest is refused.
	 *
	 * [--replace]
	 * : Replace a stored copy that differs or is damaged.
	 *
	 * [--format=<format>]
	 * : Output format of the result.
	 * ---
	 * default: table
	 * options:
	 *   - table
	 *   - json
	 *   - yaml
	 *   - csv
	 *   - ids
	 *   - count
	 * ---
	 *
	 * [--fields=<fields>]
	 * : Columns: status, run_id, artifact_id, trusted, manifest_sha256.
	 *
	 * [--porcelain]
	 * : Print only the run id.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox artifacts import /srv/bundles/run_0123.tar
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function import( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox artifacts import',
			Capabilities::REVIEW,
			'wp-codebox/import-artifact-bundle',
			$flags,
			function ( Authority $authority ) use ( $args, $flags ): int {
				return $this->show( $this->services->imports->import( $this->input( $args[0], $flags ), $authority ), $flags );
			}
		);
	}

	/**
	 * Imports a known bundle again and replaces a damaged copy.
	 *
	 * ## OPTIONS
	 *
	 * <artifact-id>
	 * : Complete artifact id; a bundle with a different id is refused.
	 *
	 * <path>
	 * : Bundle directory, its manifest.json, or an archive of it; - reads an archive of at most 16 MiB from STDIN.
	 *
	 * [--format=<format>]
	 * : Output format of the result.
	 * ---
	 * default: table
	 * options:
	 *   - table
	 *   - json
	 *   - yaml
	 *   - csv
	 *   - ids
	 *   - count
	 * ---
	 *
	 * [--fields=<fields>]
	 * : Columns: status, run_id, artifact_id, trusted, manifest_sha256.
	 *
	 * [--porcelain]
	 * : Print only the run id.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox artifacts reimport artifact-bundle-sha256-0123 /srv/bundles/run_0123.tar
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function reimport( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox artifacts reimport',
			Capabilities::REVIEW,
			'wp-codebox/reimport-artifact-bundle',
			$flags,
			function ( Authority $authority ) use ( $args, $flags ): int {
				return $this->show( $this->services->imports->reimport( [ 'artifact_id' => $args[0] ] + $this->input( $args[1], $flags ), $authority ), $flags );
			}
		);
	}

	/**
	 * Prints the result of an import.
	 *
	 * @param array<string, mixed> $answer Result of the ability.
	 * @param array<string, mixed> $flags  Flags of the command line, by name.
	 */
	private function show( array $answer, array $flags ): int {
		$this->console->say(
			sprintf(
				'The bundle is %s; %s (%s).',
				[
					'created'  => 'stored',
					'existing' => 'already stored',
					'updated'  => 'replaced',
				][ $answer['status'] ],
				$answer['trusted'] ? 'its signature is trusted here' : 'it cannot be applied here',
				BundleTrust::words( (array) ( $answer['verification']['signature'] ?? [] ) )
			)
		);
		$this->row( $answer, [ 'status', 'run_id', 'artifact_id', 'trusted' ], $answer['run_id'], $flags );
		return 0;
	}

	/**
	 * Converts path and flags to the input of the import ability. `-` reads an archive from STDIN.
	 *
	 * @param string               $path  Path, or - for STDIN.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 * @return array<string, mixed>
	 */
	private function input( string $path, array $flags ): array {
		if ( '-' === $path ) {
			// phpcs:ignore WordPress.PHP.DiscouragedPHPFunctions -- base64 carries bytes in JSON; it hides nothing.
			$input = [ 'archive' => base64_encode( (string) stream_get_contents( STDIN, ImportSource::MAX_BYTES + 1 ) ) ];
		} else {
			$input = [ 'source_bundle_path' => $this->absolute( $path ) ];
		}
		$input += FlagList::texts( $flags, [ 'expected-artifact-id', 'expected-content-digest' ] );
		return empty( $flags['replace'] ) ? $input : $input + [ 'replace' => true ];
	}

	/**
	 * Returns a path from the current directory as a normalized absolute path.
	 *
	 * @param string $path Path as the caller gave it.
	 */
	private function absolute( string $path ): string {
		$whole     = str_starts_with( $path, '/' ) ? $path : getcwd() . '/' . $path;
		$directory = realpath( dirname( $whole ) );
		return false === $directory ? $whole : rtrim( $directory, '/' ) . '/' . basename( $whole );
	}
}
