<?php
/**
 * Runs several tasks one after the other.
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
 * The service is a loop without a queue. Each task gets its own sandbox; when the PHP process of the caller ends,
 * the running task ends too and the later ones do not start.
 *
 * A task is validated when its turn comes, so an invalid task becomes a failed row and the others run. Every
 * submitted task has a result row.
 */
final class BatchService {

	/** Maximum wait of a task for a free run slot when the host is at its run limit, in seconds. */
	private const MAX_WAIT_S = 120;

	/** Fields of a result row from which the extension derives the row's status. */
	private const END = [ 'status', 'run', 'error', 'artifacts' ];

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
	 * Runs the tasks and waits until the last one ends.
	 *
	 * @param array<string, mixed> $input     Ability input: `tasks`, `stop_on_failure`, and fields that all
	 *   tasks share.
	 * @param Authority            $authority User or operator the call runs as.
	 * @param GroupHooks           $hooks     Callbacks of the caller.
	 * @return array<string, mixed> `wp-codebox/agent-task-batch/v1`.
	 * @throws Failure `wp_codebox_tasks_missing`, `wp_codebox_busy`.
	 */
	public function run( array $input, Authority $authority, GroupHooks $hooks = new GroupHooks() ): array {
		$this->gate->check();
		try {
			$batch = Batch::read( $input, 'batch-' . bin2hex( random_bytes( 8 ) ) );
			// Limits the open batches and fan-outs of a user, as each occupies a PHP worker. The slot is freed on return.
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
	 * @param Batch      $batch     State of the batch.
	 * @param int        $index     Index of the task.
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
			return GroupRow::ended( $envelope );
		} catch ( Failure | Exception $failure ) {
			return ( null === $run ? [] : [ 'run_id' => $run->id() ] ) + GroupRow::failed( Failure::from( $failure ) );
		} finally {
			if ( null !== $run ) {
				$hooks->cancellation->release( $run );
			}
		}
	}

	/**
	 * Starts a run; when the host is at its run limit, waits a limited time for a free slot. Null after a cancellation.
	 *
	 * @param Closure(): Run $start Starts the run.
	 * @param GroupHooks     $hooks Callbacks of the caller; a cancellation ends the wait.
	 */
	private function start( Closure $start, GroupHooks $hooks ): ?Run {
		$until = hrtime( true ) + self::MAX_WAIT_S * 1000000000;
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
