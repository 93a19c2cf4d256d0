<?php
/**
 * Abilities that run several tasks: run-agent-task-batch and run-agent-task-fanout.
 */

declare(strict_types=1);

use WPCodebox\Abilities\SchemaStore;
use WPCodebox\Authority;
use WPCodebox\ExtensionGate;
use WPCodebox\Native\Run;
use WPCodebox\Run\Cancellation;
use WPCodebox\Run\GroupHooks;
use WPCodebox\Services;
use WPCodebox\Settings;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$root     = WP_PLUGIN_DIR . '/wp-codebox/abilities';
	$services = new Services( new ExtensionGate( \WPCodebox\VERSION, ( require $root . '/manifest.php' )['contract_digest'] ), new SchemaStore( $root . '/schemas' ) );
	$fresh    = static function () use ( $t ): void {
		foreach ( [ 'sample.php', 'inc/more.php' ] as $name ) {
			copy( getenv( 'TEST_FIXTURES' ) . '/sample/' . $name, WP_PLUGIN_DIR . '/sample/' . $name );
		}
		copy( getenv( 'TEST_FIXTURES' ) . '/agent.php', WP_PLUGIN_DIR . '/sample/agent.php' );
		$t->as( 'administrator' );
	};
	$fits     = static function ( array $answer, string $schema ) use ( $t ): void {
		$schema = json_decode( (string) file_get_contents( getenv( 'TEST_ROOT' ) . '/dist/wp-codebox/abilities/schemas/' . $schema . '.v1.schema.json' ), true );
		$valid  = rest_validate_value_from_schema( $answer, $schema, 'answer' );
		$t->true( true === $valid, is_wp_error( $valid ) ? $valid->get_error_message() : '' );
	};
	$do       = static fn( string $what ): array => [
		'goal'          => "Do $what",
		'agent_command' => "php agent.php $what",
	];
	$worker   = static fn( string $id, string $what, array $more = [] ): array => $more + [ 'id' => $id ] + $do( $what );
	$batch    = static fn( array $tasks, array $more = [] ): mixed => $t->ability( 'run-agent-task-batch', $more + [ 'tasks' => $tasks, 'plugin' => 'sample' ] );
	$fanout   = static fn( array $workers, array $more = [] ): mixed => $t->ability( 'run-agent-task-fanout', $more + [ 'workers' => $workers, 'plugin' => 'sample' ] );
	$statuses = static fn( array $answer, string $name = 'worker_id' ): array => array_column( $answer['runs'], 'status', $name );
	$runs     = static fn(): int => $t->ok( $t->ability( 'list-runs' ) )['total'];

	$t->test(
		'batch: each task has a row, and a failed or invalid task is not a success',
		static function () use ( $t, $fresh, $do, $batch, $fits ): void {
			$fresh();
			$answer = $t->ok( $batch( [ $do( 'write one.txt' ), $do( 'fix-and-fail' ), 'Do it by default', 7, [], [ 'plugin' => 'nope' ] + $do( 'nothing' ), [ 'wait' => false ] + $do( 'nothing' ), [ 'bin' => '/bin/sh' ] + $do( 'nothing' ), [ 'code' => 'x' ] + $do( 'nothing' ), $do( 'write two.txt' ) ], [ 'agent_command' => 'php agent.php nothing', 'sandbox_session_id' => 'job-1', 'orchestrator' => [ 'id' => 'o-1' ] ] ) );
			$fits( $answer, 'agent-task-batch' );
			$t->same( [ false, 'wp-codebox/agent-task-batch/v1', 3, 10, 3, 7, 0, 0, 0 ], [ $answer['success'], $answer['schema'], $answer['exit_code'], $answer['total'], $answer['completed'], $answer['failed'], $answer['skipped'], $answer['cancelled'], $answer['timed_out'] ] );
			$t->same( range( 0, 9 ), array_column( $answer['runs'], 'index' ) );
			$t->same(
				[ 'succeeded', 'failed', 'no_op', 'wp_codebox_input_invalid', 'wp_codebox_task_missing', 'wp_codebox_mount_source_invalid', 'wp_codebox_input_invalid', 'wp_codebox_input_invalid', 'wp_codebox_raw_code_forbidden', 'succeeded' ],
				array_map( static fn( array $row ): string => $row['run']['outcome'] ?? $row['error']['code'], $answer['runs'] )
			);
			$t->same( [ true, false, true, false, false, false, false, false, false, true ], array_column( $answer['runs'], 'success' ) );
			$t->same( [ 'Do write one.txt', 'Do fix-and-fail', 'Do it by default', '', '' ], array_slice( $answer['tasks'], 0, 5 ) );
			// Each task has its own sandbox: the last does not see files of the first.
			$t->same( [ [ 'one.txt' ], [ 'two.txt' ] ], array_map( static fn( int $index ): array => array_column( $answer['runs'][ $index ]['changed_files'], 'relativePath' ), [ 0, 9 ] ) );
			$t->same( [ 'job-1', 'completed', [ 'id' => 'o-1' ], 'job-1:0' ], [ $answer['session']['id'], $answer['session']['status'], $answer['session']['orchestrator'], $answer['runs'][0]['session']['id'] ] );
			$t->true( is_dir( $answer['runs'][0]['artifacts']['path'] ) && is_dir( $answer['runs'][1]['artifacts']['path'] ), 'a bundle is missing' );
			$t->same( 'ended', $t->ok( $t->ability( 'get-run', [ 'run_id' => $answer['runs'][1]['run_id'] ] ) )['run']['status'] );
		}
	);
	$t->test(
		'batch: it succeeds only if all tasks succeed, and an empty batch is an error',
		static function () use ( $t, $fresh, $do, $batch ): void {
			$fresh();
			$shared = [
				'plugin'               => 'sample',
				'target'               => [ 'kind' => 'issue', 'ref' => 42 ],
				'structured_artifacts' => [ [ 'name' => 'brief', 'type' => 'text', 'payload' => 'x' ] ],
			];
			$good   = $t->ok( $batch( [ $do( 'nothing' ), $do( 'write one.txt' ) ], $shared ) );
			// Shared fields have their defaults in the task of each row, and a number in the target is a text.
			$inputs = [ ...$good['task_inputs'], ...array_column( $good['runs'], 'task_input' ) ];
			$t->same( array_fill( 0, 4, [ '42', 'input' ] ), array_map( static fn( array $input ): array => [ $input['target']['ref'], $input['structured_artifacts'][0]['provenance']['direction'] ], $inputs ) );
			$t->same( [ true, 0, 2, 2, 'completed' ], [ $good['success'], $good['exit_code'], $good['total'], $good['completed'], $good['session']['status'] ] );
			$t->same( [ false, 1 ], [ ( $bad = $t->ok( $batch( [ $do( 'style' ) ] ) ) )['success'], $bad['exit_code'] ] );
			$t->error( 'wp_codebox_tasks_missing', 400, $batch( [] ) );
			$t->error( 'wp_codebox_tasks_missing', 400, $t->ability( 'run-agent-task-batch' ) );
			$t->error( 'wp_codebox_input_invalid', 400, $t->ability( 'run-agent-task-batch', [ 'tasks' => 'Fix the typo', 'plugin' => 'sample' ] ) );
			$t->same( 'ability_invalid_input', $batch( [ 'x' ], [ 'wait' => false ] )->get_error_code() );
		}
	);
	$t->test(
		'batch: with stop_on_failure no task starts after a failure, and the others are marked skipped',
		static function () use ( $t, $fresh, $do, $batch, $runs ): void {
			$fresh();
			$before = $runs();
			$answer = $t->ok( $batch( [ $do( 'nothing' ), $do( 'style' ), $do( 'nothing' ), 'x' ], [ 'stop_on_failure' => true ] ) );
			$t->same( [ 'completed', 'failed', 'skipped', 'skipped' ], array_column( $answer['runs'], 'status' ) );
			$t->same( [ false, 3, 4, 1, 1, 2, 'batch-stopped' ], [ $answer['success'], $answer['exit_code'], $answer['total'], $answer['completed'], $answer['failed'], $answer['skipped'], $answer['runs'][3]['error']['code'] ] );
			$t->same( 2, $runs() - $before );
		}
	);
	$t->test(
		'batch: a callback that returns false cancels the running task and all later ones',
		static function () use ( $t, $fresh, $do, $services ): void {
			$fresh();
			$before = microtime( true );
			$seen   = [];
			$hooks  = new GroupHooks(
				new Cancellation(),
				null,
				static fn( string $name, array $event ): bool => ! ( '1' === $name && str_contains( (string) ( $event['data']['text'] ?? '' ), 'agent says sleep' ) ),
				static function ( string $name, array $row ) use ( &$seen ): void {
					$seen[ $name ] = $row['status'];
				}
			);
			$answer = $services->batches->run( [ 'tasks' => [ $do( 'nothing' ), $do( 'sleep' ), $do( 'nothing' ) ], 'plugin' => 'sample' ], Authority::User, $hooks );
			$t->same( [ 'completed', 'cancelled', 'cancelled' ], array_column( $answer['runs'], 'status' ) );
			$t->same( [ false, 130, 2, [ 'completed', 'cancelled', 'cancelled' ] ], [ $answer['success'], $answer['exit_code'], $answer['cancelled'], $seen ] );
			$t->same( [ true, false ], [ isset( $answer['runs'][1]['run_id'] ), isset( $answer['runs'][2]['run_id'] ) ] );
			$t->true( microtime( true ) - $before < 150, 'the batch waited for the sleeping agent' );
		}
	);
	$t->test(
		'fan-out: of six workers three run at a time',
		static function () use ( $t, $fresh, $worker, $fits, $services ): void {
			$fresh();
			$alive = 0;
			$peak  = 0;
			$hooks = new GroupHooks(
				new Cancellation(),
				static function ( string $name, Run $run ) use ( &$alive, &$peak ): void {
					$peak = max( $peak, ++$alive );
				},
				null,
				static function () use ( &$alive ): void {
					--$alive;
				}
			);
			$six    = array_map( static fn( string $id ): array => $worker( $id, "write $id.txt 2" ), [ 'a', 'b', 'c', 'd', 'e', 'f' ] );
			$cpu    = getrusage();
			$answer = $services->fanouts->run( [ 'workers' => $six, 'concurrency' => 3, 'plugin' => 'sample', 'sandbox_session_id' => 'job-2' ], Authority::User, $hooks );
			$used   = getrusage();
			$fits( $answer, 'agent-fanout-result' );
			$t->same( [ true, 0, 6, 6, 3, 'succeeded', 6 ], [ $answer['success'], $answer['exit_code'], $answer['total'], $answer['completed'], $answer['concurrency'], $answer['aggregate']['status'], count( $answer['aggregate']['finalArtifactRefs'] ) ] );
			$t->same( [ 3, 0 ], [ $peak, $alive ] );
			$t->same( [ 'a', 'b', 'c', 'd', 'e', 'f' ], array_column( $answer['runs'], 'worker_id' ) );
			$t->same( [ 'job-2:a', 'job-2:f', 'job-2:a' ], [ $answer['session']['children'][0]['session_id'], $answer['session']['children'][5]['session_id'], $answer['runs'][0]['session']['id'] ] );
			$t->same( [ 'a.txt', 'f.txt' ], [ $answer['runs'][0]['changed_files'][0]['relativePath'], $answer['runs'][5]['changed_files'][0]['relativePath'] ] );
			$seconds = static fn( array $usage ): float => $usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec'] + ( $usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec'] ) / 1e6;
			$share   = ( $seconds( $used ) - $seconds( $cpu ) ) / max( 5.0, $answer['timings']['duration_ms'] / 1000 );
			$t->true( $share < 0.2, sprintf( 'waiting took %.0f %% of a processor', 100 * $share ) );
		}
	);
	$t->test(
		'fan-out: a worker starts after its dependencies and is skipped when one of them fails',
		static function () use ( $t, $fresh, $worker, $fanout, $statuses ): void {
			$fresh();
			$answer = $t->ok( $fanout( [ $worker( 'last', 'write last.txt', [ 'dependsOn' => [ 'first', 'second' ] ] ), $worker( 'first', 'write first.txt' ), $worker( 'second', 'write second.txt 1' ) ], [ 'concurrency' => 3 ] ) );
			$t->same( [ true, 'completed' ], [ $answer['success'], $answer['runs'][0]['status'] ], (string) json_encode( $answer['failures'] ) );
			$start = array_column( array_map( static fn( array $row ): array => [ $row['worker_id'], $row['timings'] ], $answer['runs'] ), 1, 0 );
			$t->true( $start['last']['started_at'] >= max( $start['first']['ended_at'], $start['second']['ended_at'] ), 'the worker did not wait for its dependencies' );
			$answer = $t->ok( $fanout( [ $worker( 'bad', 'style' ), $worker( 'after', 'nothing', [ 'dependsOn' => [ 'bad' ] ] ), $worker( 'later', 'nothing', [ 'dependsOn' => [ 'after' ] ] ), $worker( 'free', 'nothing' ) ], [ 'concurrency' => 2 ] ) );
			$t->same( [ 'bad' => 'failed', 'after' => 'skipped', 'later' => 'skipped', 'free' => 'completed' ], $statuses( $answer ) );
			$t->same( [ false, 3, 'failed', 'dependency-skipped', [ 'after' ], 1, 1, 2 ], [ $answer['success'], $answer['exit_code'], $answer['aggregate']['status'], $answer['runs'][1]['error']['code'], $answer['runs'][2]['dependencies'], $answer['completed'], $answer['failed'], $answer['skipped'] ] );
			$t->same( [ 'bad', 'after', 'later' ], array_column( $answer['failures'], 'worker_id' ) );
			$optional = $t->ok( $fanout( [ $worker( 'bad', 'style', [ 'required' => false ] ), $worker( 'good', 'nothing' ) ] ) );
			$t->same( [ true, 0, 1, 'succeeded' ], [ $optional['success'], $optional['exit_code'], $optional['failed'], $optional['aggregate']['status'] ] );
			$none = $t->ok( $fanout( [ $worker( 'bad', 'style', [ 'required' => false ] ) ] ) );
			$t->same( [ false, 1 ], [ $none['success'], $none['exit_code'] ] );
		}
	);
	$t->test(
		'fan-out: two workers that change the same host file conflict, also under different mount targets',
		static function () use ( $t, $fresh, $worker, $fanout ): void {
			$fresh();
			$mount  = [ 'plugin' => null, 'mounts' => [ [ 'source' => WP_PLUGIN_DIR . '/sample', 'target' => '/workspace/other' ] ] ];
			$answer = $t->ok( $fanout( [ $worker( 'a', 'write same.txt' ), $worker( 'b', 'write same.txt', array_filter( $mount ) ), $worker( 'c', 'write own.txt' ) ], [ 'concurrency' => 3, 'aggregator' => [ 'policy' => 'partial' ] ] ) );
			$t->same( [ false, 3, 3, 'partial', [ 'c' ] ], [ $answer['success'], $answer['exit_code'], $answer['completed'], $answer['aggregate']['status'], array_column( $answer['aggregate']['finalArtifactRefs'], 'workerId' ) ], (string) json_encode( $answer['failures'] ) );
			$t->same( [ [ 'duplicate-final-artifact-path', [ 'a', 'b' ] ] ], array_map( static fn( array $one ): array => [ $one['type'], $one['workerIds'] ], $answer['aggregate']['conflicts'] ) );
		}
	);
	$t->test(
		'fan-out: a worker that times out or is refused does not affect the others',
		static function () use ( $t, $fresh, $worker, $fanout, $statuses ): void {
			$fresh();
			$answer = $t->ok( $fanout( [ $worker( 'late', 'sleep', [ 'timeout_seconds' => 6 ] ), $worker( 'denied', 'nothing', [ 'mounts' => [ [ 'source' => ABSPATH, 'target' => '/workspace/x' ] ] ] ), $worker( 'good', 'nothing' ) ], [ 'concurrency' => 3 ] ) );
			$t->same( [ 'late' => 'timed_out', 'denied' => 'failed', 'good' => 'completed' ], $statuses( $answer ) );
			$t->same( [ 1, 1, 1, 'wp_codebox_run_timeout', 'wp_codebox_mount_denied' ], [ $answer['completed'], $answer['failed'], $answer['timed_out'], $answer['failures'][0]['code'], $answer['failures'][1]['code'] ] );
		}
	);
	$t->test(
		'fan-out: an invalid plan starts no worker',
		static function () use ( $t, $fresh, $worker, $fanout, $runs ): void {
			$fresh();
			$before = $runs();
			$t->error( 'wp_codebox_fanout_workers_missing', 400, $fanout( [] ) );
			$t->error( 'wp_codebox_fanout_worker_invalid', 400, $fanout( [ $worker( 'a', 'nothing' ), $worker( 'b', 'nothing', [ 'bin' => 'x' ] ) ] ) );
			$t->error( 'wp_codebox_fanout_worker_invalid', 400, $fanout( [ $worker( 'a', 'nothing' ), $worker( 'b', 'nothing', [ 'sandbox_session_id' => 'x' ] ) ] ) );
			$t->error( 'wp_codebox_fanout_worker_dependency_invalid', 400, $fanout( [ $worker( 'a', 'nothing' ), $worker( 'b', 'nothing', [ 'dependsOn' => [ 'b' ] ] ) ] ) );
			$t->error( 'wp_codebox_fanout_concurrency_invalid', 400, $fanout( [ $worker( 'a', 'nothing' ) ], [ 'concurrency' => 9 ] ) );
			$one = static fn(): int => 1;
			add_filter( 'wp_codebox_agent_fanout_max_concurrency', $one );
			$t->error( 'wp_codebox_fanout_concurrency_invalid', 400, $fanout( [ $worker( 'a', 'nothing' ) ], [ 'concurrency' => 2 ] ) );
			remove_filter( 'wp_codebox_agent_fanout_max_concurrency', $one );
			$t->same( $before, $runs() );
			$t->same( true, $t->ok( $fanout( [ $worker( 'a', 'nothing' ) ], [ 'concurrency' => 2 ] ) )['success'], 'positive control' );
		}
	);
	$t->test(
		'fan-out: cancelling ends the running workers and those that have not started',
		static function () use ( $t, $fresh, $worker, $services, $statuses ): void {
			$fresh();
			$begun  = [];
			$before = microtime( true );
			$hooks  = new GroupHooks(
				new Cancellation(),
				null,
				static function ( string $name, array $event ) use ( &$begun ): bool {
					if ( str_contains( (string) ( $event['data']['text'] ?? '' ), 'agent says sleep' ) ) {
						$begun[ $name ] = true;
					}
					return count( $begun ) < 2;
				}
			);
			$answer = $services->fanouts->run( [ 'workers' => [ $worker( 'a', 'sleep' ), $worker( 'b', 'sleep' ), $worker( 'c', 'nothing' ), $worker( 'd', 'nothing', [ 'dependsOn' => [ 'a' ] ] ) ], 'concurrency' => 2, 'plugin' => 'sample' ], Authority::User, $hooks );
			$t->same( [ 'a' => 'cancelled', 'b' => 'cancelled', 'c' => 'cancelled', 'd' => 'cancelled' ], $statuses( $answer ) );
			$t->same( [ false, 130, 4 ], [ $answer['success'], $answer['exit_code'], $answer['cancelled'] ] );
			$t->true( microtime( true ) - $before < 150, 'the fan-out waited for the sleeping agents' );
		}
	);
	$t->test(
		'fan-out and batch wait for a free slot when the site is at its run limit',
		static function () use ( $t, $fresh, $do, $worker, $fanout, $batch ): void {
			$fresh();
			update_option( Settings::MAX_RUNS, 2 );
			try {
				$four   = array_map( static fn( string $id ): array => $worker( $id, "write $id.txt 1" ), [ 'a', 'b', 'c', 'd' ] );
				$answer = $t->ok( $fanout( $four, [ 'concurrency' => 4 ] ) );
				$t->same( [ true, 4 ], [ $answer['success'], $answer['completed'] ], (string) json_encode( $answer['failures'] ) );
				// Another run holds the only slot and ends while the group waits.
				update_option( Settings::MAX_RUNS, 1 );
				foreach ( [ static fn(): mixed => $fanout( [ $worker( 'a', 'nothing' ) ] ), static fn(): mixed => $batch( [ $do( 'nothing' ) ] ) ] as $call ) {
					$token = bin2hex( random_bytes( 4 ) );
					$t->ok( $t->ability( 'run-agent-task', [ 'plugin' => 'sample', 'wait' => false ] + $do( "told $token" ) ) );
					$t->error( 'wp_codebox_busy', 429, $t->ability( 'run-agent-task', [ 'plugin' => 'sample' ] + $do( 'nothing' ) ) );
					$somebody = proc_open( [ 'sh', '-c', 'sleep 1; kill -ALRM ' . $t->waiting( $token ) ], [], $pipes );
					$t->same( [ true, 0 ], [ $t->ok( $call() )['success'], proc_close( $somebody ) ] );
				}
			} finally {
				delete_option( Settings::MAX_RUNS );
			}
		}
	);
};
