<?php
/**
 * Live output and final report of a batch or fan-out.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Authority;
use WPCodebox\Native\Run;
use WPCodebox\PlainText;
use WPCodebox\Run\Cancellation;
use WPCodebox\Run\GroupHooks;

defined( 'ABSPATH' ) || exit;

/**
 * Prefixes each message of a batch or fan-out with the name of its task or worker, and prints the rows at the
 * end.
 */
final class GroupReport {

	/**
	 * Printers of the runs' output, by name of the task or worker.
	 *
	 * @var array<string, RunStream>
	 */
	private array $streams = [];

	/**
	 * Creates the report with its dependencies.
	 *
	 * @param Console $console Writer for STDERR messages.
	 * @param Table   $table   Table printer.
	 */
	public function __construct(
		private readonly Console $console,
		private readonly Table $table
	) {}

	/**
	 * Returns the callbacks that print progress. Ctrl-C cancels all runs.
	 *
	 * @param Authority $authority User or operator the call runs as.
	 * @param string    $noun      Noun for one run: task or worker.
	 */
	public function hooks( Authority $authority, string $noun ): GroupHooks {
		$cancellation = new Cancellation();
		Interrupt::on(
			function () use ( $cancellation ): void {
				$this->console->say( 'Cancelling all runs; the changes made so far are stored as bundles.' );
				$cancellation->request();
			}
		);
		return new GroupHooks(
			$cancellation,
			function ( string $name, Run $run ) use ( $noun ): void {
				$this->streams[ $name ] = new RunStream( $this->console, $noun . ' ' . $name );
				$this->console->say( sprintf( '[%s %s] Run %s started.', $noun, $name, $run->id() ) );
			},
			fn( string $name, array $event ): bool => $this->streams[ $name ]->event( $event ),
			fn( string $name, array $row ) => $this->console->say( sprintf( '[%s %s] %s', $noun, $name, $this->verdict( $row ) ) ),
			Authority::Operator === $authority ? $this->stage( ... ) : null
		);
	}

	/**
	 * Prints the result of the batch or fan-out and returns the exit status.
	 *
	 * @param array<string, mixed> $answer Result of the ability.
	 * @param string               $name   Column that names a row.
	 * @param array<string, mixed> $flags  Flags of the command line, by name.
	 */
	public function print( array $answer, string $name, array $flags ): int {
		$format = (string) $flags['format'];
		if ( ! empty( $flags['porcelain'] ) ) {
			foreach ( array_filter( $answer['runs'], static fn( array $row ): bool => $row['success'] ) as $row ) {
				Console::print( (string) $row['run_id'] );
			}
		} elseif ( in_array( $format, [ 'json', 'yaml' ], true ) && ! isset( $flags['fields'] ) ) {
			$this->console->document( $answer, $format );
		} else {
			$rows = array_map( static fn( array $row ): array => isset( $row['run']['outcome'] ) ? array_merge( $row, [ 'outcome' => $row['run']['outcome'] ] ) : $row, $answer['runs'] );
			$this->table->print( 'ids' === $format ? array_filter( $rows, static fn( array $row ): bool => isset( $row['run_id'] ) ) : $rows, [ $name, 'status', 'outcome', 'run_id', 'summary' ], 'run_id', $flags );
		}
		foreach ( $answer['aggregate']['conflicts'] ?? [] as $conflict ) {
			$this->console->say( sprintf( '%s: %s%s', 'error' === $conflict['severity'] ? 'Conflict' : 'Note', $conflict['message'], isset( $conflict['path'] ) ? ' ' . PlainText::file_name( $conflict['path'] ) : '' ) );
		}
		$counts = [];
		foreach ( [ 'completed', 'failed', 'timed_out', 'skipped', 'cancelled' ] as $status ) {
			if ( $answer[ $status ] > 0 ) {
				$counts[] = sprintf( '%d %s', $answer[ $status ], str_replace( '_', ' ', $status ) );
			}
		}
		$this->console->say( sprintf( '%d in all: %s. Nothing on this site was changed.', $answer['total'], implode( ', ', $counts ) ) );
		return (int) $answer['exit_code'];
	}

	/**
	 * Rewrites one task so that host programs in its command lines are mounted into the sandbox. Returns the task and
	 * the files to mount.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @return array{array<string, mixed>, list<array{source: string, target: string}>}
	 */
	private function stage( array $input ): array {
		$programs = new StagedPrograms();
		$input    = $programs->rewrite( $input );
		return [ $input, $programs->files() ];
	}

	/**
	 * Returns status and reason of one task or worker as a sentence.
	 *
	 * @param array<string, mixed> $row Result row of the task or worker.
	 */
	private function verdict( array $row ): string {
		$why = $row['error']['message'] ?? $row['summary'] ?? '';
		return sprintf( '%s%s.', str_replace( '_', ' ', ucfirst( $row['status'] ) ), '' === $why ? '' : ': ' . rtrim( $why, '.' ) );
	}
}
