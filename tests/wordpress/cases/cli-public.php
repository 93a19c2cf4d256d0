<?php
/**
 * WP-CLI with the public flags: --artifact-id, --input-file, --input-json, fields by their names, JSON envelopes.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$cli  = static fn( string ...$arguments ): array => $t->wp( [ 'codebox', ...$arguments ] );
	$json = static function ( string ...$arguments ) use ( $t, $cli ): array {
		[ $code, $out, $err ] = $cli( ...[ ...$arguments, '--format=json' ] );
		$t->same( 0, $code, implode( ' ', $arguments ) . "\n" . $err );
		return json_decode( $out, true );
	};

	$t->test(
		'artifacts commands take the id as argument, as --artifact-id or in the JSON input, and print the envelope',
		static function () use ( $t, $cli, $json ): void {
			$run  = $t->made()['run']['run_id'];
			$file = getenv( 'TEST_WORK' ) . '/artifact-input.json';
			file_put_contents( $file, (string) json_encode( [ 'artifact_id' => $run ] ) );
			foreach ( [ [ $run ], [ "--artifact-id=$run" ], [ "--input-file=$file" ], [ '--input-json={"artifact_id":"' . $run . '"}' ], [ '--input-json={"artifact_id":"no"}', "--artifact-id=$run" ] ] as $how ) {
				$got = $json( 'artifacts', 'get', ...$how );
				$t->same( [ 'wp-codebox/artifact/v1', true, $run ], [ $got['schema'], $got['success'], $got['artifact']['run_id'] ], implode( ' ', $how ) );
			}
			$t->same( 'wp-codebox/artifact-inspection/v1', $json( 'artifacts', 'inspect', "--artifact-id=$run" )['schema'] );
			$plan = $json( 'artifacts', 'preflight-apply', "--artifact-id=$run", '--approved-files=sample.php,inc/more.php' );
			$t->same( 'wp-codebox/artifact-apply-preflight/v1', $plan['schema'] );
			$again = $json( 'artifacts', 'preflight-apply', '--input-json=' . json_encode( [ 'artifact_id' => $run, 'approved_files' => $plan['approved_files'], 'approver' => 'jo' ] ) );
			$t->same( [ $plan['approved_files'], 'jo' ], [ $again['approved_files'], $again['payload']['approver'] ?? 'jo' ] );
			$t->same( 'wp-codebox/artifact/v1', $json( 'artifacts', 'discard', "--artifact-id=$run", '--yes' )['schema'] );
		}
	);
	$t->test(
		'artifacts list prints rows with id in JSON, and a command without an id or with two is refused',
		static function () use ( $t, $cli, $json ): void {
			$made = $t->made();
			$rows = $json( 'artifacts', 'list' );
			$t->true( array_is_list( $rows ), 'rows' );
			$t->same( [ $made['artifact_id'], $made['run']['run_id'] ], [ $rows[0]['id'], $rows[0]['run_id'] ] );
			foreach ( [ [ 'artifacts', 'get' ], [ 'artifacts', 'apply', '--all' ], [ 'artifacts', 'discard', '--yes' ] ] as $command ) {
				[ $code, , $err ] = $cli( ...$command );
				$t->same( 1, $code );
				$t->contains( '(wp_codebox_artifact_id_missing)', $err );
			}
			$t->contains( '(wp_codebox_input_invalid)', $cli( 'artifacts', 'get', 'x', '--artifact-id=y' )[2] );
			[ $code, $out, $err ] = $cli( 'artifacts', 'get', '--input-json={"artifact_id":"x","artifacts_path":"/tmp"}', '--format=json' );
			$t->same( [ 1, 'artifacts_path' ], [ $code, json_decode( $out, true )['error']['data']['field'] ], $err );
		}
	);
	$t->test(
		'run-agent-task takes any field by its name, as JSON, a list, a number or a text',
		static function () use ( $t, $cli, $json ): void {
			$t->made( 'nothing' );
			$task = [ 'run-agent-task', 'Look', '--plugin=sample', '--agent-command=php agent.php nothing' ];
			$run  = $json( ...[ ...$task, '--target={"kind":"plugin"}', '--expected-artifacts=patch, report', '--task-timeout-seconds=60', '--mode=sandbox', '--wp=latest', '--input-json={"context":{"ticket":7}}' ] );
			$t->same( 'wp-codebox/agent-task-run/v1', $run['schema'] );
			$t->same( [ [ 'kind' => 'plugin' ], [ 'patch', 'report' ], [ 'ticket' => 7, 'mode' => 'sandbox' ] ], [ $run['task_input']['target'], $run['task_input']['expected_artifacts'], $run['task_input']['context'] ] );
			foreach ( [ '--preview-port=8080' => 'preview_port', '--artifacts-path=/tmp' => 'artifacts_path', '--taget={}' => 'target', '--target=x' => '--target', '--policy=fail' => '--policy', '--workers=[]' => 'workers' ] as $flag => $named ) {
				[ $code, , $err ] = $cli( ...[ ...$task, $flag ] );
				$t->same( 1, $code, $flag );
				$t->contains( $named, $err );
				$t->contains( '(wp_codebox_input_invalid)', $err );
			}
		}
	);
	$t->test(
		'runtime descriptor and wordpress-fuzz-runtime-contract print their documents as JSON',
		static function () use ( $t, $cli ): void {
			foreach ( [ [ [ 'runtime', 'descriptor' ], 'wp-codebox/runtime-descriptor/v1' ], [ [ 'wordpress-fuzz-runtime-contract' ], 'wp-codebox/wordpress-fuzz-runtime-contract/v1' ] ] as [ $command, $schema ] ) {
				[ $code, $out, $err ] = $cli( ...$command );
				$t->same( [ 0, $schema ], [ $code, json_decode( $out, true )['schema'] ?? null ], $err );
			}
		}
	);
};
