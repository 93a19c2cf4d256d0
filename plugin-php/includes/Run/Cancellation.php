<?php
/**
 * Cancels several runs at once.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\Native\Run;

defined( 'ABSPATH' ) || exit;

/**
 * A cancellation is permanent: it cancels all active runs and every run that starts later. A signal handler may
 * request it.
 */
final class Cancellation {

	private bool $requested = false;

	/**
	 * Active runs by run id.
	 *
	 * @var array<string, Run>
	 */
	private array $runs = [];

	/** Requests cancellation of all runs. */
	public function request(): void {
		$this->requested = true;
		foreach ( $this->runs as $run ) {
			$run->cancel();
		}
	}

	/** Checks whether cancellation was requested. */
	public function requested(): bool {
		return $this->requested;
	}

	/**
	 * Adds a run to the runs that a request cancels; cancels it at once when the request came earlier.
	 *
	 * @param Run $run Handle of the run.
	 */
	public function cover( Run $run ): void {
		$this->runs[ $run->id() ] = $run;
		if ( $this->requested ) {
			$run->cancel();
		}
	}

	/**
	 * Removes a run that has ended.
	 *
	 * @param Run $run Handle of the run.
	 */
	public function release( Run $run ): void {
		unset( $this->runs[ $run->id() ] );
	}
}
