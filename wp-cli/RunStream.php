<?php
/**
 * Prints the output of a run while it is active.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Native\Run;

defined( 'ABSPATH' ) || exit;

/**
 * Prints the guest's output line by line, prefixed with the execution, and the progress of the run. Ctrl-C
 * cancels the run; the changes the agent made so far are stored as a bundle.
 */
final class RunStream {

	/**
	 * Label of each started guest program, by execution id: `agent`, `check 1`, or the command name.
	 *
	 * @var array<string, string>
	 */
	private array $names = [];

	/**
	 * Received text after the last newline, by execution id followed by `|` (stdout) or `!` (stderr).
	 *
	 * @var array<string, string>
	 */
	private array $begun = [];

	private int $checks = 0;

	/**
	 * Creates the stream with its dependencies.
	 *
	 * @param Console $console Writer for STDERR messages.
	 * @param string  $label   Name of the run when several run at once; prefix of each line.
	 * @param string  $form    With `raw`, prints lines of an agent's protocol unchanged instead of as steps.
	 */
	public function __construct(
		private readonly Console $console,
		private readonly string $label = '',
		private readonly string $form = 'steps'
	) {}

	/**
	 * Prints the start message and makes Ctrl-C cancel the run. Called as soon as the run exists.
	 *
	 * @param Run $run Run handle.
	 */
	public function started( Run $run ): void {
		$this->say( sprintf( 'Run %s started; the sandbox is being prepared.', $run->id() ) );
		Interrupt::on(
			function () use ( $run ): void {
				$this->say( 'Cancelling; the changes made so far are stored as a bundle.' );
				$run->cancel();
			}
		);
	}

	/**
	 * Prints one lifecycle event of the run. Returns true, because false would cancel the run.
	 *
	 * @param array<string, mixed> $event Lifecycle event.
	 */
	public function event( array $event ): bool {
		$data = (array) ( $event['data'] ?? [] );
		$id   = (string) ( $event['executionId'] ?? '' );
		switch ( (string) ( $event['type'] ?? '' ) ) {
			case 'runtime.mounted':
				$this->say( sprintf( 'Mounted %s (%s, %s).', (string) ( $data['target'] ?? '' ), (string) ( $data['mode'] ?? '' ), (string) ( $data['view'] ?? '' ) ) );
				break;
			case 'runtime.observed':
				if ( isset( $data['accessUrl'] ) ) {
					$this->say( sprintf( 'Preview %s until %s.', (string) $data['accessUrl'], (string) ( $data['expiresAt'] ?? '' ) ) );
				} elseif ( 'activation' === ( $data['type'] ?? '' ) && false === ( $data['active'] ?? true ) ) {
					$this->say( sprintf( '%s; going on without it.', ucfirst( (string) ( $data['message'] ?? '' ) ) ) );
				} elseif ( isset( $data['level'] ) ) {
					$network = $data['network'] ?? 'deny';
					$this->say( sprintf( 'The sandbox is up: isolation %s, network %s.', (string) $data['level'], is_string( $network ) ? $network : 'limited by rules' ) );
				}
				break;
			case 'runtime.command.started':
				$this->begin( $id, $data );
				break;
			case 'runtime.command.output':
				$this->output( $id, $data );
				break;
			case 'runtime.command.finished':
				$this->finish( $id, $data );
				break;
		}
		return true;
	}

	/**
	 * Prints that a guest program started, and chooses its label.
	 *
	 * @param string               $id   Execution id.
	 * @param array<string, mixed> $data Event data.
	 */
	private function begin( string $id, array $data ): void {
		$phase = (string) ( $data['phase'] ?? '' );
		$name  = (string) ( $data['command'] ?? 'command' );
		if ( 'check' === $phase ) {
			$name = 'check ' . ( ++$this->checks );
		} elseif ( 'agent' === $phase || 'command-agent-run' === $name ) {
			$name = 'agent';
		} elseif ( 'site.activate' === $name ) {
			$name = 'activation';
		}
		$this->names[ $id ] = $name;
		$this->say( 'check' === $phase ? sprintf( '%s runs in a fresh sandbox.', ucfirst( $name ) ) : sprintf( '%s starts.', ucfirst( $name ) ) );
	}

	/**
	 * Prints the complete lines of a guest program's output, and stores an incomplete last line.
	 *
	 * @param string               $id   Execution id.
	 * @param array<string, mixed> $data Event data.
	 */
	private function output( string $id, array $data ): void {
		$stream = 'stderr' === ( $data['stream'] ?? '' ) ? '!' : '|';
		$text   = (string) ( $data['text'] ?? "[bytes that are not text]\n" );
		if ( 'raw' !== $this->form ) {
			$text = (string) ( $data['shown'] ?? $text );
		}
		$key    = $id . $stream;
		$lines  = explode( "\n", ( $this->begun[ $key ] ?? '' ) . $text );
		$rest   = (string) array_pop( $lines );
		// A guest that never sends a newline must not fill this process's memory.
		if ( strlen( $rest ) > 8192 ) {
			$lines[] = $rest;
			$rest    = '';
		}
		$this->begun[ $key ] = $rest;
		foreach ( $lines as $line ) {
			$this->line( $id, $stream, $line );
		}
	}

	/**
	 * Prints the stored incomplete lines of an ended guest program, then its exit status and duration.
	 *
	 * @param string               $id   Execution id.
	 * @param array<string, mixed> $data Event data.
	 */
	private function finish( string $id, array $data ): void {
		foreach ( [ '|', '!' ] as $stream ) {
			if ( '' !== ( $this->begun[ $id . $stream ] ?? '' ) ) {
				$this->line( $id, $stream, $this->begun[ $id . $stream ] );
			}
			unset( $this->begun[ $id . $stream ] );
		}
		$ended = isset( $data['exitCode'] ) ? sprintf( 'exit status %d', (int) $data['exitCode'] ) : 'no exit status';
		$time  = isset( $data['durationMs'] ) ? ', ' . Quantity::human_time( (int) $data['durationMs'] ) : '';
		$this->say( sprintf( '%s ended (%s%s).', ucfirst( $this->names[ $id ] ?? 'command' ), $ended, $time ) );
	}

	/**
	 * Prints one output line of a guest program, prefixed with the program's label.
	 *
	 * @param string $id     Execution id.
	 * @param string $stream `|` for stdout, `!` for stderr.
	 * @param string $line   Line without its line end.
	 */
	private function line( string $id, string $stream, string $line ): void {
		$this->say( sprintf( '%s %s %s', $this->names[ $id ] ?? 'guest', $stream, $line ) );
	}

	/**
	 * Prints one message line, prefixed with the label of the run.
	 *
	 * @param string $line Line without its line end.
	 */
	private function say( string $line ): void {
		$this->console->say( '' === $this->label ? $line : '[' . $this->label . '] ' . $line );
	}
}
