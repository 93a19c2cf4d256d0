<?php
/**
 * Field `placement` of the abilities that start runs: with the stand-in, that it reaches the extension; with the real
 * extension, what a host answers whose operator has configured no cluster. Runs on a cluster: tests/cluster/test_sites.py.
 */

declare(strict_types=1);

use WPCodebox\Native\Extension;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$task   = [
		'goal'          => 'Fix it',
		'plugin'        => 'sample',
		'agent_command' => 'php agent.php nothing',
	];
	$fresh  = static function () use ( $t ): void {
		copy( getenv( 'TEST_FIXTURES' ) . '/agent.php', WP_PLUGIN_DIR . '/sample/agent.php' );
		$t->as( 'administrator' );
	};
	$batch  = static fn( array $more ): array => $t->ok( $t->ability( 'run-agent-task-batch', $more + [ 'tasks' => [ 'Fix it' ] ] + array_diff_key( $task, [ 'goal' => 1 ] ) ) )['runs'][0];
	$fanout = static fn( array $more ): array => $t->ok( $t->ability( 'run-agent-task-fanout', $more + [ 'workers' => [ [ 'id' => 'one', 'goal' => 'Fix it' ] ] ] + array_diff_key( $task, [ 'goal' => 1 ] ) ) )['runs'][0];
	$on     = [ 'placement' => 'cluster' ];

	$t->test(
		'placement: a value other than host and cluster is refused',
		static function () use ( $t, $fresh, $task ): void {
			$fresh();
			$t->same( 'ability_invalid_input', $t->ability( 'run-agent-task', [ 'placement' => 'moon' ] + $task )->get_error_code() );
			$t->same( true, $t->ok( $t->ability( 'run-agent-task', [ 'placement' => 'host' ] + $task ) )['success'], 'positive control' );
			[ $code, , $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'Fix it', '--plugin=sample', '--agent-command=php agent.php nothing', '--placement=moon' ] );
			$t->same( 1, $code );
			$t->contains( '(wp_codebox_input_invalid)', $err );
		}
	);
	if ( 'fake' === $t->phase ) {
		$log  = getenv( 'TEST_WORK' ) . '/placement-request.json';
		$sent = static function ( callable $call ) use ( $log ): ?string {
			is_file( $log ) && unlink( $log );
			putenv( "WP_CODEBOX_FAKE_REQUEST_LOG=$log" );
			try {
				$call();
			} finally {
				putenv( 'WP_CODEBOX_FAKE_REQUEST_LOG' );
			}
			return json_decode( (string) file_get_contents( $log ), true )['placement'] ?? null;
		};
		$t->test(
			'placement: a task and its option pass it to the extension, and a runtime profile gives a default',
			static function () use ( $t, $fresh, $task, $log, $sent, $on ): void {
				$fresh();
				$run = static fn( array $more ): ?string => $sent( static fn() => $t->ok( $t->ability( 'run-agent-task', $more + $task ) ) );
				$t->same( [ 'cluster', 'host', null ], [ $run( $on ), $run( [ 'placement' => 'host' ] ), $run( [] ) ] );
				$t->same( [ 'cluster', 'host' ], [ $run( [ 'runtime_profile' => $on ] ), $run( [ 'runtime_profile' => $on, 'placement' => 'host' ] ) ] );
				unlink( $log );
				[ $code, , $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'Fix it', '--plugin=sample', '--agent-command=php agent.php nothing', '--placement=cluster' ], [ 'WP_CODEBOX_FAKE_REQUEST_LOG' => $log ] );
				$t->same( [ 0, 'cluster' ], [ $code, json_decode( (string) file_get_contents( $log ), true )['placement'] ?? null ], $err );
			}
		);
		return;
	}
	$t->test(
		'placement: on a host without a configured cluster each call ends with the same code',
		static function () use ( $t, $fresh, $task, $batch, $fanout, $on ): void {
			$fresh();
			$t->error( 'wp_codebox_cluster_not_configured', 503, $t->ability( 'run-agent-task', $on + $task ) );
			$t->error( 'wp_codebox_cluster_not_configured', 503, $t->ability( 'run-agent-task', $on + [ 'wait' => false ] + $task ) );
			$t->same( [ 'wp_codebox_cluster_not_configured', 'wp_codebox_cluster_not_configured' ], [ $batch( $on )['error']['code'] ?? null, $fanout( $on )['error']['code'] ?? null ] );
			$t->same( [ true, true ], [ $batch( [] )['success'], $fanout( [] )['success'] ], 'positive control' );
			foreach ( [
				125 => [ 'run-agent-task', 'Fix it' ],
				1   => [ 'run-agent-task-batch', '--tasks=["Fix it"]' ],
			] as $status => $words ) {
				[ $code, , $err ] = $t->wp( [ 'codebox', ...$words, '--plugin=sample', '--agent-command=php agent.php nothing', '--placement=cluster' ] );
				$t->same( $status, $code, $err );
				$t->contains( 'its state directory has no cluster.json', $err );
			}
		}
	);
	$t->test(
		'placement: a configuration that cannot be used is named, without its path or content',
		static function () use ( $t, $fresh, $task, $on ): void {
			$fresh();
			$state = rtrim( Extension::info()['state_dir'], '/' );
			$file  = "$state/cluster.json";
			$write = static function ( string $text, int $mode ) use ( $state, $file ): void {
				file_put_contents( $file, $text );
				chmod( $file, $mode );
				chown( $file, fileowner( $state ) );
			};
			try {
				foreach ( [ [ '{"token":"canary-value"}', 0600, '`token`' ], [ '{}', 0644, 'chmod 0600' ] ] as [ $text, $mode, $named ] ) {
					$write( $text, $mode );
					$error = $t->ability( 'run-agent-task', $on + $task );
					$t->error( 'wp_codebox_config_invalid', 503, $error );
					$t->contains( $named, $error->get_error_message() );
					$t->true( ! str_contains( $error->get_error_message(), $state ) && ! str_contains( $error->get_error_message(), 'canary-value' ), $error->get_error_message() );
				}
				$t->same( true, $t->ok( $t->ability( 'run-agent-task', $task ) )['success'], 'positive control: a run on this host does not read the file' );
			} finally {
				unlink( $file );
			}
		}
	);
};
