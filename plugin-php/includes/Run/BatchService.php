<?php
/**
 * Several tasks, one after the other.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use Closure;
use WPCodebox\Abilities\SchemaStore;
use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Host\Site;
use WPCodebox\Native\Batch;
use WPCodebox\Native\Exception;
use WPCodebox\Native\GroupSlot;
use WPCodebox\Native\Run;

defined( 'ABSPATH' ) || exit;

/**
 * A loop, not a queue: each task has a sandbox of its own, all of them end with the caller.
 *
 * A task is judged when its turn comes, so that one that is wrong is a failed row and the
 * others run. Every task that was submitted has a row.
 */
final class BatchService {

	/** How long a task waits for a place on a host that is full. */
	private const PATIENCE_S = 120;

	/** What the batch wants to know of a row. */
	private const END = [ 'status', 'outcome', 'error' ];

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param ExtensionGate $gate    Check that the PHP extension is loaded and its version fits.
	 * @param RunService    $runs    Runs one task.
	 * @param SchemaStore   $schemas Loader of the JSON schemas.
	 * @param Site          $site    Site the plugin runs on.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly RunService $runs,
		private readonly SchemaStore $schemas,
		private readonly Site $site
	) {}

	/**
	 * Runs the tasks and waits for the end of the last.
	 *
	 * @param array<string, mixed> $input     `tasks`, `stop_on_failure`, and fields that all share.
	 * @param Authority            $authority User or operator the call runs as.
	 * @param GroupHooks           $hooks     Callbacks of the caller.
	 * @return array<string, mixed> `wp-codebox/agent-task-batch/v1`.
	 * @throws Failure `wp_codebox_tasks_missing`, `wp_codebox_busy`.
	 */
	public function run( array $input, Authority $authority, GroupHooks $hooks = new GroupHooks() ): array {
		$this->gate->check();
		try {
			$batch = Batch::read( $input, 'batch-' . bin2hex( random_bytes( 8 ) ) );
			// Freed when this method ends: until then the group holds a PHP worker.
			$slot = Authority::User === $authority ? GroupSlot::take( $this->site->id(), get_current_user_id() ) : null;
		} catch ( Exception $refused ) {
			throw Failure::from( $refused );
		}
		$rows = [];
		foreach ( range( 0, $batch->size() - 1 ) as $index ) {
			$row = $hooks->cancellation->requested()
				? GroupRow::cancelled()
				: $batch->stopped() ?? $this->task( $batch, $index, $authority, $hooks );

			$rows[ $index ] = $batch->settle( $index, array_intersect_key( $row, array_flip( self::END ) ) ) + $row;
			$hooks->settled( (string) $index, $rows[ $index ] );
		}
		return [
			'wp'   => get_bloginfo( 'version' ),
			'runs' => $rows,
		] + $batch->answer();
	}

	/**
	 * Runs one task to its end.
	 *
	 * @param Batch      $batch     The batch.
	 * @param int        $index     Which.
	 * @param Authority  $authority User or operator the call runs as.
	 * @param GroupHooks $hooks     Callbacks of the caller.
	 * @return array<string, mixed>
	 */
	private function task( Batch $batch, int $index, Authority $authority, GroupHooks $hooks ): array {
		$name = (string) $index;
		$run  = null;
		try {
			[ $input, $staged ] = $hooks->staged( $this->schemas->valid( 'run-agent-task-input', $batch->task( $index ), 'task' ) );

			$note = null;
			$run  = $this->start(
				function () use ( $input, $authority, $staged, &$note ): Run {
					$request = $this->runs->prepare( $input, $authority, $staged );
					$note    = RunNote::of( $request );
					return $this->runs->launch( $request, $authority );
				},
				$hooks
			);
			if ( null === $run || null === $note ) {
				return GroupRow::cancelled();
			}
			$hooks->started( $name, $run );
			$envelope = $this->runs->envelope( $input, (array) $this->runs->wait( $run, $note, $input, $hooks->listener( $name ) ), $note );
			return [ 'task_input' => $envelope['task_input'] ] + GroupRow::ended( $envelope );
		} catch ( Failure | Exception $failure ) {
			return ( null === $run ? [] : [ 'run_id' => $run->id() ] ) + GroupRow::failed( Failure::from( $failure ) );
		} finally {
			if ( null !== $run ) {
				$hooks->cancellation->release( $run );
			}
		}
	}

	/**
	 * Starts a run; on a host that is full it waits for a place, a while.
	 *
	 * @param Closure(): Run $start Starts it.
	 * @param GroupHooks     $hooks Whether to go on.
	 */
	private function start( Closure $start, GroupHooks $hooks ): ?Run {
		$until = hrtime( true ) + self::PATIENCE_S * 1000000000;
		while ( ! $hooks->cancellation->requested() ) {
			try {
				return $start();
			} catch ( Failure | Exception $refused ) {
				if ( ErrorCode::Busy->value !== Failure::from( $refused )->error_code || hrtime( true ) > $until ) {
					throw $refused;
				}
			}
			usleep( 500000 );
		}
		return null;
	}
}
