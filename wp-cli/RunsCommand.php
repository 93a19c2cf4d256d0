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
use WPCodebox\Run\TaskTexts;

defined( 'ABSPATH' ) || exit;

/**
 * Lists, reads, follows and cancels the runs of this site, of all users.
 */
final class RunsCommand extends Command {

	public const ANY = [ Capabilities::RUN, Capabilities::REVIEW ];

	private const COLUMNS = [ 'run_id', 'status', 'outcome', 'created_at', ...TaskTexts::NAMES ];

	/**
	 * Lists the runs of this site, newest first.
	 *
	 * With --user: only the runs that user started, or all runs if the user has the review capability.
	 *
	 * ## OPTIONS
	 *
	 * [--status=<status>]
	 * : Show only active runs, or only ended runs.
	 * ---
	 * options:
	 *   - running
	 *   - ended
	 * ---
	 *
	 * [--page=<number>]
	 * : Page number, starting at 1.
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
	 * : Output format.
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
	 * : Print only run ids, one per line.
	 *
	 * ## EXAMPLES
	 *
	 *     # Cancel everything that runs.
	 *     $ for run in $(wp codebox runs list --status=running --porcelain); do wp codebox runs cancel $run; done
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
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
						Console::print( (string) $run['run_id'] );
					}
					return 0;
				}
				$this->table->print( $list['runs'], self::COLUMNS, 'run_id', $flags );
				if ( $list['total'] > $input['page'] * $input['per_page'] ) {
					$this->console->say( sprintf( '%d runs in all; see the next page with --page=%d.', $list['total'], $input['page'] + 1 ) );
				}
				return 0;
			}
		);
	}

	/**
	 * Shows one run: the progress of an active run, or the report of an ended one.
	 *
	 * Exit status 0 when the run could be read, whatever its outcome; the output states it. `wp codebox
	 * runs events <id> --follow` exits with the run's exit status.
	 *
	 * ## OPTIONS
	 *
	 * <id>
	 * : Run id, or a unique prefix.
	 *
	 * [--format=<format>]
	 * : Output format.
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
	 * : Print only the outcome, or the status of a run without an outcome.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox runs get run_0123 --format=json
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
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
					Console::print( (string) ( $run['outcome'] ?? $run['status'] ) );
				} elseif ( 'table' === $flags['format'] ) {
					Console::print( isset( $answer['result'] ) ? RunReport::text( $answer['result'] ) : RunReport::running( $run ) );
				} else {
					$this->document( $answer, [ $run ], self::COLUMNS, 'run_id', $flags );
				}
				return 0;
			}
		);
	}

	/**
	 * Requests cancellation of a run. The changes the agent made so far are stored as a bundle.
	 *
	 * Repeating the request, or cancelling an ended run, is not an error.
	 *
	 * ## OPTIONS
	 *
	 * <id>
	 * : Run id, or a unique prefix.
	 *
	 * [--format=<format>]
	 * : Output format of the reply.
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
	 * : Print only the reply: requested or already_ended.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox runs cancel run_0123
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
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
