<?php
/**
 * Works through the plan of a fan-out.
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
 * One fan-out in progress: starts what may start, looks at each run that is alive, sleeps in
 * the extension while nothing happens. All runs end with this object's caller.
 */
final class FanoutRunner {

	/** How long one look waits for news, in milliseconds. */
	private const TICK_MS = 100;

	/** Changed files that are handed over at once. */
	private const FILES = 1000;

	/** What the plan wants to know of a row. */
	private const END = [ 'status', 'outcome', 'summary', 'error', 'run_id', 'artifact_id', 'artifacts', 'dependencies' ];

	/** How soon to ask a full host again, and how long to ask when no run of this fan-out is alive, in milliseconds. */
	private const RETRY_MS    = 500;
	private const PATIENCE_MS = 120000;

	/**
	 * Settled workers by id, in the order they were settled.
	 *
	 * @var array<string, array<string, mixed>>
	 */
	private array $rows = [];

	/**
	 * Workers at work.
	 *
	 * @var array<string, array{run: Run, input: array<string, mixed>, sources: array<string, string>, note: RunNote, since: int}>
	 */
	private array $alive = [];

	/** When a full host is asked again, and since when it is full with none of our runs alive; milliseconds. */
	private int $retry_at = 0;
	private ?int $full    = null;

	/**
	 * Wires one fan-out.
	 *
	 * @param RunService                          $runs      Starts runs.
	 * @param Fanout                              $plan      The plan.
	 * @param array<string, array<string, mixed>> $inputs    Valid input of each worker.
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
	 * Works through the plan.
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

	/** Starts as many as may start. */
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

	/** Whether to ask a full host again: while runs of ours are alive, and a while without. */
	private function waits(): bool {
		$now            = self::now();
		$this->full     = [] === $this->alive ? $this->full ?? $now : null;
		$this->retry_at = $now + self::RETRY_MS;
		return null === $this->full || $now - $this->full < self::PATIENCE_MS;
	}

	/** Takes what there is of each run; when there is nothing, waits a moment for the one that waited longest. */
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
		// To the end of the line: next time another one is waited for.
		$entry = $this->alive[ $first ];
		unset( $this->alive[ $first ] );
		$this->alive[ $first ] = $entry;
		$this->wait( (string) $first, self::TICK_MS );
	}

	/**
	 * Waits for the end of one run.
	 *
	 * @param string $id           Worker.
	 * @param int    $milliseconds At most so long.
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
	 * A worker is settled.
	 *
	 * @param string               $id    Worker.
	 * @param array<string, mixed> $row   What came of it.
	 * @param int|null             $since When it started; null when it did not.
	 */
	private function settle( string $id, array $row, ?int $since = null ): void {
		$row = $this->plan->settle( $id, array_intersect_key( $row, array_flip( self::END ) ) ) + $row;
		if ( null !== $since ) {
			$ended          = self::now();
			$row['timings'] = self::timings( $since, $ended );
		}
		$this->rows[ $id ] = $row;
		$this->hooks->settled( $id, $row );
	}

	/** Milliseconds since the epoch. */
	public static function now(): int {
		return (int) ( 1000 * microtime( true ) );
	}

	/**
	 * From when to when, and how long.
	 *
	 * @param int $since Milliseconds since the epoch.
	 * @param int $until The same.
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
