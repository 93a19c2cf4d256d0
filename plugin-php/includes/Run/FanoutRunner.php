<?php
/**
 * Runs the workers of a fan-out in parallel, each after the workers that it depends on.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Native\Exception;
use WPCodebox\Native\Fanout;
use WPCodebox\Native\Run;

defined( 'ABSPATH' ) || exit;

/**
 * Holds one fan-out in progress: starts ready workers, polls each active run, and sleeps in the extension
 * while no event arrives. All runs end when the caller of this object ends.
 */
final class FanoutRunner {

	/** Time that one poll waits for events, in milliseconds. */
	private const TICK_MS = 100;

	/** Number of changed files that one call to the plan takes; longer lists are passed in parts. */
	private const FILES = 1000;

	/** Fields of a result row from which the extension derives the row's status and the combined result. */
	private const END = [ 'status', 'run', 'summary', 'error', 'run_id', 'artifact_id', 'artifacts', 'dependencies', 'timings' ];

	/**
	 * When the host is at its run limit: interval between attempts to start a worker, and longest wait while no run of this
	 * fan-out is active; milliseconds.
	 */
	private const RETRY_MS    = 500;
	private const MAX_WAIT_MS = 120000;

	/**
	 * Final rows of workers by id, in the order in which they became final.
	 *
	 * @var array<string, array<string, mixed>>
	 */
	private array $rows = [];

	/**
	 * Active workers by id. `sources` is the host directory by mount target, `since` the start time in milliseconds.
	 *
	 * @var array<string, array{run: Run, input: array<string, mixed>, sources: array<string, string>, note: RunNote, since: int}>
	 */
	private array $alive = [];

	/**
	 * When the host is at its run limit: time of the next attempt to start a worker, and time since when this fan-out
	 * waits without an active run; milliseconds since the epoch.
	 */
	private int $retry_at = 0;
	private ?int $full    = null;

	/**
	 * Creates the supervisor of one fan-out.
	 *
	 * @param RunService                          $runs      Starts runs.
	 * @param Fanout                              $plan      Plan of the workers.
	 * @param array<string, array<string, mixed>> $inputs    Validated input of each worker.
	 * @param Authority                           $authority User or operator the call runs as.
	 * @param GroupHooks                          $hooks     Callbacks of the caller.
	 */
	public function __construct(
		private readonly RunService $runs,
		private readonly Fanout $plan,
		private readonly array $inputs,
		private readonly Authority $authority,
		private readonly GroupHooks $hooks
	) {}

	/**
	 * Runs all workers and returns when each has a final result row.
	 *
	 * @return array<string, array<string, mixed>> Rows in the order of the plan.
	 */
	public function run(): array {
		while ( count( $this->rows ) < count( $this->inputs ) ) {
			if ( $this->hooks->cancellation->requested() ) {
				foreach ( array_keys( array_diff_key( $this->inputs, $this->rows, $this->alive ) ) as $id ) {
					$this->settle( (string) $id, GroupRow::cancelled() );
				}
			}
			foreach ( $this->plan->blocked() as $id => $row ) {
				$this->settle( (string) $id, $row );
			}
			$this->start();
			$this->look();
		}
		return array_replace( $this->inputs, $this->rows );
	}

	/** Starts as many ready workers as the concurrency allows. */
	private function start(): void {
		foreach ( $this->plan->ready( array_map( 'strval', array_keys( $this->alive ) ) ) as $id ) {
			if ( count( $this->alive ) >= $this->plan->concurrency() || self::now() < $this->retry_at || $this->hooks->cancellation->requested() ) {
				return;
			}
			$since = self::now();
			try {
				[ $input, $staged ] = $this->hooks->staged( $this->inputs[ $id ] );

				$request = $this->runs->prepare( $input, $this->authority, $staged );
				$run     = $this->runs->launch( $request, $this->authority );
			} catch ( Failure | Exception $thrown ) {
				$failure = Failure::from( $thrown );
				if ( ErrorCode::Busy->value === $failure->error_code && $this->waits() ) {
					return;
				}
				$this->settle( $id, GroupRow::failed( $failure ), $since );
				continue;
			}
			$this->full         = null;
			$this->alive[ $id ] = [
				'run'     => $run,
				'input'   => $input,
				'sources' => array_column( $request->host['mounts'], 'source', 'target' ),
				'note'    => RunNote::of( $request ),
				'since'   => $since,
			];
			$this->hooks->started( $id, $run );
		}
	}

	/**
	 * Decides whether to try again after the host at its run limit refused a start: always while runs of this fan-out are
	 * active, otherwise for a limited time.
	 */
	private function waits(): bool {
		$now            = self::now();
		$this->full     = [] === $this->alive ? $this->full ?? $now : null;
		$this->retry_at = $now + self::RETRY_MS;
		return null === $this->full || $now - $this->full < self::MAX_WAIT_MS;
	}

	/** Polls each run; when none has ended, waits up to TICK_MS for events of one run. The runs take turns in this wait. */
	private function look(): void {
		$before = count( $this->rows );
		foreach ( array_keys( $this->alive ) as $id ) {
			$this->wait( (string) $id, 0 );
		}
		if ( count( $this->rows ) > $before ) {
			return;
		}
		$first = array_key_first( $this->alive );
		if ( null === $first ) {
			usleep( 1000 * min( self::TICK_MS, max( 0, $this->retry_at - self::now() ) ) );
			return;
		}
		// Moves the worker to the end, so the next call waits for a different worker.
		$entry = $this->alive[ $first ];
		unset( $this->alive[ $first ] );
		$this->alive[ $first ] = $entry;
		$this->wait( (string) $first, self::TICK_MS );
	}

	/**
	 * Waits a limited time for the end of one run, and records its result row.
	 *
	 * @param string $id           Id of the worker.
	 * @param int    $milliseconds Maximum wait in milliseconds.
	 */
	private function wait( string $id, int $milliseconds ): void {
		[ 'run' => $run, 'input' => $input, 'sources' => $sources, 'note' => $note, 'since' => $since ] = $this->alive[ $id ];
		try {
			$result = $this->runs->wait( $run, $note, $input, $this->hooks->listener( $id ), $milliseconds );
			if ( null === $result ) {
				return;
			}
			$row = GroupRow::ended( $this->runs->envelope( $input, $result, $note ) );
			foreach ( array_chunk( (array) $row['changed_files'], self::FILES ) as $files ) {
				$this->plan->changed( $id, $sources, $files );
			}
		} catch ( Exception $exception ) {
			$row = [ 'run_id' => $run->id() ] + GroupRow::failed( Failure::from( $exception ) );
		}
		unset( $this->alive[ $id ] );
		$this->hooks->cancellation->release( $run );
		$this->settle( $id, $row, $since );
	}

	/**
	 * Records the final row of a worker that ended or never started.
	 *
	 * @param string               $id    Id of the worker.
	 * @param array<string, mixed> $row   Row with its result.
	 * @param int|null             $since Start time in milliseconds since the epoch; null when
	 *   the worker did not start.
	 */
	private function settle( string $id, array $row, ?int $since = null ): void {
		$ended = self::now();
		if ( null !== $since ) {
			$row['timings'] = self::timings( $since, $ended );
		}
		$end = array_intersect_key( $row, array_flip( self::END ) ) + [ 'ended_at' => self::timings( $ended, $ended )['ended_at'] ];
		$row = $this->plan->settle( $id, $end ) + $row;

		$this->rows[ $id ] = $row;
		$this->hooks->settled( $id, $row );
	}

	/** Returns the current time in milliseconds since the epoch. */
	public static function now(): int {
		return (int) ( 1000 * microtime( true ) );
	}

	/**
	 * Formats start and end as UTC timestamps, and computes the duration.
	 *
	 * @param int $since Start in milliseconds since the epoch.
	 * @param int $until End in milliseconds since the epoch.
	 * @return array{started_at: string, ended_at: string, duration_ms: int}
	 */
	public static function timings( int $since, int $until ): array {
		$text = static fn( int $time ): string => sprintf( '%s.%03dZ', gmdate( 'Y-m-d\TH:i:s', intdiv( $time, 1000 ) ), $time % 1000 );
		return [
			'started_at'  => $text( $since ),
			'ended_at'    => $text( $until ),
			'duration_ms' => max( 0, $until - $since ),
		];
	}
}
