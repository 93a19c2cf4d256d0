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
 * What a run says and does, page by page or as it happens.
 */
final class RunEventsCommand extends Command {

	private const PAGE = 1000;

	/** How long to wait for news, in microseconds: at first, and at most when there are none. */
	private const SHORT = 200000;
	private const LONG  = 1000000;

	private bool $interrupted = false;

	/**
	 * Shows what a run has said and done, or follows it to its end.
	 *
	 * With --follow the output of the agent is shown on STDERR as it comes and STDOUT gets the
	 * report, as with run-agent-task; --format=json prints each event as one line of JSON
	 * instead. The exit status is then the run's. Ctrl-C ends the command with 130 and leaves
	 * the run alone.
	 *
	 * ## OPTIONS
	 *
	 * <id>
	 * : Run id, or its beginning.
	 *
	 * [--follow]
	 * : Go on until the run ends.
	 *
	 * [--after=<cursor>]
	 * : Only events after this one.
	 * ---
	 * default: 0
	 * ---
	 *
	 * [--per-page=<number>]
	 * : How many at most; not with --follow.
	 *
	 * [--format=<format>]
	 * : How to print them; ids are event ids. With --follow table or json.
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
	 * : How --follow prints lines of an agent's own protocol; --format=json has both forms.
	 * ---
	 * default: steps
	 * options:
	 *   - steps
	 *   - raw
	 * ---
	 *
	 * [--porcelain]
	 * : Print only the cursor to go on from; not with --follow.
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
	 * @param array<string, mixed> $flags Flags.
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
					fwrite( STDOUT, $page['cursor'] . "\n" );
					return 0;
				}
				if ( in_array( $flags['format'], [ 'json', 'yaml' ], true ) && ! isset( $flags['fields'] ) ) {
					$this->console->document( $page, $flags['format'] );
					return 0;
				}
				$this->table->print( $page['events'], [ 'seq', 'timestamp', 'type', 'executionId', 'data' ], 'id', $flags );
				$this->console->say( sprintf( 'The run %s; go on with --after=%d.', 'running' === $page['status'] ? 'goes on' : 'has ended', $page['cursor'] ) );
				return 0;
			}
		);
	}

	/**
	 * Follows a run to its end; answers its exit status.
	 *
	 * @param string               $reference Run.
	 * @param int                  $cursor    Events after this one.
	 * @param array<string, mixed> $flags     Flags.
	 * @param Authority            $authority In whose name.
	 */
	private function follow( string $reference, int $cursor, array $flags, Authority $authority ): int {
		$json = 'json' === $flags['format'];
		if ( ! in_array( $flags['format'], [ 'table', 'json' ], true ) || isset( $flags['per-page'] ) || isset( $flags['fields'] ) || ! empty( $flags['porcelain'] ) ) {
			throw Failure::invalid_input( __( '--follow goes with --format=table or --format=json, and with none of --per-page, --fields and --porcelain.', 'codebox' ) );
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
	 * Prints what the run came to; answers its exit status.
	 *
	 * @param string    $id        Run.
	 * @param Authority $authority In whose name.
	 * @param bool      $json      Whether STDOUT is for events only.
	 */
	private function ended( string $id, Authority $authority, bool $json ): int {
		$answer = $this->services->registry->get( [ 'run_id' => $id ], $authority );
		if ( ! $json ) {
			fwrite( STDOUT, isset( $answer['result'] ) ? RunReport::text( $answer['result'] ) : RunReport::running( $answer['run'] ) );
		}
		return (int) ( $answer['result']['exit_code'] ?? $answer['run']['exit_status'] ?? 1 );
	}
}
