<?php
/**
 * Callbacks that the caller of a batch or fan-out supplies.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use Closure;
use WPCodebox\Native\Run;

defined( 'ABSPATH' ) || exit;

/**
 * WP-CLI commands pass them to a batch (tasks one after the other) or a fan-out (workers in parallel). Abilities pass none.
 */
final class GroupHooks {

	/**
	 * Creates the set of callbacks.
	 *
	 * @param Cancellation $cancellation Cancels all runs.
	 * @param Closure|null $on_start     Called with the name of a started task or worker and its run handle: `(string,
	 *   Run): void`.
	 * @param Closure|null $on_event     Called with name and lifecycle event: `(string, array): mixed`; returning
	 *   false cancels all runs.
	 * @param Closure|null $on_row       Called with name and final result row: `(string, array): void`.
	 * @param Closure|null $stage        Returns the input and the host files that the operator mounts into
	 *   the guest: `(array $input): array{array, list}`.
	 */
	public function __construct(
		public readonly Cancellation $cancellation = new Cancellation(),
		private readonly ?Closure $on_start = null,
		private readonly ?Closure $on_event = null,
		private readonly ?Closure $on_row = null,
		private readonly ?Closure $stage = null
	) {}

	/**
	 * Calls `on_start` with a started run, and lets a cancellation end the run.
	 *
	 * @param string $name Name of the task or worker.
	 * @param Run    $run  Run handle.
	 */
	public function started( string $name, Run $run ): void {
		$this->cancellation->cover( $run );
		if ( null !== $this->on_start ) {
			( $this->on_start )( $name, $run );
		}
	}

	/**
	 * Returns the callback for `Run::wait()`. It passes each event to `on_event`, and cancels all runs if that returns false.
	 *
	 * @param string $name Name of the task or worker.
	 * @return Closure(array): void
	 */
	public function listener( string $name ): Closure {
		return function ( array $event ) use ( $name ): void {
			if ( null !== $this->on_event && false === ( $this->on_event )( $name, $event ) ) {
				$this->cancellation->request();
			}
		};
	}

	/**
	 * Calls `on_row` with the final result row of a task or worker.
	 *
	 * @param string               $name Name of the task or worker.
	 * @param array<string, mixed> $row  Final result row.
	 */
	public function settled( string $name, array $row ): void {
		if ( null !== $this->on_row ) {
			( $this->on_row )( $name, $row );
		}
	}

	/**
	 * Returns the input of one run and the host files to mount into its guest.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @return array{array<string, mixed>, list<array{source: string, target: string}>}
	 */
	public function staged( array $input ): array {
		return null === $this->stage ? [ $input, [] ] : ( $this->stage )( $input );
	}
}
