<?php
/**
 * `wp codebox artifacts history`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Capabilities;

defined( 'ABSPATH' ) || exit;

/**
 * Lists the history of all bundles.
 */
final class HistoryCommand extends Command {

	/**
	 * Lists decisions, applies and roll backs of all bundles from the audit log, newest first.
	 *
	 * ## OPTIONS
	 *
	 * [--before=<number>]
	 * : Show only entries with a lower number.
	 *
	 * [--per-page=<number>]
	 * : Maximum number of entries, at most 200.
	 * ---
	 * default: 50
	 * ---
	 *
	 * [--format=<format>]
	 * : Output format; `ids` prints run ids.
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
	 * : Columns: seq, time, event, action, status, who, files, run_id, artifact_id, adapter, reference, message, error.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox artifacts history --fields=time,event,status,who,run_id
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function history( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox artifacts history',
			Capabilities::REVIEW,
			'wp-codebox/list-artifact-history',
			$flags,
			function () use ( $flags ): int {
				$input = [ 'per_page' => Quantity::whole( 'per-page', (string) $flags['per-page'], 1, 200 ) ];
				if ( isset( $flags['before'] ) ) {
					$input['before'] = Quantity::whole( 'before', (string) $flags['before'], 1, 1000000000 );
				}
				$page = $this->services->artifacts->history( $input );
				$this->rows( $page, array_map( [ self::class, 'row_of' ], $page['history'] ), [ 'seq', 'time', 'event', 'status', 'who', 'run_id' ], 'run_id', $flags );
				if ( ! $page['complete'] && isset( $page['before'] ) ) {
					$this->console->say( sprintf( 'Older entries follow: --before=%d.', $page['before'] ) );
				}
				return 0;
			}
		);
	}

	/**
	 * Returns an entry as a table row: with the requester in `who` as one string, the number of files, and '' for
	 * absent columns.
	 *
	 * @param array<string, mixed> $entry Entry of the history.
	 * @return array<string, mixed>
	 */
	private static function row_of( array $entry ): array {
		return [
			'who'   => HistoryReport::who( $entry ),
			'files' => count( $entry['files'] ?? [] ),
		] + $entry + array_fill_keys( [ 'action', 'run_id', 'artifact_id', 'adapter', 'reference', 'message', 'error' ], '' );
	}
}
