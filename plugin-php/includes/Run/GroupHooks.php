<?php
/**
 * Callbacks of a caller that runs several tasks.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use Closure;
use WPCodebox\Native\Run;

defined( 'ABSPATH' ) || exit;

/**
 * Passed through a batch or a fan-out. An ability passes none of them.
 */
final class GroupHooks {

	/**
	 * Creates the callbacks.
	 *
	 * @param Cancellation $cancellation Cancels all runs.
	 * @param Closure|null $on_start     Gets the name of the task or worker and its run handle: `(string,
	 *   Run): void`.
	 * @param Closure|null $on_event     Gets name and lifecycle event: `(string, array): mixed`; returning
	 *   false cancels all runs.
	 * @param Closure|null $on_row       Gets each final row: `(string, array): void`.
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
	 * Reports that a run exists.
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
	 * Returns the callback that `Run::wait()` calls for each event. Cancellation applies to the run itself.
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
	 * Reports the final row of a task or worker.
	 *
	 * @param string               $name Name of the task or worker.
	 * @param array<string, mixed> $row  Row to read.
	 */
	public function settled( string $name, array $row ): void {
		if ( null !== $this->on_row ) {
			( $this->on_row )( $name, $row );
		}
	}

	/**
	 * Returns the input of one run and the host files for its guest.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @return array{array<string, mixed>, list<array{source: string, target: string}>}
	 */
	public function staged( array $input ): array {
		return null === $this->stage ? [ $input, [] ] : ( $this->stage )( $input );
	}
}
