<?php
/**
 * `wp codebox run-runtime-task`, `run-runtime-package`, `run-wordpress-workload`, `run-fuzz-suite` and
 * `resolve-runtime-requirements`.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$call = static function ( array $arguments, array $options = [] ) use ( $t ): array {
		[ $code, $out, $err ] = $t->wp( [ 'codebox', ...$arguments ], [], $options );
		return [ $code, json_decode( $out, true ), $err ];
	};

	$t->test(
		'cli: run-wordpress-workload prints the result as JSON, and its exit status is that of the first error',
		static function () use ( $t, $call ): void {
			$workload = [ 'schema' => 'wp-codebox/wordpress-workload-run/v1', 'steps' => [ [ 'command' => 'wordpress.wp-cli', 'args' => [ 'command=option get home' ] ] ] ];
			[ $code, $answer ] = $call( [ 'run-wordpress-workload', '--input-file=-', '--metadata={"ticket":7}' ], [ 'stdin' => (string) wp_json_encode( $workload ) ] );
			$t->same( [ 0, 'completed', "http://localhost\n", [ 'ticket' => 7 ] ], [ $code, $answer['status'], $answer['steps'][0]['stdout'], $answer['metadata'] ] );
			[ $code, $answer ] = $call( [ 'run-wordpress-workload', '--input-json=' . wp_json_encode( [ 'wordpress_version' => '5.0' ] + $workload ) ] );
			$t->same( [ 1, 'unsupported' ], [ $code, $answer['status'] ] );
			[ $code, , $err ] = $call( [ 'run-wordpress-workload', '--input-json={"stepz":[]}' ] );
			$t->same( 1, $code );
			$t->contains( 'stepz', $err );
			[ $code, , $err ] = $call( [ 'run-wordpress-workload', '--input-file=/no/such/file' ] );
			$t->same( 1, $code );
			$t->contains( '/no/such/file', $err );
			$t->same( 126, $call( [ 'run-wordpress-workload', '--input-json=' . wp_json_encode( $workload ), '--user=editor' ] )[0] );
			$t->same( 0, $call( [ 'run-wordpress-workload', '--input-json=' . wp_json_encode( $workload ), '--user=admin' ] )[0], 'positive control' );
		}
	);
	$t->test(
		'cli: run-runtime-task takes the task as text or object, and flags override the file',
		static function () use ( $t, $call ): void {
			copy( getenv( 'TEST_FIXTURES' ) . '/sample/sample.php', WP_PLUGIN_DIR . '/sample/sample.php' );
			copy( getenv( 'TEST_FIXTURES' ) . '/agent.php', WP_PLUGIN_DIR . '/sample/cli-agent.php' );
			$input = '--input={"plugin":"sample","agent_command":"php cli-agent.php fix"}';
			[ $code, $answer ] = $call( [ 'run-runtime-task', '--task=Fix it', '--target-id=wp-codebox/host-playground', $input, '--input-json={"task":"Other"}', '--sandbox-session-id=s-1' ] );
			$t->same( [ 0, 'completed', 'Fix it', 's-1' ], [ $code, $answer['status'], $answer['task'], $answer['sandbox_session_id'] ] );
			[ $code, $answer ] = $call( [ 'run-runtime-task', '--task={"goal":"Fix it"}', '--target-id=wp-codebox/host-playground', str_replace( ' fix', ' fix-and-fail', $input ) ] );
			$t->same( [ 1, 'failed', [ 'goal' => 'Fix it' ] ], [ $code, $answer['status'], $answer['task'] ] );
			[ $code, , $err ] = $call( [ 'run-runtime-task', '--task=x', '--target-id=other/runtime' ] );
			$t->same( 1, $code );
			$t->contains( '(wp_codebox_runtime_task_unsupported_target)', $err );
			unlink( WP_PLUGIN_DIR . '/sample/cli-agent.php' );
		}
	);
	$t->test(
		'cli: resolve-runtime-requirements, run-runtime-package and run-fuzz-suite print their answers',
		static function () use ( $t, $call ): void {
			[ $code, $answer ] = $call( [ 'resolve-runtime-requirements', '--components=sample,no-such-plugin', '--secret-env=NO_SUCH_SECRET', '--inherit={"connectors":[]}' ] );
			$t->same( [ 0, 'blocked', [ 'no-such-plugin', 'NO_SUCH_SECRET' ] ], [ $code, $answer['availability']['status'], array_column( $answer['missing_adapters'], 'name' ) ] );
			[ $code, $answer ] = $call( [ 'run-runtime-package', '--package={"slug":"a","source":"nowhere"}', '--workflow={"id":"a/b"}', '--input={}', '--input-json={"schema":"wp-codebox/runtime-package-task/v1","artifact_declarations":[],"required_artifacts":[]}' ] );
			$t->same( [ 1, 'failed', 'wp_codebox_runtime_package_source_missing' ], [ $code, $answer['status'], $answer['diagnostics'][0]['code'] ] );
			[ $code, $answer ] = $call( [ 'run-fuzz-suite', '--suite={"schema":"wp-codebox/fuzz-suite/v1","id":"s","cases":[]}', '--cases=[{"id":"a"}]', '--runner-mode=php-in-process', '--format=json' ] );
			$t->same( [ 1, 'unsupported', [ 'a' ] ], [ $code, $answer['status'], array_column( $answer['cases'], 'id' ) ] );
		}
	);
};
