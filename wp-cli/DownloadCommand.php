<?php
/**
 * `wp codebox artifacts download`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * Downloads approved files.
 */
final class DownloadCommand extends Command {

	/**
	 * Writes approved files of a bundle that verifies: their patch, or their new contents as a zip archive.
	 *
	 * The zip archive has the new and changed files; a text file in it lists deleted ones.
	 *
	 * ## OPTIONS
	 *
	 * [<id>]
	 * : Run id, artifact id, or the beginning of either.
	 *
	 * [--artifact-id=<id>]
	 * : Same as the argument <id>.
	 *
	 * [--files=<paths>]
	 * : Only these changed files, separated by commas or as a JSON list: paths as `artifacts get` lists
	 * them, or relative to the plugin or theme.
	 *
	 * [--as=<form>]
	 * : Form of the download.
	 * ---
	 * default: patch
	 * options:
	 *   - patch
	 *   - zip
	 * ---
	 *
	 * [--output=<file>]
	 * : New file to write; - for STDOUT. Default: <run id>.patch or <run id>.zip in the current directory.
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
	 * : Columns: run_id, artifact_id, as, path, bytes, sha256.
	 *
	 * [--porcelain]
	 * : Print only the sha256 of the file.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox artifacts download run_0123 --files=sample.php --as=zip --output=/srv/sample.zip
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function download( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox artifacts download',
			Capabilities::REVIEW,
			'wp-codebox/download-approved-files',
			$flags,
			function ( Authority $authority ) use ( $args, $flags ): int {
				$input = [
					'artifact_id' => JsonInput::artifact( $args, $flags )['artifact_id'],
					'as'          => (string) $flags['as'],
				];
				if ( isset( $flags['files'] ) ) {
					$input['files'] = ( new Approval( $this->services ) )->paths( $input, FlagList::split( '--files', (string) $flags['files'] ) );
				}
				if ( '-' === ( $flags['output'] ?? '' ) ) {
					if ( 'zip' === $input['as'] && stream_isatty( STDOUT ) ) {
						throw Failure::invalid_input( __( 'An archive is binary and is not printed to a terminal; give --output=<file> or redirect STDOUT.', 'codebox' ) );
					}
					$this->console->data( $this->services->downloads->bytes( $input )['content'] );
					return 0;
				}
				$path      = (string) ( $flags['output'] ?? $this->services->artifacts->artifact( $input )['run_id'] . '.' . $input['as'] );
				$whole     = str_starts_with( $path, '/' ) ? $path : getcwd() . '/' . $path;
				$directory = realpath( dirname( $whole ) );
				$whole     = false === $directory ? $whole : rtrim( $directory, '/' ) . '/' . basename( $whole );
				$answer    = $this->services->downloads->file( $input, $whole, $authority );
				$this->console->say( sprintf( 'Written to %s, %s.', $answer['path'], Quantity::human_bytes( (int) $answer['bytes'] ) ) );
				$this->row( $answer, [ 'run_id', 'as', 'path', 'bytes', 'sha256' ], $answer['sha256'], $flags );
				return 0;
			}
		);
	}
}
