<?php
/**
 * What the workers of a fan-out come to together.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

defined( 'ABSPATH' ) || exit;

/**
 * Judges rows by the plan. Nothing is merged: two workers that changed the same file, and a
 * required worker that is not completed, are conflicts of severity `error`, and any of those
 * makes the whole what the policy says. `judge()` is pure.
 */
final class FanoutAggregate {

	/** Conflicts about files that are listed; the rest are counted. */
	private const LISTED = 200;

	/**
	 * The judgement.
	 *
	 * @param FanoutPlan                           $plan    The plan.
	 * @param array<string, array<string, mixed>>  $rows    Every worker's row.
	 * @param array<string, array<string, string>> $touched Files that completed workers changed, by `touched()`.
	 * @return array<string, mixed> `wp-codebox/agent-fanout-aggregation-output/v1`.
	 */
	public function judge( FanoutPlan $plan, array $rows, array $touched ): array {
		$results  = [];
		$refs     = [];
		$failures = [];
		foreach ( $plan->workers as $id => $worker ) {
			$row       = $rows[ $id ];
			$own       = $this->refs( $row );
			$refs      = array_merge( $refs, $own );
			$results[] = array_filter(
				[
					'workerId'     => $id,
					'status'       => $row['status'],
					'success'      => $row['success'],
					'required'     => $worker->required,
					'resultRef'    => $row['run_id'] ?? null,
					'artifactRefs' => $own,
					'error'        => $row['error'] ?? null,
				],
				static fn( mixed $value ): bool => null !== $value
			);
			if ( ! $row['success'] ) {
				$failures = array_merge( $failures, $this->failure( $worker, $row, $own ) );
			}
		}
		[ $duplicates, $clashing, $more ] = $this->duplicates( $touched, $rows );

		$conflicts = array_merge( $failures, $duplicates );
		$status    = in_array( 'error', array_column( $conflicts, 'severity' ), true ) ? FanoutPlan::POLICIES[ $plan->policy ] : 'succeeded';
		$output    = [
			'schema'                => 'wp-codebox/agent-fanout-aggregation-output/v1',
			'status'                => $status,
			'policy'                => $plan->policy,
			'plan'                  => [ 'workers' => array_values( array_map( [ self::class, 'planned' ], $plan->workers ) ) ],
			'workerResultRefs'      => $results,
			'rawWorkerArtifactRefs' => $refs,
			'finalArtifactRefs'     => $this->final_refs( $status, $refs, $rows, $clashing ),
			'conflicts'             => $conflicts,
		];
		if ( $more > 0 ) {
			$output['metadata'] = [ 'conflicts_not_listed' => $more ];
		}
		return $output;
	}

	/**
	 * Which files of the host a change is about: two workers may call one file by two names,
	 * and two files by one.
	 *
	 * @param list<array<string, mixed>> $mounts  Mounts of the run.
	 * @param list<array<string, mixed>> $changed Changed files of its bundle.
	 * @return array<string, string> Identity to path.
	 */
	public static function touched( array $mounts, array $changed ): array {
		$sources = [];
		foreach ( $mounts as $mount ) {
			$real = realpath( (string) $mount['source'] );

			$sources[ (string) $mount['target'] ] = false === $real ? (string) $mount['source'] : $real;
		}
		$touched = [];
		foreach ( $changed as $entry ) {
			$target = (string) ( $entry['mountTarget'] ?? '' );
			foreach ( [ 'relativePath', 'renamedFrom' ] as $name ) {
				if ( ! empty( $entry[ $name ] ) ) {
					$touched[ ( $sources[ $target ] ?? $target ) . '/' . $entry[ $name ] ] = (string) $entry['path'];
				}
			}
		}
		return $touched;
	}

	/**
	 * A worker as planned.
	 *
	 * @param FanoutWorker $worker Worker.
	 * @return array<string, mixed>
	 */
	private static function planned( FanoutWorker $worker ): array {
		return [
			'id'                => $worker->id,
			'dependsOn'         => $worker->depends_on,
			'required'          => $worker->required,
			'artifactNamespace' => $worker->id,
		];
	}

	/**
	 * The bundle of a worker.
	 *
	 * @param array<string, mixed> $row Its row.
	 * @return list<array<string, string>>
	 */
	private function refs( array $row ): array {
		if ( ! isset( $row['artifact_id'] ) ) {
			return [];
		}
		return [
			[
				'kind'     => 'codebox-artifact-bundle',
				'id'       => (string) $row['artifact_id'],
				'path'     => (string) $row['artifacts']['path'],
				'workerId' => (string) $row['worker_id'],
				'runId'    => (string) $row['run_id'],
			],
		];
	}

	/**
	 * What a worker that is not completed means.
	 *
	 * @param FanoutWorker                $worker Worker.
	 * @param array<string, mixed>        $row    Its row.
	 * @param list<array<string, string>> $refs   Its bundle.
	 * @return list<array<string, mixed>>
	 */
	private function failure( FanoutWorker $worker, array $row, array $refs ): array {
		$conflict = [
			'type'         => 'partial' === ( $row['outcome'] ?? '' ) ? 'partial-output' : 'failed-worker',
			'severity'     => $worker->required ? 'error' : 'warning',
			'message'      => sprintf( 'Worker "%s" was not completed: %s.', $worker->id, $row['outcome'] ?? $row['error']['code'] ?? $row['status'] ),
			'workerIds'    => [ $worker->id ],
			'artifactRefs' => $refs,
		];
		if ( empty( $row['dependencies'] ) ) {
			return [ $conflict ];
		}
		return array_map(
			static fn( string $dependency ): array => [
				'type'         => 'failed-worker-dependency',
				'message'      => sprintf( 'Worker "%s" was skipped: "%s" was not completed.', $worker->id, $dependency ),
				'dependencyId' => $dependency,
			] + $conflict,
			$row['dependencies']
		);
	}

	/**
	 * Files that more than one completed worker changed.
	 *
	 * @param array<string, array<string, string>> $touched Files by worker.
	 * @param array<string, array<string, mixed>>  $rows    Rows.
	 * @return array{list<array<string, mixed>>, list<string>, int} Conflicts, workers in them, conflicts not listed.
	 */
	private function duplicates( array $touched, array $rows ): array {
		$workers = [];
		$paths   = [];
		foreach ( array_keys( array_intersect_key( $rows, $touched ) ) as $id ) {
			foreach ( $touched[ $id ] as $file => $path ) {
				$workers[ $file ][] = (string) $id;
				$paths[ $file ]     = $path;
			}
		}
		$clashes   = array_filter( $workers, static fn( array $ids ): bool => count( $ids ) > 1 );
		$conflicts = [];
		foreach ( array_slice( $clashes, 0, self::LISTED, true ) as $file => $ids ) {
			$conflicts[] = [
				'type'         => 'duplicate-final-artifact-path',
				'severity'     => 'error',
				'message'      => sprintf( 'Workers %s changed the same file.', implode( ', ', $ids ) ),
				'workerIds'    => $ids,
				'path'         => $paths[ $file ],
				'artifactRefs' => array_merge( ...array_map( fn( string $id ): array => $this->refs( $rows[ $id ] ), $ids ) ),
			];
		}
		return [ $conflicts, array_values( array_unique( array_merge( [], ...array_values( $clashes ) ) ) ), count( $clashes ) - count( $conflicts ) ];
	}

	/**
	 * Bundles that may be used: all completed ones of a good fan-out; of a partial one those
	 * that clash with no other; else none.
	 *
	 * @param string                              $status   Status of the whole.
	 * @param list<array<string, string>>         $refs     Every bundle.
	 * @param array<string, array<string, mixed>> $rows     Rows.
	 * @param list<string>                        $clashing Workers that changed what another changed.
	 * @return list<array<string, string>>
	 */
	private function final_refs( string $status, array $refs, array $rows, array $clashing ): array {
		if ( ! in_array( $status, [ 'succeeded', 'partial' ], true ) ) {
			return [];
		}
		return array_values( array_filter( $refs, static fn( array $ref ): bool => $rows[ $ref['workerId'] ]['success'] && ! in_array( $ref['workerId'], $clashing, true ) ) );
	}
}
