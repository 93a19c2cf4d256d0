<?php
/**
 * The plan of a fan-out.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use Closure;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * Who works, after whom, and how many at once. Judged as a whole before anything starts: a
 * plan that is wrong anywhere starts nothing. Pure.
 */
final class FanoutPlan {

	public const POLICIES = [
		'fail'                   => 'failed',
		'partial'                => 'partial',
		'repair'                 => 'repair_required',
		'caller-review-required' => 'caller_review_required',
	];

	/** Fields of a worker that are no fields of a task. */
	private const OWN = [ 'id', 'dependsOn', 'timeout_seconds', 'required' ];

	/**
	 * Collects it.
	 *
	 * @param array<string, FanoutWorker> $workers     By id, in the order given.
	 * @param int                         $concurrency How many at once.
	 * @param string                      $policy      What an unresolved conflict makes of the whole.
	 */
	private function __construct(
		public readonly array $workers,
		public readonly int $concurrency,
		public readonly string $policy
	) {}

	/**
	 * Reads a plan.
	 *
	 * @param array<string, mixed>          $input Input of the fan-out.
	 * @param int                           $most  Highest concurrency.
	 * @param Closure(array, string): array $task  Valid input of run-agent-task from the task fields and the id of a worker; throws a Failure.
	 * @throws Failure With the code that says what is wrong.
	 */
	public static function read( array $input, int $most, Closure $task ): self {
		$rows = $input['workers'] ?? [];
		if ( ! is_array( $rows ) ) {
			throw Failure::because( ErrorCode::InputInvalid, 'workers is a text; give a list of objects.' );
		}
		if ( [] === $rows ) {
			throw Failure::because( ErrorCode::FanoutWorkersMissing, 'No worker was given; give workers, a list of objects with id and goal.' );
		}
		$concurrency = $input['concurrency'] ?? 1;
		if ( ! is_int( $concurrency ) || $concurrency < 1 || $concurrency > $most ) {
			throw Failure::because( ErrorCode::FanoutConcurrencyInvalid, sprintf( 'concurrency must be a whole number from 1 to %d.', $most ) );
		}
		$policy = $input['aggregator']['policy'] ?? 'fail';
		if ( ! is_string( $policy ) || ! isset( self::POLICIES[ $policy ] ) ) {
			throw Failure::because( ErrorCode::InputInvalid, sprintf( 'aggregator.policy must be one of %s.', implode( ', ', array_keys( self::POLICIES ) ) ) );
		}
		$workers = [];
		foreach ( array_values( $rows ) as $index => $row ) {
			$worker = self::worker( $row, $index, $task );
			if ( isset( $workers[ $worker->id ] ) ) {
				throw Failure::because( ErrorCode::FanoutWorkerIdDuplicate, sprintf( 'Two workers have the id "%s".', $worker->id ) );
			}
			$workers[ $worker->id ] = $worker;
		}
		self::check_dependencies( $workers );
		return new self( $workers, $concurrency, $policy );
	}

	/**
	 * Workers that may start: not begun, and everything they depend on is completed.
	 *
	 * @param array<string, array<string, mixed>> $rows  Settled workers.
	 * @param array<string, mixed>                $begun Workers at work.
	 * @return list<FanoutWorker>
	 */
	public function ready( array $rows, array $begun ): array {
		$ready = [];
		foreach ( $this->workers as $worker ) {
			if ( ! isset( $rows[ $worker->id ] ) && ! isset( $begun[ $worker->id ] ) && [] === array_diff( $worker->depends_on, self::completed( $rows ) ) ) {
				$ready[] = $worker;
			}
		}
		return $ready;
	}

	/**
	 * Workers that can never start, with the dependencies that are settled and not completed.
	 *
	 * @param array<string, array<string, mixed>> $rows Settled workers.
	 * @return array<string, list<string>>
	 */
	public function blocked( array $rows ): array {
		$lost    = array_diff( array_keys( $rows ), self::completed( $rows ) );
		$blocked = [];
		foreach ( array_diff_key( $this->workers, $rows ) as $worker ) {
			$why = array_values( array_intersect( $worker->depends_on, $lost ) );
			if ( [] !== $why ) {
				$blocked[ $worker->id ] = $why;
			}
		}
		return $blocked;
	}

	/**
	 * Ids of settled workers that are completed.
	 *
	 * @param array<string, array<string, mixed>> $rows Settled workers.
	 * @return list<string>
	 */
	private static function completed( array $rows ): array {
		return array_map( 'strval', array_keys( array_filter( $rows, static fn( array $row ): bool => true === $row['success'] ) ) );
	}

	/**
	 * One worker.
	 *
	 * @param mixed   $row   As given.
	 * @param int     $index Position.
	 * @param Closure $task  Checks the task fields.
	 */
	private static function worker( mixed $row, int $index, Closure $task ): FanoutWorker {
		if ( ! is_array( $row ) || ( [] !== $row && array_is_list( $row ) ) ) {
			throw Failure::because( ErrorCode::FanoutWorkerInvalid, sprintf( 'Worker %d is no object with id and goal.', $index ) );
		}
		$id = $row['id'] ?? null;
		// A number as an id would become a number as a key.
		if ( ! is_string( $id ) || 1 !== preg_match( '/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/D', $id ) || ctype_digit( $id ) ) {
			throw Failure::because( ErrorCode::FanoutWorkerIdInvalid, sprintf( 'Worker %d needs an id of up to 64 letters, digits, dots, dashes and underscores that begins with a letter or digit and is no number.', $index ) );
		}
		if ( ! is_string( $row['goal'] ?? null ) || '' === trim( $row['goal'] ) ) {
			throw Failure::because( ErrorCode::FanoutWorkerGoalMissing, sprintf( 'Worker "%s" has no goal.', $id ) );
		}
		$depends = $row['dependsOn'] ?? [];
		if ( ! is_array( $depends ) || array_filter( $depends, 'is_string' ) !== $depends ) {
			throw Failure::because( ErrorCode::FanoutWorkerDependencyInvalid, sprintf( 'dependsOn of worker "%s" must be a list of worker ids.', $id ) );
		}
		$required = $row['required'] ?? true;
		$seconds  = $row['timeout_seconds'] ?? 0;
		if ( ! is_bool( $required ) || ! is_int( $seconds ) || $seconds < 0 ) {
			throw Failure::because( ErrorCode::FanoutWorkerInvalid, sprintf( 'Worker "%s": required is true or false, timeout_seconds a whole number.', $id ) );
		}
		try {
			$input = $task( array_diff_key( $row, array_flip( self::OWN ) ), $id );
		} catch ( Failure $failure ) {
			throw Failure::because( ErrorCode::FanoutWorkerInvalid, sprintf( 'Worker "%s": %s', $id, $failure->getMessage() ) );
		}
		if ( $seconds > 0 ) {
			$input['limits'] = [ 'wall_clock_ms' => $seconds * 1000 ] + (array) ( $input['limits'] ?? [] );
		}
		return new FanoutWorker( $id, $index, $input, array_values( array_unique( $depends ) ), $required );
	}

	/**
	 * Every dependency exists, and none leads back to where it came from.
	 *
	 * @param array<string, FanoutWorker> $workers Workers.
	 * @throws Failure `wp_codebox_fanout_worker_dependency_invalid`.
	 */
	private static function check_dependencies( array $workers ): void {
		foreach ( $workers as $worker ) {
			foreach ( $worker->depends_on as $other ) {
				if ( ! isset( $workers[ $other ] ) ) {
					throw Failure::because( ErrorCode::FanoutWorkerDependencyInvalid, sprintf( 'Worker "%s" depends on "%s", which does not exist.', $worker->id, $other ) );
				}
			}
		}
		$left = array_map( static fn( FanoutWorker $worker ): array => $worker->depends_on, $workers );
		do {
			$free = array_keys( array_filter( $left, static fn( array $depends ): bool => [] === $depends ) );
			$left = array_map( static fn( array $depends ): array => array_diff( $depends, $free ), array_diff_key( $left, array_flip( $free ) ) );
		} while ( [] !== $free );
		if ( [] !== $left ) {
			throw Failure::because( ErrorCode::FanoutWorkerDependencyInvalid, sprintf( 'These workers wait for each other: %s.', implode( ', ', array_keys( $left ) ) ) );
		}
	}
}
