<?php
/**
 * Several workers at once.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\Authority;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * Runs a plan of workers, each in a sandbox of its own, and says what they come to together.
 * Nothing of the fan-out itself is stored: each worker leaves an ordinary run and bundle.
 */
final class FanoutService {

	/** How many at once, unless the site says otherwise, and whatever it says. */
	private const CONCURRENCY = 8;
	private const MOST        = 64;

	/**
	 * Wires the service.
	 *
	 * @param ExtensionGate   $gate      Extension check.
	 * @param RunService      $runs      Runs one task.
	 * @param TaskInputs      $inputs    Input of one task.
	 * @param FanoutAggregate $aggregate Judgement.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly RunService $runs,
		private readonly TaskInputs $inputs,
		private readonly FanoutAggregate $aggregate
	) {}

	/**
	 * Runs the workers and waits for the end of the last.
	 *
	 * @param array<string, mixed> $input     `workers`, `concurrency`, `aggregator`, and fields that all share.
	 * @param Authority            $authority In whose name.
	 * @param GroupHooks           $hooks     What the caller wants to know.
	 * @return array<string, mixed> `wp-codebox/agent-fanout-result/v1`.
	 * @throws Failure When the plan is wrong; then nothing has started.
	 */
	public function run( array $input, Authority $authority, GroupHooks $hooks = new GroupHooks() ): array {
		$this->gate->check();
		$session = GroupRow::session_id( $input, 'fanout' );
		$plan    = FanoutPlan::read( $input, $this->most(), fn( array $task, string $id ): array => $this->inputs->merge( $input, $task, $session . ':' . $id ) );
		$runner  = new FanoutRunner( $this->runs, $plan, $authority, $hooks );
		$since   = FanoutRunner::now();
		$rows    = $runner->run();
		$ended   = FanoutRunner::now();

		$aggregate = $this->aggregate->judge( $plan, $rows, $runner->touched() );
		$totals    = GroupRow::totals( $rows );
		$success   = 'succeeded' === $aggregate['status'] && $totals['completed'] > 0 && 0 === $totals['cancelled'];
		$answer    = [
			'success'     => $success,
			'schema'      => 'wp-codebox/agent-fanout-result/v1',
			'exit_code'   => GroupRow::exit_code( $success, $totals ),
			'execution'   => 'bounded-concurrent-isolated-sandboxes',
			'session'     => GroupRow::session( $input, $success, $session ) + [ 'children' => array_values( array_map( fn( array $row ): array => $this->child( $session, $row ), $rows ) ) ],
			'wp'          => get_bloginfo( 'version' ),
			'concurrency' => $plan->concurrency,
		] + $totals + [
			'timings'   => FanoutRunner::timings( $since, $ended ),
			'aggregate' => $aggregate,
			'runs'      => array_values( $rows ),
			'failures'  => array_values( array_map( [ $this, 'failure' ], array_filter( $rows, static fn( array $row ): bool => ! $row['success'] ) ) ),
		];
		if ( ! empty( $input['orchestrator'] ) ) {
			$answer['orchestrator'] = $input['orchestrator'];
		}
		return $answer;
	}

	/** Highest concurrency of this site. */
	private function most(): int {
		/**
		 * Filters how many workers of a fan-out may run at once; from 1 to 64. The host's
		 * `wp_codebox.max_runs` bounds them in any case: workers beyond it wait.
		 *
		 * @param int $most 8.
		 */
		$most = apply_filters( 'wp_codebox_agent_fanout_max_concurrency', self::CONCURRENCY );
		return is_int( $most ) ? max( 1, min( self::MOST, $most ) ) : self::CONCURRENCY;
	}

	/**
	 * The session of a worker, as its parent's session lists it.
	 *
	 * @param string               $session Session of the fan-out.
	 * @param array<string, mixed> $row     Row of the worker.
	 * @return array<string, mixed>
	 */
	private function child( string $session, array $row ): array {
		$child = [
			'worker_id'  => $row['worker_id'],
			'session_id' => $session . ':' . $row['worker_id'],
			'status'     => $row['status'],
		];
		if ( isset( $row['artifacts'] ) ) {
			$child['artifacts'] = $row['artifacts'];
		}
		return $child;
	}

	/**
	 * Why a worker was not completed.
	 *
	 * @param array<string, mixed> $row Its row.
	 * @return array<string, string>
	 */
	private function failure( array $row ): array {
		return [
			'worker_id' => (string) $row['worker_id'],
			'status'    => (string) $row['status'],
			'code'      => (string) ( $row['error']['code'] ?? $row['outcome'] ?? $row['status'] ),
			'message'   => (string) ( $row['error']['message'] ?? $row['summary'] ?? '' ),
		];
	}
}
