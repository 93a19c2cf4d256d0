<?php
/**
 * A run as it happens.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Native\Run;

defined( 'ABSPATH' ) || exit;

/**
 * Prints what the guest prints, line by line, with who said it, and what the run is
 * doing. Ctrl-C cancels the run and keeps what the agent has changed so far.
 */
final class RunStream {

	/**
	 * Who an execution is: `agent`, `check 1`, or a command.
	 *
	 * @var array<string, string>
	 */
	private array $names = [];

	/**
	 * Begun lines by execution and stream.
	 *
	 * @var array<string, string>
	 */
	private array $begun = [];

	private int $checks = 0;

	/**
	 * Wires the stream.
	 *
	 * @param Console $console Talk.
	 * @param string  $label   Which of several runs this is; begins each line.
	 * @param string  $form    `raw`: lines of an agent's protocol as it printed them, not as steps.
	 */
	public function __construct(
		private readonly Console $console,
		private readonly string $label = '',
		private readonly string $form = 'steps'
	) {}

	/**
	 * Called once the run exists.
	 *
	 * @param Run $run The handle.
	 */
	public function started( Run $run ): void {
		$this->say( sprintf( 'Run %s started; the sandbox is being prepared.', $run->id() ) );
		Interrupt::on(
			function () use ( $run ): void {
				$this->say( 'Cancelling; what was changed so far is kept.' );
				$run->cancel();
			}
		);
	}

	/**
	 * Called for each lifecycle event.
	 *
	 * @param array<string, mixed> $event The event.
	 */
	public function event( array $event ): bool {
		$data = (array) ( $event['data'] ?? [] );
		$id   = (string) ( $event['executionId'] ?? '' );
		switch ( (string) ( $event['type'] ?? '' ) ) {
			case 'runtime.mounted':
				$this->say( sprintf( 'Mounted %s (%s, %s).', (string) ( $data['target'] ?? '' ), (string) ( $data['mode'] ?? '' ), (string) ( $data['view'] ?? '' ) ) );
				break;
			case 'runtime.observed':
				if ( isset( $data['level'] ) ) {
					$network = $data['network'] ?? 'deny';
					$this->say( sprintf( 'The sandbox is up: isolation %s, network %s.', (string) $data['level'], is_string( $network ) ? $network : 'by rule' ) );
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
	 * An execution starts.
	 *
	 * @param string               $id   Execution.
	 * @param array<string, mixed> $data Detail.
	 */
	private function begin( string $id, array $data ): void {
		$phase = (string) ( $data['phase'] ?? '' );
		$name  = (string) ( $data['command'] ?? 'command' );
		if ( 'check' === $phase ) {
			$name = 'check ' . ( ++$this->checks );
		} elseif ( 'agent' === $phase || 'command-agent-run' === $name ) {
			$name = 'agent';
		}
		$this->names[ $id ] = $name;
		$this->say( 'check' === $phase ? sprintf( '%s runs in a fresh sandbox.', ucfirst( $name ) ) : sprintf( '%s starts.', ucfirst( $name ) ) );
	}

	/**
	 * An execution prints something.
	 *
	 * @param string               $id   Execution.
	 * @param array<string, mixed> $data Detail.
	 */
	private function output( string $id, array $data ): void {
		$stream = 'stderr' === ( $data['stream'] ?? '' ) ? '!' : '|';
		$text   = (string) ( $data['text'] ?? "[bytes that are no text]\n" );
		if ( 'raw' !== $this->form ) {
			$text = (string) ( $data['shown'] ?? $text );
		}
		$key    = $id . $stream;
		$lines  = explode( "\n", ( $this->begun[ $key ] ?? '' ) . $text );
		$rest   = (string) array_pop( $lines );
		// A guest that never ends its line must not fill this process's memory.
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
	 * An execution ends.
	 *
	 * @param string               $id   Execution.
	 * @param array<string, mixed> $data Detail.
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
	 * One line of output.
	 *
	 * @param string $id     Execution.
	 * @param string $stream `|` for stdout, `!` for stderr.
	 * @param string $line   The line.
	 */
	private function line( string $id, string $stream, string $line ): void {
		$this->say( sprintf( '%s %s %s', $this->names[ $id ] ?? 'guest', $stream, $line ) );
	}

	/**
	 * One line of talk.
	 *
	 * @param string $line The line.
	 */
	private function say( string $line ): void {
		$this->console->say( '' === $this->label ? $line : '[' . $this->label . '] ' . $line );
	}
}
