<?php
/**
 * Several tasks, one after the other.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use Closure;
use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Native\Exception;
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

	/**
	 * Wires the service.
	 *
	 * @param ExtensionGate $gate   Extension check.
	 * @param RunService    $runs   Runs one task.
	 * @param TaskInputs    $inputs Input of one task.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly RunService $runs,
		private readonly TaskInputs $inputs
	) {}

	/**
	 * Runs the tasks and waits for the end of the last.
	 *
	 * @param array<string, mixed> $input     `tasks`, `stop_on_failure`, and fields that all share.
	 * @param Authority            $authority In whose name.
	 * @param GroupHooks           $hooks     What the caller wants to know.
	 * @return array<string, mixed> `wp-codebox/agent-task-batch/v1`.
	 * @throws Failure `wp_codebox_tasks_missing`.
	 */
	public function run( array $input, Authority $authority, GroupHooks $hooks = new GroupHooks() ): array {
		$this->gate->check();
		$tasks = $input['tasks'] ?? [];
		if ( ! is_array( $tasks ) ) {
			throw Failure::because( ErrorCode::InputInvalid, 'tasks is a text; give a list, with one task too.' );
		}
		if ( [] === $tasks ) {
			throw Failure::because( ErrorCode::TasksMissing, 'No task was given; give tasks, a list of goals or of objects with the fields of run-agent-task.' );
		}
		$session = GroupRow::session_id( $input, 'batch' );
		$rows    = [];
		$stopped = false;
		foreach ( array_values( $tasks ) as $index => $task ) {
			$row = match ( true ) {
				$hooks->cancellation->requested() => GroupRow::cancelled(),
				$stopped => GroupRow::skipped( 'batch-stopped', 'A task before it was not good, and the batch stops then.' ),
				default => $this->task( $input, $task, $session . ':' . $index, (string) $index, $authority, $hooks ),
			};
			$row     = [
				'index' => $index,
				'task'  => $this->goal( $task ),
			] + $row;
			$rows[]  = $row;
			$stopped = $stopped || ( ! empty( $input['stop_on_failure'] ) && ! $row['success'] );
			$hooks->settled( (string) $index, $row );
		}
		$totals  = GroupRow::totals( $rows );
		$success = $totals['completed'] === $totals['total'];
		return [
			'success'   => $success,
			'schema'    => 'wp-codebox/agent-task-batch/v1',
			'exit_code' => GroupRow::exit_code( $success, $totals ),
			'execution' => 'sequential-isolated-sandboxes',
			'session'   => GroupRow::session( $input, $success, $session ),
			'wp'        => get_bloginfo( 'version' ),
			'tasks'     => array_column( $rows, 'task' ),
		] + $totals + [ 'runs' => $rows ];
	}

	/**
	 * Runs one task to its end.
	 *
	 * @param array<string, mixed> $shared    Fields that all share.
	 * @param mixed                $task      The task as given.
	 * @param string               $session   Id of its session.
	 * @param string               $name      Its name for the hooks.
	 * @param Authority            $authority In whose name.
	 * @param GroupHooks           $hooks     What the caller wants to know.
	 * @return array<string, mixed>
	 */
	private function task( array $shared, mixed $task, string $session, string $name, Authority $authority, GroupHooks $hooks ): array {
		$run = null;
		try {
			[ $input, $staged ] = $hooks->staged( $this->inputs->merge( $shared, $task, $session ) );

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

	/**
	 * The goal of a task, as far as it has one.
	 *
	 * @param mixed $task The task as given.
	 */
	private function goal( mixed $task ): string {
		$goal = is_array( $task ) ? ( $task['goal'] ?? '' ) : $task;
		return is_string( $goal ) ? $goal : '';
	}
}
