<?php
/**
 * `wp codebox artifacts rollback|discard`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WP_CLI;
use WPCodebox\Capabilities;

defined( 'ABSPATH' ) || exit;

/**
 * Takes applied bundles back, and deletes bundles.
 */
final class RollbackCommands extends Command {

	/**
	 * Takes an applied bundle back: restores the files that direct apply wrote.
	 *
	 * A file that changed since the apply is listed and left as it is.
	 *
	 * ## OPTIONS
	 *
	 * [<id>]
	 * : Run id, artifact id, or the beginning of either.
	 *
	 * [--artifact-id=<id>]
	 * : Same as the argument <id>.
	 *
	 * [--input-file=<file>]
	 * : File with the input as a JSON object of the ability's input schema; - reads STDIN. Flags override it.
	 *
	 * [--input-json=<json>]
	 * : Same JSON object, given inline.
	 *
	 * [--files=<paths>]
	 * : Restore only these files, separated by commas or as a JSON list: paths as `artifacts get` lists
	 * them, or relative to the plugin or theme.
	 *
	 * [--format=<format>]
	 * : Output format of the result. table, csv and count list the restored files.
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
	 * : Columns of the restored files: path.
	 *
	 * [--porcelain]
	 * : Print only the status.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox artifacts rollback run_0123
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function rollback( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox artifacts rollback',
			Capabilities::APPLY,
			'wp-codebox/rollback-artifact',
			$flags,
			function () use ( $args, $flags ): int {
				$input = JsonInput::artifact( $args, $flags );
				if ( isset( $flags['files'] ) ) {
					$input['files'] = FlagList::split( '--files', (string) $flags['files'] );
				}
				$answer = $this->services->rollbacks->roll_back( $this->services->schemas->valid( 'artifact-rollback-input', $input ) + [ 'files' => [] ] );
				$result = $answer['result'];
				$this->console->say( $result['message'] );
				foreach ( $result['conflicts'] as $conflict ) {
					$this->console->say( sprintf( 'left as it is: %s (%s)', $conflict['path'], $conflict['reason'] ) );
				}
				if ( ! empty( $flags['porcelain'] ) ) {
					Console::print( (string) $result['status'] );
				} else {
					$this->files( $answer, array_map( static fn( string $path ): array => [ 'path' => $path ], $result['files'] ), $flags );
				}
				return $answer['success'] ? 0 : 1;
			}
		);
	}

	/**
	 * Deletes a bundle permanently, even one that cannot be read.
	 *
	 * ## OPTIONS
	 *
	 * [<id>]
	 * : Run id, artifact id, or the beginning of either.
	 *
	 * [--artifact-id=<id>]
	 * : Same as the argument <id>.
	 *
	 * [--input-file=<file>]
	 * : File with the input as a JSON object of the ability's input schema; - reads STDIN. Flags override it.
	 *
	 * [--input-json=<json>]
	 * : Same JSON object, given inline.
	 *
	 * [--yes]
	 * : Do not ask for confirmation. The command does not ask either when STDIN is not a terminal.
	 *
	 * [--format=<format>]
	 * : Output format of the deleted bundle.
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
	 * : Columns: run_id, artifact_id, discarded.
	 *
	 * [--porcelain]
	 * : Print only the run id.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox artifacts discard run_0123 --yes
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function discard( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox artifacts discard',
			Capabilities::REVIEW,
			'wp-codebox/discard-artifact',
			$flags,
			function () use ( $args, $flags ): int {
				$this->services->gate->check();
				$input = $this->services->schemas->valid( 'artifact-reference-input', JsonInput::artifact( $args, $flags ) );
				if ( stream_isatty( STDIN ) ) {
					WP_CLI::confirm( sprintf( 'Delete the bundle %s for good?', $input['artifact_id'] ), $flags );
				}
				$answer = $this->services->artifacts->discard( $input );
				$this->row( $answer, [ 'run_id', 'artifact_id', 'discarded' ], $answer['run_id'], $flags );
				return 0;
			}
		);
	}
}
