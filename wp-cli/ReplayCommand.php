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
 * Repeats runs.
 */
final class ReplayCommand extends Command {

	/**
	 * Runs the task of a bundle again, against the code this site has now, and says what differs.
	 *
	 * Nothing on this site changes; the repetition leaves a bundle of its own. Exit status 0 when
	 * nothing differs, 3 when something does, 1 when the run cannot be repeated.
	 *
	 * ## OPTIONS
	 *
	 * <id>
	 * : Run id, artifact id, or the beginning of either.
	 *
	 * [--apply-target=<json>]
	 * : Where the code is when it is no installed plugin or theme: {"directory":"/path"}.
	 *
	 * [--replay-run-id=<id>]
	 * : Run nothing: compare with this repetition, which has ended.
	 *
	 * [--format=<format>]
	 * : How to print the differences; ids is the run id of the repetition.
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
	 * : Print only the run id of the repetition.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox artifacts replay run_0123
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags.
	 */
	public function __invoke( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox artifacts replay',
			Capabilities::RUN,
			'wp-codebox/replay-artifact',
			$flags,
			function ( Authority $authority ) use ( $args, $flags ): int {
				$input = [ 'artifact_id' => $args[0] ] + FlagList::texts( $flags, [ 'replay-run-id' ] );
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
	 * @param array<string, mixed> $answer `wp-codebox/artifact-replay/v1`.
	 * @param array<string, mixed> $flags  Flags.
	 */
	private function show( array $answer, array $flags ): void {
		foreach ( $answer['notes'] ?? [] as $note ) {
			$this->console->say( $note );
		}
		if ( 'running' === $answer['status'] ) {
			$this->console->say( sprintf( 'The repetition %s goes on; compare later with --replay-run-id.', $answer['replay']['run_id'] ) );
		} else {
			$count = count( $answer['differences'] );
			$this->console->say( 0 === $count ? 'The repetition did the same.' : sprintf( 'The repetition differs in %d points.', $count ) );
		}
		if ( ! empty( $flags['porcelain'] ) || 'ids' === $flags['format'] ) {
			fwrite( STDOUT, $answer['replay']['run_id'] . "\n" );
		} else {
			$this->rows( $answer, $answer['differences'], [ 'kind', 'status', 'path', 'original', 'replay' ], 'kind', $flags );
		}
	}
}
