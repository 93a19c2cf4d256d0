<?php
/**
 * The plan of a fan-out and the judgement of its rows: no extension, no WordPress state.
 */

declare(strict_types=1);

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Run\FanoutAggregate;
use WPCodebox\Run\FanoutPlan;
use WPCodebox\Run\GroupRow;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$plan = static fn( array $input, int $most = 8 ): FanoutPlan => FanoutPlan::read( $input, $most, static fn( array $task ): array => isset( $task['bad'] ) ? throw Failure::because( ErrorCode::InputInvalid, 'bad is not good.' ) : $task );
	$why  = static function ( array $input, int $most = 8 ) use ( $plan ): string {
		try {
			$plan( $input, $most );
		} catch ( Failure $failure ) {
			return $failure->error_code;
		}
		return 'accepted';
	};
	$worker = static fn( string $id, string ...$depends ): array => [
		'id'        => $id,
		'goal'      => "Do $id",
		'dependsOn' => $depends,
	];
	$done   = static fn( bool $good, array $more = [] ): array => $more + [
		'success'   => $good,
		'status'    => $good ? 'completed' : 'failed',
		'outcome'   => $good ? 'succeeded' : 'failed',
		'exit_code' => $good ? 0 : 1,
	];
	$bundle = static fn( string $id ): array => [
		'worker_id'   => $id,
		'run_id'      => 'run_' . md5( $id ),
		'artifact_id' => 'artifact-' . $id,
		'artifacts'   => [ 'path' => "/bundles/$id" ],
	];

	$t->test(
		'what a plan must be',
		static function () use ( $t, $why, $worker ): void {
			foreach ( [
				'accepted'                                     => [ $worker( 'a' ), $worker( 'b.2_c-d', 'a' ), [ 'id' => '1a', 'goal' => 'x', 'timeout_seconds' => 5, 'required' => false ] ],
				'wp_codebox_fanout_workers_missing'            => [],
				'wp_codebox_fanout_worker_id_duplicate'        => [ $worker( 'a' ), $worker( 'a' ) ],
				'wp_codebox_fanout_worker_goal_missing'        => [ [ 'id' => 'a', 'goal' => " \n" ] ],
				'wp_codebox_fanout_worker_dependency_invalid'  => [ $worker( 'a', 'b' ), $worker( 'b', 'c' ), $worker( 'c', 'a' ), $worker( 'd' ) ],
			] as $expected => $workers ) {
				$t->same( $expected, $why( [ 'workers' => $workers ] ), (string) json_encode( $workers ) );
			}
			foreach ( [ $worker( 'a', 'nobody' ), $worker( 'a', 'a' ), [ 'dependsOn' => 'a' ] + $worker( 'a' ), [ 'dependsOn' => [ 1 ] ] + $worker( 'a' ) ] as $row ) {
				$t->same( 'wp_codebox_fanout_worker_dependency_invalid', $why( [ 'workers' => [ $row ] ] ), (string) json_encode( $row ) );
			}
			foreach ( [ 'text', 7, null, [ 'a', 'b' ], [ 'bad' => 1 ] + $worker( 'a' ), [ 'required' => 'yes' ] + $worker( 'a' ), [ 'timeout_seconds' => -1 ] + $worker( 'a' ), [ 'timeout_seconds' => '5' ] + $worker( 'a' ) ] as $row ) {
				$t->same( 'wp_codebox_fanout_worker_invalid', $why( [ 'workers' => [ $row ] ] ), (string) json_encode( $row ) );
			}
			foreach ( [ '', '-a', '.', '../a', 'a/b', 'a b', "a\n", 'ü', str_repeat( 'a', 65 ), '12', 12, null, [] ] as $id ) {
				$t->same( 'wp_codebox_fanout_worker_id_invalid', $why( [ 'workers' => [ [ 'id' => $id, 'goal' => 'x' ] ] ] ), (string) json_encode( $id ) );
			}
			foreach ( [ 0, -1, 9, '2', 1.5, null ] as $concurrency ) {
				$expected = null === $concurrency ? 'accepted' : 'wp_codebox_fanout_concurrency_invalid';
				$t->same( $expected, $why( [ 'workers' => [ $worker( 'a' ) ], 'concurrency' => $concurrency ] ), (string) json_encode( $concurrency ) );
			}
			$t->same( [ 'accepted', 'wp_codebox_fanout_concurrency_invalid' ], [ $why( [ 'workers' => [ $worker( 'a' ) ], 'concurrency' => 2 ], 2 ), $why( [ 'workers' => [ $worker( 'a' ) ], 'concurrency' => 3 ], 2 ) ] );
			$t->same( 'wp_codebox_input_invalid', $why( [ 'workers' => [ $worker( 'a' ) ], 'aggregator' => [ 'policy' => 'ignore' ] ] ) );
			$t->same( 'wp_codebox_input_invalid', $why( [ 'workers' => 'a b' ] ) );
		}
	);
	$t->test(
		'a long chain of dependencies is no cycle',
		static function () use ( $t, $plan, $worker ): void {
			$workers = [];
			foreach ( range( 199, 0 ) as $number ) {
				$workers[] = $worker( "w$number", ...( $number > 0 ? [ 'w' . ( $number - 1 ) ] : [] ) );
			}
			$t->same( [ 'w0' ], array_column( $plan( [ 'workers' => $workers ] )->ready( [], [] ), 'id' ) );
		}
	);
	$t->test(
		'a timeout of a worker is the wall clock of its run',
		static function () use ( $t, $plan, $worker ): void {
			$workers = $plan( [ 'workers' => [ [ 'timeout_seconds' => 5, 'limits' => [ 'processes' => 9, 'wall_clock_ms' => 1 ] ] + $worker( 'a' ), $worker( 'b' ) ] ] )->workers;
			$t->same( [ [ 'wall_clock_ms' => 5000, 'processes' => 9 ], false, true ], [ $workers['a']->input['limits'], isset( $workers['b']->input['limits'] ), $workers['b']->required ] );
		}
	);
	$t->test(
		'who may start, and who never will',
		static function () use ( $t, $plan, $worker, $done ): void {
			$p   = $plan( [ 'workers' => [ $worker( 'a' ), $worker( 'b' ), $worker( 'c', 'a', 'b' ), $worker( 'd', 'c' ), $worker( 'e' ) ] ] );
			$ids = static fn( array $rows, array $begun ): array => array_column( $p->ready( $rows, $begun ), 'id' );
			$t->same( [ 'a', 'b', 'e' ], $ids( [], [] ) );
			$t->same( [ 'e' ], $ids( [ 'a' => $done( true ) ], [ 'b' => 1 ] ) );
			$t->same( [ 'c', 'e' ], $ids( [ 'a' => $done( true ), 'b' => $done( true ) ], [] ) );
			$t->same( [ 'e' ], $ids( [ 'a' => $done( true ), 'b' => $done( false ) ], [] ) );
			$t->same( [ 'c' => [ 'b' ] ], $p->blocked( [ 'a' => $done( true ), 'b' => $done( false ) ] ) );
			$t->same( [ 'd' => [ 'c' ] ], $p->blocked( [ 'b' => $done( false ), 'c' => $done( false ) ] ) );
			$t->same( [], $p->blocked( [ 'a' => $done( true ) ] ) );
		}
	);
	$t->test(
		'the whole is good only when every required worker is, and no two changed one file',
		static function () use ( $t, $plan, $worker, $done, $bundle ): void {
			$judge = static function ( string $policy, array $rows, array $touched, array $optional = [] ) use ( $plan, $worker ): array {
				$workers = array_map( static fn( string $id ): array => [ 'required' => ! in_array( $id, $optional, true ) ] + $worker( $id ), array_keys( $rows ) );
				return ( new FanoutAggregate() )->judge( $plan( [ 'workers' => $workers, 'aggregator' => [ 'policy' => $policy ] ] ), $rows, $touched );
			};
			$good  = [
				'a' => $done( true, $bundle( 'a' ) ),
				'b' => $done( true, $bundle( 'b' ) ),
			];
			$apart = [
				'a' => [ '/src/one' => '/w/one' ],
				'b' => [ '/src/two' => '/w/two' ],
			];
			$same  = [ 'b' => [ '/src/one' => '/w/one' ] ] + $apart;
			$all   = $judge( 'fail', $good, $apart );
			$t->same( [ 'succeeded', [ 'a', 'b' ], [] ], [ $all['status'], array_column( $all['finalArtifactRefs'], 'workerId' ), $all['conflicts'] ] );
			foreach ( FanoutPlan::POLICIES as $policy => $status ) {
				$clash = $judge( $policy, $good + [ 'c' => $done( true, $bundle( 'c' ) ) ], $same + [ 'c' => [ '/src/three' => '/w/three' ] ] );
				$t->same( [ $status, 'partial' === $policy ? [ 'c' ] : [] ], [ $clash['status'], array_column( $clash['finalArtifactRefs'], 'workerId' ) ], $policy );
				$t->same( [ [ 'duplicate-final-artifact-path', 'error', [ 'a', 'b' ], '/w/one' ] ], array_map( static fn( array $one ): array => [ $one['type'], $one['severity'], $one['workerIds'], $one['path'] ], $clash['conflicts'] ) );
				$lost = $judge( $policy, [ 'b' => $done( false, $bundle( 'b' ) ) ] + $good, [ 'a' => $apart['a'] ] );
				$t->same( [ $status, 'failed-worker', 'error' ], [ $lost['status'], $lost['conflicts'][0]['type'], $lost['conflicts'][0]['severity'] ], $policy );
				$optional = $judge( $policy, [ 'b' => $done( false ) ] + $good, [ 'a' => $apart['a'] ], [ 'b' ] );
				$t->same( [ 'succeeded', 'warning', [ 'a' ] ], [ $optional['status'], $optional['conflicts'][0]['severity'], array_column( $optional['finalArtifactRefs'], 'workerId' ) ], $policy );
			}
			$skip = $judge( 'fail', [ 'b' => GroupRow::skipped( 'dependency-skipped', 'x' ) + [ 'dependencies' => [ 'a' ] ] ] + $good, [] );
			$t->same( [ 'failed', 'failed-worker-dependency', 'a' ], [ $skip['status'], $skip['conflicts'][0]['type'], $skip['conflicts'][0]['dependencyId'] ] );
			$many = array_fill_keys( array_map( static fn( int $n ): string => "/src/$n", range( 1, 300 ) ), '/w/x' );
			$big  = $judge( 'fail', $good, [ 'a' => $many, 'b' => $many ] );
			$t->same( [ 200, 100 ], [ count( $big['conflicts'] ), $big['metadata']['conflicts_not_listed'] ] );
		}
	);
	$t->test(
		'a file is known by where it lies on the host, not by what a guest calls it',
		static function () use ( $t ): void {
			$real  = realpath( WP_PLUGIN_DIR . '/sample' );
			$entry = static fn( string $target ): array => [ 'path' => "$target/a.php", 'relativePath' => 'a.php', 'renamedFrom' => 'b.php', 'mountTarget' => $target ];
			$mount = static fn( string $source, string $target ): array => [ 'source' => $source, 'target' => $target ];
			$t->same( [ "$real/a.php" => '/workspace/x/a.php', "$real/b.php" => '/workspace/x/a.php' ], FanoutAggregate::touched( [ $mount( WP_PLUGIN_DIR . '/../plugins/sample', '/workspace/x' ) ], [ $entry( '/workspace/x' ) ] ) );
			$t->same( [], array_intersect_key( FanoutAggregate::touched( [ $mount( $real, '/workspace/x' ) ], [ $entry( '/workspace/x' ) ] ), FanoutAggregate::touched( [ $mount( '/elsewhere', '/workspace/x' ) ], [ $entry( '/workspace/x' ) ] ) ) );
		}
	);
	$t->test(
		'the counts add up',
		static function () use ( $t, $done ): void {
			$rows   = [ $done( true ), $done( false ), GroupRow::skipped( 'x', 'y' ), GroupRow::cancelled(), GroupRow::failed( new Failure( 'wp_codebox_run_timeout', 'x', 504, 124 ) ) ];
			$totals = GroupRow::totals( $rows );
			$t->same( [ 'total' => 5, 'completed' => 1, 'failed' => 1, 'skipped' => 1, 'cancelled' => 1, 'timed_out' => 1 ], $totals );
			$t->same( [ 0, 130, 3, 1 ], [ GroupRow::exit_code( true, $totals ), GroupRow::exit_code( false, $totals ), GroupRow::exit_code( false, [ 'cancelled' => 0 ] + $totals ), GroupRow::exit_code( false, [ 'cancelled' => 0, 'completed' => 0 ] + $totals ) ] );
		}
	);
};
