<?php
/**
 * `wp codebox artifacts replay`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Authority;
use WPCodebox\Capabilities;

defined( 'ABSPATH' ) || exit;

/**
 * Replays runs.
 */
final class ReplayCommand extends Command {

	/**
	 * Runs the task of a bundle again, against this site's current code, and lists the differences.
	 *
	 * Nothing on this site changes; the replay creates its own bundle. Exit status 0 when both results are
	 * equal, 3 when they differ, 1 when the run cannot be replayed.
	 *
	 * ## OPTIONS
	 *
	 * [<id>]
	 * : Run id, artifact id, or the beginning of either.
	 *
	 * [--artifact-id=<id>]
	 * : Same as the argument <id>.
	 *
	 * [--apply-target=<json>]
	 * : Target as a JSON object {"directory":"/path"}, needed when the code is not an installed plugin or
	 * theme.
	 *
	 * [--replay-run-id=<id>]
	 * : Start no run; compare with this ended replay.
	 *
	 * [--format=<format>]
	 * : Output format of the differences; ids prints the run id of the replay.
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
	 * : Columns: kind, status, path, check, expected, actual, original, replay.
	 *
	 * [--porcelain]
	 * : Print only the run id of the replay.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox artifacts replay run_0123
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function __invoke( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox artifacts replay',
			Capabilities::RUN,
			'wp-codebox/replay-artifact',
			$flags,
			function ( Authority $authority ) use ( $args, $flags ): int {
				$input = JsonInput::artifact( $args, $flags ) + FlagList::texts( $flags, [ 'replay-run-id' ] );
				if ( isset( $flags['apply-target'] ) ) {
					$input['apply_target'] = FlagList::json_object( '--apply-target', (string) $flags['apply-target'] );
				}
				$stream = new RunStream( $this->console );
				$answer = $this->services->replays->replay( $input, $authority, [ $stream, 'started' ], [ $stream, 'event' ] );
				$this->show( $answer, $flags );
				return 'compared' === $answer['status'] && ! $answer['identical'] ? 3 : 0;
			}
		);
	}

	/**
	 * Prints the differences.
	 *
	 * @param array<string, mixed> $answer Result `wp-codebox/artifact-replay/v1`.
	 * @param array<string, mixed> $flags  Flags of the command line, by name.
	 */
	private function show( array $answer, array $flags ): void {
		foreach ( $answer['notes'] ?? [] as $note ) {
			$this->console->say( $note );
		}
		if ( 'running' === $answer['status'] ) {
			$this->console->say( sprintf( 'The replay %s is still running; compare later with --replay-run-id.', $answer['replay']['run_id'] ) );
		} else {
			$count = count( $answer['differences'] );
			$this->console->say( 0 === $count ? 'The replay had the same result.' : sprintf( 'The replay differs in %d points.', $count ) );
		}
		if ( ! empty( $flags['porcelain'] ) || 'ids' === $flags['format'] ) {
			Console::print( (string) $answer['replay']['run_id'] );
		} else {
			$this->rows( $answer, $answer['differences'], [ 'kind', 'status', 'path', 'original', 'replay' ], 'kind', $flags );
		}
	}
}
