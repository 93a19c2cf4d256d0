<?php
/**
 * `wp codebox run-agent-task-batch` and `run-agent-task-fanout`.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$fresh = static function (): void {
		foreach ( [ 'sample.php', 'inc/more.php' ] as $name ) {
			copy( getenv( 'TEST_FIXTURES' ) . '/sample/' . $name, WP_PLUGIN_DIR . '/sample/' . $name );
		}
	};
	$agent = 'php ' . getenv( 'TEST_FIXTURES' ) . '/agent.php ';
	$json  = static fn( array $value ): string => (string) json_encode( $value, JSON_UNESCAPED_SLASHES );
	$do    = static fn( string $what ): array => [ 'goal' => "Do $what", 'agent_command' => $agent . $what ];
	$call  = static fn( string $verb, array $list, string ...$more ): array => [ 'codebox', "run-agent-task-$verb", '--' . ( 'batch' === $verb ? 'tasks' : 'workers' ) . '=' . $json( $list ), '--plugin=sample', ...$more ];

	$t->test(
		'batch: STDERR labels each line with its task, and the exit status follows the outcomes',
		static function () use ( $t, $fresh, $call, $do ): void {
			$fresh();
			[ $code, $out, $err ] = $t->wp( $call( 'batch', [ $do( 'fix' ), $do( 'style' ), 7 ], '--format=csv', '--fields=index,status,outcome' ) );
			$t->same( [ 3, "index,status,outcome\n0,completed,succeeded\n1,failed,failed\n2,failed,\n" ], [ $code, $out ], $err );
			foreach ( [ '[task 0] agent | agent says fix', '[task 1] Failed: ', '[task 2] Failed: A task must be a goal', '3 in all: 1 completed, 2 failed. Nothing on this site was changed.' ] as $line ) {
				$t->contains( $line, $err );
			}
			$t->same( 1, $t->wp( $call( 'batch', [ $do( 'style' ) ] ) )[0] );
			[ $code, $out ] = $t->wp( $call( 'batch', [ $do( 'nothing' ), $do( 'fix' ) ], '--porcelain' ) );
			$t->same( [ 0, 1 ], [ $code, preg_match( '/^(run_[0-9a-f]{32}\n){2}$/', $out ) ] );
			[ $code, $out, $err ] = $t->wp( $call( 'batch', [ $do( 'style' ), $do( 'nothing' ) ], '--stop-on-failure', '--format=json' ) );
			$t->same( [ 1, 'wp-codebox/agent-task-batch/v1', 1 ], [ $code, json_decode( $out, true )['schema'] ?? $err, json_decode( $out, true )['skipped'] ?? null ] );
			$t->contains( 'Do fix', $t->wp( $call( 'batch', [ $do( 'fix' ) ], '--fields=task,status' ) )[1] );
		}
	);
	$t->test(
		'fan-out: STDERR labels each line with its worker and describes conflicts, which give exit status 3',
		static function () use ( $t, $fresh, $call, $do ): void {
			$fresh();
			[ $code, $out, $err ] = $t->wp( $call( 'fanout', [ [ 'id' => 'one' ] + $do( 'fix' ), [ 'id' => 'two' ] + $do( 'fix' ) ], '--concurrency=2', '--format=csv', '--fields=worker_id,status' ) );
			$t->same( [ 3, "worker_id,status\none,completed\ntwo,completed\n" ], [ $code, $out ], $err );
			foreach ( [ '[worker one] agent | agent says fix', '[worker two] agent | agent says fix', 'Conflict: Workers one, two changed the same file. /wordpress/wp-content/plugins/sample/sample.php' ] as $line ) {
				$t->contains( $line, $err );
			}
			[ $code, $out, $err ] = $t->wp( $call( 'fanout', [ [ 'id' => 'one' ] + $do( 'fix' ), [ 'id' => 'two', 'dependsOn' => [ 'one' ] ] + $do( 'nothing' ) ], '--format=json' ) );
			$t->same( [ 0, true ], [ $code, json_decode( $out, true )['success'] ?? null ], $err );
		}
	);
	foreach ( [ 'batch', 'fanout' ] as $verb ) {
		$t->test(
			"$verb: Ctrl-C cancels all runs and exits with 130",
			static function () use ( $t, $fresh, $call, $do, $verb ): void {
				$fresh();
				[ $code, $out, $err ] = $t->wp(
					$call( $verb, [ [ ...( 'fanout' === $verb ? [ 'id' => 'a' ] : [] ), ...$do( 'sleep' ) ], [ ...( 'fanout' === $verb ? [ 'id' => 'b' ] : [] ), ...$do( 'nothing' ) ] ], '--format=json' ),
					[],
					[
						'after'     => 'agent | agent says sleep',
						'meanwhile' => static fn( int $pid ): bool => posix_kill( $pid, SIGINT ),
					]
				);
				$answer               = json_decode( $out, true );
				$t->same( [ 130, [ 'cancelled', 'cancelled' ] ], [ $code, array_column( $answer['runs'] ?? [], 'status' ) ], $err );
				$t->contains( 'Cancelling all runs', $err );
			}
		);
	}
	$t->test(
		'batch and fan-out refuse invalid input, and a user without capability given by --user',
		static function () use ( $t, $call, $do ): void {
			foreach ( [
				[ $call( 'batch', [] ), 1, 'wp_codebox_tasks_missing' ],
				[ [ 'codebox', 'run-agent-task-batch', '--tasks=Fix it', '--plugin=sample' ], 1, 'wp_codebox_input_invalid' ],
				[ $call( 'fanout', [] ), 1, 'wp_codebox_fanout_workers_missing' ],
				[ $call( 'fanout', [ $do( 'nothing' ) ] ), 1, 'wp_codebox_fanout_worker_id_invalid' ],
				[ $call( 'fanout', [ [ 'id' => 'a' ] + $do( 'nothing' ) ], '--concurrency=0' ), 1, 'wp_codebox_fanout_concurrency_invalid' ],
				[ $call( 'fanout', [ [ 'id' => 'a' ] + $do( 'nothing' ) ], '--concurrency=two' ), 1, 'wp_codebox_input_invalid' ],
				[ $call( 'batch', [ $do( 'nothing' ) ], '--user=editor' ), 126, 'wp_codebox_forbidden' ],
			] as [ $command, $status, $expected ] ) {
				[ $code, $out, $err ] = $t->wp( $command );
				$t->same( [ $status, '' ], [ $code, $out ], implode( ' ', $command ) . $err );
				$t->contains( "($expected)", $err );
			}
		}
	);
};
