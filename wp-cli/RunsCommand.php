<?php
/**
 * `wp codebox runs`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Authority;
use WPCodebox\Capabilities;

defined( 'ABSPATH' ) || exit;

/**
 * Lists, reads, follows and cancels runs of this site, whoever started them.
 */
final class RunsCommand extends Command {

	public const ANY = [ Capabilities::RUN, Capabilities::REVIEW ];

	private const COLUMNS = [ 'run_id', 'status', 'outcome', 'created_at', 'goal' ];

	/**
	 * Lists the runs of this site, newest first.
	 *
	 * With --user: the runs that user started, or all of them if that user may review.
	 *
	 * ## OPTIONS
	 *
	 * [--status=<status>]
	 * : Only those that go on, or only those that ended.
	 * ---
	 * options:
	 *   - running
	 *   - ended
	 * ---
	 *
	 * [--page=<number>]
	 * : Page, from 1.
	 * ---
	 * default: 1
	 * ---
	 *
	 * [--per-page=<number>]
	 * : Runs per page, at most 200.
	 * ---
	 * default: 50
	 * ---
	 *
	 * [--format=<format>]
	 * : How to print them.
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
	 * : Columns: run_id, status, mode, outcome, summary, created_at, updated_at, goal, bundle_id, salvaged, last_event, error, provenance.
	 *
	 * [--porcelain]
	 * : Print only run ids, one a line.
	 *
	 * ## EXAMPLES
	 *
	 *     # Cancel everything that runs.
	 *     $ for run in $(wp codebox runs list --status=running --porcelain); do wp codebox runs cancel $run; done
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags.
	 */
	public function list( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox runs list',
			self::ANY,
			'wp-codebox/list-runs',
			$flags,
			function ( Authority $authority ) use ( $flags ): int {
				$input = [
					'page'     => Quantity::whole( 'page', (string) $flags['page'], 1, 1000000 ),
					'per_page' => Quantity::whole( 'per-page', (string) $flags['per-page'], 1, 200 ),
				];
				$list  = $this->services->registry->list( $input + array_intersect_key( $flags, [ 'status' => true ] ), $authority );
				if ( ! empty( $flags['porcelain'] ) ) {
					foreach ( $list['runs'] as $run ) {
						fwrite( STDOUT, $run['run_id'] . "\n" );
					}
					return 0;
				}
				$this->table->print( $list['runs'], self::COLUMNS, 'run_id', $flags );
				if ( $list['total'] > $input['page'] * $input['per_page'] ) {
					$this->console->say( sprintf( 'There are %d in all; see the next with --page=%d.', $list['total'], $input['page'] + 1 ) );
				}
				return 0;
			}
		);
	}

	/**
	 * Reads one run: what it is doing, or the report of what it came to.
	 *
	 * Exit status 0 when the run could be read, whatever it came to; the outcome is in the
	 * data. `wp codebox runs events <id> --follow` exits as the run did.
	 *
	 * ## OPTIONS
	 *
	 * <id>
	 * : Run id, or its beginning.
	 *
	 * [--format=<format>]
	 * : How to print it.
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
	 * : Columns of csv: run_id, status, mode, outcome, summary, created_at, updated_at, goal, bundle_id, salvaged, last_event, error, provenance, success, exit_status, session_status.
	 *
	 * [--porcelain]
	 * : Print only the outcome, or the status of a run that has none.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox runs get run_0123 --format=json
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags.
	 */
	public function get( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox runs get',
			self::ANY,
			'wp-codebox/get-run',
			$flags,
			function ( Authority $authority ) use ( $args, $flags ): int {
				$answer = $this->services->registry->get( [ 'run_id' => $args[0] ], $authority );
				$run    = $answer['run'];
				if ( ! empty( $flags['porcelain'] ) ) {
					fwrite( STDOUT, ( $run['outcome'] ?? $run['status'] ) . "\n" );
				} elseif ( 'table' === $flags['format'] ) {
					fwrite( STDOUT, isset( $answer['result'] ) ? RunReport::text( $answer['result'] ) : RunReport::running( $run ) );
				} else {
					$this->document( $answer, [ $run ], self::COLUMNS, 'run_id', $flags );
				}
				return 0;
			}
		);
	}

	/**
	 * Asks a run to stop. What the agent has changed so far is kept as a bundle.
	 *
	 * Cancelling again, or a run that has ended, is no error.
	 *
	 * ## OPTIONS
	 *
	 * <id>
	 * : Run id, or its beginning.
	 *
	 * [--format=<format>]
	 * : How to print the answer.
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
	 * : Columns: run_id, answer, status.
	 *
	 * [--porcelain]
	 * : Print only the answer: requested or already_ended.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox runs cancel run_0123
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags.
	 */
	public function cancel( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox runs cancel',
			self::ANY,
			'wp-codebox/cancel-run',
			$flags,
			function ( Authority $authority ) use ( $args, $flags ): int {
				$answer = $this->services->registry->cancel( [ 'run_id' => $args[0] ], $authority );
				$this->row( $answer, [ 'run_id', 'answer', 'status' ], $answer['answer'], $flags );
				return 0;
			}
		);
	}
}
