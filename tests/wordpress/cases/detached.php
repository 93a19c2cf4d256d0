<?php
/**
 * Detached runs: handles, the run registry and its visibility.
 */

declare(strict_types=1);

use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;
use WPCodebox\Native\Artifacts;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$fake  = '1' === getenv( 'WP_CODEBOX_FAKE' );
	$fresh = static function (): void {
		foreach ( [ 'sample.php', 'inc/more.php' ] as $name ) {
			copy( getenv( 'TEST_FIXTURES' ) . '/sample/' . $name, WP_PLUGIN_DIR . '/sample/' . $name );
		}
		copy( getenv( 'TEST_FIXTURES' ) . '/agent.php', WP_PLUGIN_DIR . '/sample/agent.php' );
	};
	$task  = static fn( string $what ): array => [
		'goal'          => 'Make the check pass',
		'plugin'        => 'sample',
		'agent_command' => 'php agent.php ' . $what,
	];
	$start = static fn( string $what, array $more = [] ): array => $t->ok( $t->ability( 'run-agent-task', $more + [ 'wait' => false ] + $task( $what ) ) );
	$get   = static fn( string $id ): array => $t->ok( $t->ability( 'get-run', [ 'run_id' => $id ] ) );
	// Waits at most a minute for the end of the run.
	$ended = static function ( string $id ) use ( $get ): array {
		$until = microtime( true ) + 60;
		do {
			$answer = $get( $id );
			usleep( 50000 );
		} while ( 'running' === $answer['run']['status'] && microtime( true ) < $until );
		return $answer;
	};
	$fits  = static function ( array $answer, string $schema ) use ( $t ): void {
		$schema = json_decode( (string) file_get_contents( getenv( 'TEST_ROOT' ) . '/dist/wp-codebox/abilities/schemas/' . $schema . '.v1.schema.json' ), true );
		$valid  = rest_validate_value_from_schema( $answer, $schema, 'answer' );
		$t->true( true === $valid, is_wp_error( $valid ) ? $valid->get_error_message() : '' );
	};
	$audit = static function ( string $event, string $id ): int {
		$site = ( new Site( new InstalledCode() ) )->id();
		$rows = method_exists( Artifacts::class, 'auditRecords' ) ? Artifacts::auditRecords( $site, -10000, 10000 )['records'] : Artifacts::auditLog( $site, 10000 )['entries'];
		return count( array_filter( $rows, static fn( array $row ): bool => 1 === preg_match( '/"event":"' . $event . '".*' . $id . '|' . $id . '.*"event":"' . $event . '"/', (string) json_encode( $row ) ) ) );
	};
	$grant = static function ( callable $body ): void {
		$map = static fn( array $caps, string $cap ): array => 'wp_codebox_run' === $cap ? [ 'edit_posts' ] : $caps;
		add_filter( 'map_meta_cap', $map, 20, 2 );
		try {
			$body();
		} finally {
			remove_filter( 'map_meta_cap', $map, 20 );
		}
	};

	$t->test(
		'wait false returns a run handle at once, and the run ends with its usual result',
		static function () use ( $t, $fresh, $start, $get, $ended, $fits, $audit ): void {
			$fresh();
			$t->as( 'administrator' );
			$orchestrator = [ 'id' => 'control-plane-' . uniqid() ];
			$token        = bin2hex( random_bytes( 4 ) );
			$handle       = $start( "told $token", [ 'sandbox_session_id' => 'job-9', 'orchestrator' => $orchestrator ] );
			$t->same( [ true, 'wp-codebox/run-handle/v1', 'running', 0, 'job-9', $orchestrator ], [ $handle['success'], $handle['schema'], $handle['status'], $handle['cursor'], $handle['sandbox_session_id'], $handle['orchestrator'] ] );
			$fits( $handle, 'run-handle' );
			$now = $get( $handle['run_id'] );
			$fits( $now, 'run' );
			$t->same( [ 'running', 'detached', $handle['created_at'], 'Make the check pass', false ], [ $now['run']['status'], $now['run']['mode'], $now['run']['created_at'], $now['run']['goal'], isset( $now['result'] ) ] );
			$t->same( 1, $audit( 'run-detached', $handle['run_id'] ) );
			// The run ends only now, so the handle was returned before its end.
			$t->wake( $token );
			$end = $ended( $handle['run_id'] );
			$fits( $end, 'run' );
			$fits( $end['result'], 'agent-task-run' );
			$t->same( [ 'ended', 'succeeded', true, 'succeeded', 0, 2 ], [ $end['run']['status'], $end['run']['outcome'], $end['result']['success'], $end['result']['run']['outcome'], $end['result']['exit_code'], count( $end['result']['changed_files'] ) ] );
			$t->same( [ 'Make the check pass', 'wp-codebox/task-input/v1', $handle['run_id'] ], [ $end['result']['task'], $end['result']['task_input']['schema'], $end['result']['session']['id'] ] );
			$t->true( ! str_contains( (string) json_encode( $end ), $orchestrator['id'] ) && ! str_contains( (string) json_encode( $end ), 'job-9' ), 'an id of the caller was stored' );
			$t->true( is_dir( $end['result']['artifacts'] ), 'there is no bundle' );
		}
	);
	$t->test(
		'a run longer than the wait limit is detached, and a shorter one is answered with its result',
		static function () use ( $t, $fresh, $task, $ended, $audit ): void {
			$fresh();
			$t->as( 'administrator' );
			$wait = 300;
			$set  = static function () use ( &$wait ): mixed {
				return $wait;
			};
			add_filter( 'wp_codebox_wait_timeout_ms', $set );
			$token  = bin2hex( random_bytes( 4 ) );
			$handle = $t->ok( $t->ability( 'run-agent-task', $task( "told $token" ) ) );
			$t->same( [ 'wp-codebox/run-handle/v1', true ], [ $handle['schema'], $handle['success'] ] );
			$t->wake( $token );
			$end = $ended( $handle['run_id'] );
			$t->same( [ 'detached', 'succeeded', 1 ], [ $end['run']['mode'], $end['result']['run']['outcome'], $audit( 'run-detached', $handle['run_id'] ) ] );
			foreach ( [ PHP_INT_MAX, -1, 'soon', null ] as $wait ) {
				$run = $t->ok( $t->ability( 'run-agent-task', $task( 'nothing' ) ) );
				$t->same( [ 'wp-codebox/agent-task-run/v1', 'no_op', 0 ], [ $run['schema'], $run['run']['outcome'] ?? '', $audit( 'run-detached', $run['run']['run_id'] ?? 'none' ) ] );
			}
			remove_filter( 'wp_codebox_wait_timeout_ms', $set );
		}
	);
	$t->test(
		'a cancelled run ends as cancelled, a second cancel is no error, and one audit record is written',
		static function () use ( $t, $fresh, $start, $ended, $fits, $audit ): void {
			$fresh();
			$t->as( 'administrator' );
			$id     = $start( 'sleep' )['run_id'];
			$answer = $t->ok( $t->ability( 'cancel-run', [ 'run_id' => $id ] ) );
			$fits( $answer, 'run-cancellation' );
			$t->same( [ true, 'requested', $id ], [ $answer['success'], $answer['answer'], $answer['run_id'] ] );
			$end = $ended( $id );
			$t->same( [ 'ended', 'cancelled', false, 130 ], [ $end['run']['status'], $end['run']['outcome'], $end['result']['success'], $end['result']['exit_code'] ] );
			$t->same( 'already_ended', $t->ok( $t->ability( 'cancel-run', [ 'run_id' => $id ] ) )['answer'] );
			$t->same( 1, $audit( 'run-cancel', $id ) );
			$t->error( 'wp_codebox_run_not_found', 404, $t->ability( 'cancel-run', [ 'run_id' => 'run_' . str_repeat( '0', 32 ) ] ) );
		}
	);
	$t->test(
		'paging through events by cursor returns each event once and in order',
		static function () use ( $t, $fresh, $start, $ended, $fits ): void {
			$fresh();
			$t->as( 'administrator' );
			$id = $start( 'fix' )['run_id'];
			$ended( $id );
			$all = $t->ok( $t->ability( 'list-run-events', [ 'run_id' => $id, 'per_page' => 1000 ] ) );
			$fits( $all, 'run-events' );
			$t->same( [ false, 'ended' ], [ $all['more'], $all['status'] ] );
			$t->same( range( 1, count( $all['events'] ) ), array_column( $all['events'], 'seq' ) );
			$t->contains( 'agent says fix', (string) json_encode( $all['events'] ) );
			$seen   = [];
			$cursor = 0;
			do {
				$page   = $t->ok( $t->ability( 'list-run-events', [ 'run_id' => $id, 'after' => $cursor, 'per_page' => 2 ] ) );
				$seen   = array_merge( $seen, $page['events'] );
				$cursor = $page['cursor'];
			} while ( $page['more'] );
			$t->same( $all['events'], $seen );
			$rest = $t->ok( $t->ability( 'list-run-events', [ 'run_id' => $id, 'after' => $cursor ] ) );
			$t->same( [ [], $cursor, false ], [ $rest['events'], $rest['cursor'], $rest['more'] ] );
		}
	);
	$t->test(
		'list-runs returns the newest runs first, filters by status and pages',
		static function () use ( $t, $fresh, $start, $ended, $fits ): void {
			$fresh();
			$t->as( 'administrator' );
			$first = $start( 'nothing' )['run_id'];
			$ended( $first );
			$alive = $start( 'sleep' )['run_id'];
			$list  = $t->ok( $t->ability( 'list-runs' ) );
			$fits( $list, 'run-list' );
			$t->same( [ $alive, $first ], array_slice( array_column( $list['runs'], 'run_id' ), 0, 2 ) );
			$bundles = array_column( $t->ok( $t->ability( 'list-artifacts', [ 'per_page' => 100 ] ) )['artifacts'], null, 'run_id' );
			foreach ( [ $list['runs'][1], $t->ok( $t->ability( 'get-run', [ 'run_id' => $first ] ) )['run'], $bundles[ $first ] ] as $row ) {
				$t->same( 'no_change', $row['summary_detail']['code'] ?? null, 'the summary code' );
			}
			$t->same( [ $alive ], array_column( $t->ok( $t->ability( 'list-runs', [ 'status' => 'running' ] ) )['runs'], 'run_id' ) );
			$second = $t->ok( $t->ability( 'list-runs', [ 'page' => 2, 'per_page' => 1 ] ) );
			$t->same( [ 2, 1, [ $first ] ], [ $second['page'], $second['per_page'], array_column( $second['runs'], 'run_id' ) ] );
			$t->same( 'ability_invalid_input', $t->ability( 'list-runs', [ 'limit' => 1 ] )->get_error_code() );
			$t->same( [], array_filter( $list['runs'], static fn( array $run ): bool => isset( $run['result'] ) ) );
			$t->ok( $t->ability( 'cancel-run', [ 'run_id' => $alive ] ) );
			$ended( $alive );
		}
	);
	$t->test(
		'a user without the review capability sees only own runs, and runs of others are not found',
		static function () use ( $t, $fresh, $start, $ended, $grant ): void {
			$fresh();
			$t->as( 'administrator' );
			$theirs = $start( 'nothing' )['run_id'];
			$ended( $theirs );
			$grant(
				static function () use ( $t, $theirs, $start, $ended ): void {
					$t->as( 'editor' );
					$own = $start( 'nothing' )['run_id'];
					$ended( $own );
					$list = $t->ok( $t->ability( 'list-runs' ) );
					$t->same( [ 1, [ $own ] ], [ $list['total'], array_column( $list['runs'], 'run_id' ) ] );
					$nobody = 'run_' . str_repeat( '0', 32 );
					foreach ( [ 'get-run', 'list-run-events', 'cancel-run' ] as $verb ) {
						$t->error( 'wp_codebox_run_not_found', 404, $other = $t->ability( $verb, [ 'run_id' => $theirs ] ) );
						$t->error( 'wp_codebox_run_not_found', 404, $none = $t->ability( $verb, [ 'run_id' => $nobody ] ) );
						$t->same( str_replace( $nobody, 'X', $none->get_error_message() . json_encode( $none->get_error_data() ) ), str_replace( $theirs, 'X', $other->get_error_message() . json_encode( $other->get_error_data() ) ), 'the answer reveals that a run of another user exists' );
						// A prefix that matches only the run of another user, and one that matches both.
						$t->error( 'wp_codebox_run_not_found', 404, $t->ability( $verb, [ 'run_id' => substr( $theirs, 0, 14 ) ] ) );
						$t->ok( $t->ability( $verb, [ 'run_id' => $own ] ) );
						$t->ok( $t->ability( $verb, [ 'run_id' => 'run_' ] ) );
					}
					$second = $start( 'nothing' )['run_id'];
					$ended( $second );
					$t->error( 'wp_codebox_run_ambiguous', 409, $t->ability( 'get-run', [ 'run_id' => 'run_' ] ) );
				}
			);
			$t->as( 'administrator' );
			$t->same( 'ended', $t->ok( $t->ability( 'get-run', [ 'run_id' => substr( $theirs, 0, 20 ) ] ) )['run']['status'], 'a user who may review sees all runs' );
			$t->error( 'wp_codebox_run_ambiguous', 409, $t->ability( 'get-run', [ 'run_id' => 'run_' ] ) );
			$t->error( 'wp_codebox_input_invalid', 400, $t->ability( 'get-run' ) );
		}
	);
	$t->test(
		'a user with only the review capability sees runs and cannot start any',
		static function () use ( $t ): void {
			$map = static fn( array $caps, string $cap ): array => 'wp_codebox_review' === $cap ? [ 'edit_posts' ] : $caps;
			$t->as( 'editor' );
			$t->same( false, wp_get_ability( 'wp-codebox/list-runs' )->check_permissions( [] ), 'negative control' );
			add_filter( 'map_meta_cap', $map, 20, 2 );
			$t->true( $t->ok( $t->ability( 'list-runs' ) )['total'] > 1, 'the runs of others are missing' );
			$t->same( false, wp_get_ability( 'wp-codebox/run-agent-task' )->check_permissions( [] ) );
			remove_filter( 'map_meta_cap', $map, 20 );
		}
	);
	$t->test(
		'over REST the run abilities check verbs, parse query strings and answer 404 for runs of others',
		static function () use ( $t, $fresh, $start, $ended, $grant ): void {
			$fresh();
			$t->as( 'administrator' );
			$call = static function ( string $method, string $name, array $input ): array {
				$request = new WP_REST_Request( $method, '/wp-abilities/v1/abilities/wp-codebox/' . $name . '/run' );
				if ( 'GET' === $method ) {
					$request->set_query_params( [ 'input' => $input ] );
				} else {
					$request->set_header( 'Content-Type', 'application/json' );
					$request->set_body( (string) wp_json_encode( [ 'input' => $input ] ) );
				}
				$response = rest_do_request( $request );
				return [ $response->get_status(), $response->get_data() ];
			};
			[ $status, $handle ] = $call( 'POST', 'run-agent-task', [ 'goal' => 'x', 'plugin' => 'sample', 'agent_command' => 'php agent.php fix', 'wait' => false ] );
			$t->same( [ 200, 'wp-codebox/run-handle/v1' ], [ $status, $handle['schema'] ?? json_encode( $handle ) ] );
			$id = $handle['run_id'];
			$ended( $id );
			[ $status, $page ] = $call( 'GET', 'list-run-events', [ 'run_id' => $id, 'after' => '1', 'per_page' => '2' ] );
			$t->same( [ 200, [ 2, 3 ], 3, true ], [ $status, array_column( $page['events'], 'seq' ), $page['cursor'], $page['more'] ] );
			[ $status, $data ] = $call( 'GET', 'list-run-events', [ 'run_id' => $id, 'after' => 'x' ] );
			$t->same( 400, $status );
			[ $status, $list ] = $call( 'GET', 'list-runs', [ 'page' => '1', 'per_page' => '1', 'status' => 'ended' ] );
			$t->same( [ 200, [ $id ] ], [ $status, array_column( $list['runs'], 'run_id' ) ] );
			[ $status, $run ] = $call( 'GET', 'get-run', [ 'run_id' => $id ] );
			$t->same( [ 200, 'succeeded' ], [ $status, $run['result']['run']['outcome'] ?? json_encode( $run ) ] );
			$again = json_decode( (string) wp_json_encode( $run ), false );
			$t->true( is_object( $again->run->provenance ) && is_object( $again->result->session ), 'an object was encoded as a list' );
			$t->same( [ 200, 'already_ended' ], [ ( $answer = $call( 'POST', 'cancel-run', [ 'run_id' => $id ] ) )[0], $answer[1]['answer'] ] );
			$grant(
				static function () use ( $t, $call, $id ): void {
					$t->as( 'editor' );
					[ $status, $data ] = $call( 'GET', 'get-run', [ 'run_id' => $id ] );
					$t->same( [ 404, 'wp_codebox_run_not_found' ], [ $status, $data['code'] ] );
				}
			);
		}
	);
	if ( $fake ) {
		$t->test(
			'a site at its run limit answers 429',
			static function () use ( $t, $fresh, $start, $task, $ended ): void {
				$fresh();
				$t->as( 'administrator' );
				putenv( 'WP_CODEBOX_FAKE_MAX_RUNS=1' );
				$id      = $start( 'sleep' )['run_id'];
				$request = new WP_REST_Request( 'POST', '/wp-abilities/v1/abilities/wp-codebox/run-agent-task/run' );
				$request->set_header( 'Content-Type', 'application/json' );
				$request->set_body( (string) wp_json_encode( [ 'input' => $task( 'nothing' ) ] ) );
				$response = rest_do_request( $request );
				$t->same( [ 429, 'wp_codebox_busy' ], [ $response->get_status(), $response->get_data()['code'] ] );
				$t->ok( $t->ability( 'cancel-run', [ 'run_id' => $id ] ) );
				$ended( $id );
				$t->same( 200, rest_do_request( $request )->get_status(), 'positive control' );
			}
		);
		$t->test(
			'a detached run whose audit record cannot be written is cancelled',
			static function () use ( $t, $fresh, $task, $ended ): void {
				$fresh();
				$t->as( 'administrator' );
				putenv( 'WP_CODEBOX_FAKE_AUDIT_BROKEN=1' );
				$t->error( 'wp_codebox_audit_failed', 500, $t->ability( 'run-agent-task', [ 'wait' => false ] + $task( 'sleep' ) ) );
				putenv( 'WP_CODEBOX_FAKE_AUDIT_BROKEN' );
				$id = $t->ok( $t->ability( 'list-runs' ) )['runs'][0]['run_id'];
				$t->same( 'cancelled', $ended( $id )['run']['outcome'] );
				$short = static fn(): int => 100;
				add_filter( 'wp_codebox_wait_timeout_ms', $short );
				putenv( 'WP_CODEBOX_FAKE_AUDIT_BROKEN=1' );
				$t->error( 'wp_codebox_audit_failed', 500, $t->ability( 'run-agent-task', $task( 'sleep' ) ) );
				putenv( 'WP_CODEBOX_FAKE_AUDIT_BROKEN' );
				remove_filter( 'wp_codebox_wait_timeout_ms', $short );
				$t->true( $id !== ( $other = $t->ok( $t->ability( 'list-runs' ) )['runs'][0]['run_id'] ), 'no run was started' );
				$t->same( 'cancelled', $ended( $other )['run']['outcome'] );
			}
		);
	}
};
