<?php
/**
 * `wp codebox runs events`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Authority;
use WPCodebox\Failure;
use WPCodebox\Run\RunRegistry;

defined( 'ABSPATH' ) || exit;

/**
 * Prints the events of a run, by page or live.
 */
final class RunEventsCommand extends Command {

	private const PAGE = 1000;

	/** Polling interval in microseconds: initial value, and maximum while no events arrive. */
	private const SHORT = 200000;
	private const LONG  = 1000000;

	private bool $interrupted = false;

	/**
	 * Shows the events of a run, or follows the run to its end.
	 *
	 * With --follow the agent's output appears on STDERR as it arrives and the report goes to STDOUT, as with
	 * run-agent-task; --format=json prints each event as one line of JSON instead. The command then exits
	 * with the run's exit status. Ctrl-C ends this command with 130; the run continues.
	 *
	 * ## OPTIONS
	 *
	 * <id>
	 * : Run id, or a unique prefix.
	 *
	 * [--follow]
	 * : Follow until the run ends.
	 *
	 * [--after=<cursor>]
	 * : Show only events after this cursor.
	 * ---
	 * default: 0
	 * ---
	 *
	 * [--per-page=<number>]
	 * : Maximum number of events; not with --follow.
	 *
	 * [--format=<format>]
	 * : Output format; ids prints event ids. --follow accepts table or json.
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
	 * : Columns: seq, timestamp, type, executionId, data, id.
	 *
	 * [--agent-output=<form>]
	 * : How --follow prints the JSON lines of an agent: as readable steps, or raw, i.e. unchanged; --format=json includes both forms.
	 * ---
	 * default: steps
	 * options:
	 *   - steps
	 *   - raw
	 * ---
	 *
	 * [--porcelain]
	 * : Print only the cursor for the next page; not with --follow.
	 *
	 * ## EXAMPLES
	 *
	 *     # Watch a run and stop when it does.
	 *     $ wp codebox runs events run_0123 --follow
	 *
	 *     # Events after the 40th, as data.
	 *     $ wp codebox runs events run_0123 --after=40 --format=json
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function __invoke( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox runs events',
			RunsCommand::ANY,
			'wp-codebox/list-run-events',
			$flags,
			function ( Authority $authority ) use ( $args, $flags ): int {
				$after = Quantity::whole( 'after', (string) $flags['after'], 0, PHP_INT_MAX );
				if ( ! empty( $flags['follow'] ) ) {
					return $this->follow( $args[0], $after, $flags, $authority );
				}
				$page = $this->services->registry->events(
					[
						'run_id'   => $args[0],
						'after'    => $after,
						'per_page' => Quantity::whole( 'per-page', (string) ( $flags['per-page'] ?? RunRegistry::EVENTS ), 1, self::PAGE ),
					],
					$authority
				);
				if ( ! empty( $flags['porcelain'] ) ) {
					Console::print( (string) $page['cursor'] );
					return 0;
				}
				if ( in_array( $flags['format'], [ 'json', 'yaml' ], true ) && ! isset( $flags['fields'] ) ) {
					$this->console->document( $page, $flags['format'] );
					return 0;
				}
				$this->table->print( $page['events'], [ 'seq', 'timestamp', 'type', 'executionId', 'data' ], 'id', $flags );
				$this->console->say( sprintf( 'The run %s; for later events give --after=%d.', 'running' === $page['status'] ? 'goes on' : 'has ended', $page['cursor'] ) );
				return 0;
			}
		);
	}

	/**
	 * Follows a run to its end and returns its exit status.
	 *
	 * @param string               $reference Run id or prefix.
	 * @param int                  $cursor    Cursor; only later events are printed.
	 * @param array<string, mixed> $flags     Flags of the command line, by name.
	 * @param Authority            $authority User or operator the call runs as.
	 */
	private function follow( string $reference, int $cursor, array $flags, Authority $authority ): int {
		$json = 'json' === $flags['format'];
		if ( ! in_array( $flags['format'], [ 'table', 'json' ], true ) || isset( $flags['per-page'] ) || isset( $flags['fields'] ) || ! empty( $flags['porcelain'] ) ) {
			throw Failure::invalid_input( __( '--follow works only with --format=table or --format=json, and without --per-page, --fields and --porcelain.', 'codebox' ) );
		}
		$input  = [ 'run_id' => $reference ];
		$id     = (string) $this->services->registry->get( $input, $authority )['run']['run_id'];
		$stream = new RunStream( $this->console, '', (string) ( $flags['agent-output'] ?? 'steps' ) );
		$pause  = self::SHORT;
		Interrupt::on(
			function (): void {
				$this->interrupted = true;
			}
		);
		do {
			$page   = $this->services->registry->events(
				[
					'run_id'   => $id,
					'after'    => $cursor,
					'per_page' => self::PAGE,
				],
				$authority
			);
			$cursor = $page['cursor'];
			foreach ( $page['events'] as $event ) {
				if ( $json ) {
					$this->console->json( $event );
				} else {
					$stream->event( $event );
				}
			}
			$over = 'ended' === $page['status'] && ! $page['more'];
			if ( ! $over && ! $page['more'] && ! $this->interrupted ) {
				$pause = [] === $page['events'] ? min( 2 * $pause, self::LONG ) : self::SHORT;
				usleep( $pause );
			}
		} while ( ! $over && ! $this->interrupted );
		if ( ! $over ) {
			$this->console->say( sprintf( 'The run goes on. Follow it again: wp codebox runs events %s --follow --after=%d', $id, $cursor ) );
			return 130;
		}
		return $this->ended( $id, $authority, $json );
	}

	/**
	 * Prints the result of the run and returns its exit status.
	 *
	 * @param string    $id        Run id.
	 * @param Authority $authority User or operator the call runs as.
	 * @param bool      $json      Whether STDOUT is reserved for events.
	 */
	private function ended( string $id, Authority $authority, bool $json ): int {
		$answer = $this->services->registry->get( [ 'run_id' => $id ], $authority );
		if ( ! $json ) {
			Console::print( isset( $answer['result'] ) ? RunReport::text( $answer['result'] ) : RunReport::running( $answer['run'] ) );
		}
		return (int) ( $answer['result']['exit_code'] ?? $answer['run']['exit_status'] ?? 1 );
	}
}
