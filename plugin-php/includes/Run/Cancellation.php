<?php
/**
 * Stops several runs at once.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\Native\Run;

defined( 'ABSPATH' ) || exit;

/**
 * Once requested it stays so: runs that are alive are cancelled, and none that starts later
 * goes on. May be called from a signal handler.
 */
final class Cancellation {

	private bool $requested = false;

	/**
	 * Runs that are alive.
	 *
	 * @var array<string, Run>
	 */
	private array $runs = [];

	/** Stops everything. */
	public function request(): void {
		$this->requested = true;
		foreach ( $this->runs as $run ) {
			$run->cancel();
		}
	}

	/** Whether everything is to stop. */
	public function requested(): bool {
		return $this->requested;
	}

	/**
	 * From now on a request stops this run too; at once when it came already.
	 *
	 * @param Run $run Handle or record of the run.
	 */
	public function cover( Run $run ): void {
		$this->runs[ $run->id() ] = $run;
		if ( $this->requested ) {
			$run->cancel();
		}
	}

	/**
	 * The run has ended.
	 *
	 * @param Run $run Handle or record of the run.
	 */
	public function release( Run $run ): void {
		unset( $this->runs[ $run->id() ] );
	}
}
