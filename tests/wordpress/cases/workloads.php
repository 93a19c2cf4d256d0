<?php
/**
 * WordPress workloads and fuzz suites: they run in a sandbox and never in this WordPress.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;
use WPCodebox\Tests\Published;

require_once dirname( __DIR__ ) . '/published.php';

return static function ( Harness $t ): void {
	$home     = [ 'command' => 'wordpress.wp-cli', 'args' => [ 'command=option get home' ] ];
	$bad      = [ 'command' => 'wordpress.wp-cli', 'args' => [ 'command=nonsense' ] ];
	$workload = [ 'schema' => 'wp-codebox/wordpress-workload-run/v1', 'steps' => [ $home ] ];
	$full     = [ 'wordpress_version' => get_bloginfo( 'version' ), 'blueprint' => [], 'post_runtime_blueprint' => [], 'preview' => [], 'mounts' => [], 'runtime_stack_mounts' => [], 'runtime_overlays' => [], 'runtime_env' => [], 'secret_env' => [], 'staged_files' => [], 'artifacts' => [], 'before' => [ $bad + [ 'allowFailure' => true ] ], 'after' => [ $bad + [ 'advisory' => true ] ], 'metadata' => [ 'ticket' => 7 ] ] + $workload;
	$ask      = static fn( array $more ): mixed => $t->ability( 'run-wordpress-workload', $more + $workload );
	$states   = static fn( array $answer ): array => array_map( static fn( array $row ): string => $row['phase'] . '[' . $row['index'] . ']:' . $row['status'], $answer['steps'] );

	$t->test(
		'workload: the steps run in order in one sandbox, and each row has its output',
		static function () use ( $t, $full, $states ): void {
			$t->as( 'administrator' );
			$answer = Published::answers( $t, 'run-wordpress-workload', $t->ability( 'run-wordpress-workload', Published::takes( $t, 'run-wordpress-workload', $full ) ) );
			$t->same( [ true, 'completed', [ 'before[0]:failed', 'steps[0]:completed', 'after[0]:failed' ], [ 'ticket' => 7 ] ], [ $answer['success'], $answer['status'], $states( $answer ), $answer['metadata'] ], (string) wp_json_encode( $answer ) );
			$t->same( [ "http://localhost\n", 0, true ], [ $answer['steps'][1]['stdout'], $answer['steps'][1]['exitCode'], $answer['steps'][0]['allowFailure'] ] );
			$t->contains( 'nonsense', $answer['steps'][0]['stderr'] );
			$t->same( [ 'artifact-bundle', 1 ], [ $answer['artifacts'][0]['kind'], preg_match( '/^run_[0-9a-f]{32}$/', $answer['run']['runId'] ) ] );
			$t->same( 'ended', $t->ok( $t->ability( 'get-run', [ 'run_id' => $answer['run']['runId'] ] ) )['run']['status'], 'the sandbox still runs' );
		}
	);
	$t->test(
		'workload: after a failed step only the phase after runs, and the workload fails',
		static function () use ( $t, $ask, $home, $bad, $states ): void {
			$t->as( 'administrator' );
			$answer = Published::answers( $t, 'run-wordpress-workload', $ask( [ 'steps' => [ $bad, $home ], 'after' => [ $home ] ] ) );
			$t->same( [ false, 'failed', [ 'steps[0]:failed', 'steps[1]:skipped', 'after[0]:completed' ], 'wp_codebox_run_failed' ], [ $answer['success'], $answer['status'], $states( $answer ), $answer['error']['code'] ] );
			$wrong = $t->ok( $ask( [ 'steps' => [ [ 'command' => 'wordpress.wp-cli' ] ] ] ) );
			$t->same( [ 'failed', 'wp_codebox_input_invalid' ], [ $wrong['status'], $wrong['error']['code'] ], 'a command without its argument' );
		}
	);
	$t->test(
		'workload: what a sandbox cannot do is answered as unsupported before anything runs',
		static function () use ( $t, $ask, $home, $states ): void {
			$t->as( 'administrator' );
			$before = $t->ok( $t->ability( 'list-runs' ) )['total'];
			foreach ( [
				'blueprint'              => [ 'steps' => [ [ 'step' => 'runPHP' ] ] ],
				'post_runtime_blueprint' => [ 'landingPage' => '/' ],
				'preview'                => [ 'port' => 8080 ],
				'runtime_stack_mounts'   => [ [ 'source' => '/etc', 'target' => '/x' ] ],
				'runtime_overlays'       => [ [ 'x' => 1 ] ],
				'runtime_env'            => [ 'A' => 'b' ],
				'secret_env'             => [ 'TOKEN' ],
				'wordpress_version'      => '5.0',
			] as $field => $value ) {
				$answer = Published::answers( $t, 'run-wordpress-workload', $ask( [ $field => $value ] ) );
				$t->same( [ false, 'unsupported', [ 'steps[0]:skipped' ], [ $field ], [ 'wp_codebox_wordpress_workload_input_unsupported' ] ], [ $answer['success'], $answer['status'], $states( $answer ), array_column( $answer['diagnostics'], 'field' ), array_column( $answer['diagnostics'], 'code' ) ] );
			}
			$answer = Published::answers( $t, 'run-wordpress-workload', $ask( [ 'steps' => [ $home, [ 'command' => 'wordpress.no-such-command' ] ] ] ) );
			$t->same( [ 'unsupported', [ 'steps[0]:skipped', 'steps[1]:unsupported' ], 'wp_codebox_wordpress_workload_step_unsupported', 'steps[1].command' ], [ $answer['status'], $states( $answer ), $answer['diagnostics'][0]['code'], $answer['diagnostics'][0]['field'] ] );
			$agent = Published::answers( $t, 'run-wordpress-workload', $ask( [ 'steps' => [ [ 'command' => 'wp-codebox.agent-sandbox-run', 'args' => [ 'task=x' ] ] ] ] ) );
			$t->same( [ 'unsupported', [ 'steps[0]:unsupported' ], 'steps[0].command' ], [ $agent['status'], $states( $agent ), $agent['diagnostics'][0]['field'] ] );
			$t->contains( 'this site runs workloads without an agent; use the command line `wp-codebox run-wordpress-workload` or `wp-codebox agent-sandbox-run`', $agent['diagnostics'][0]['message'] );
			$t->same( $before, $t->ok( $t->ability( 'list-runs' ) )['total'], 'a run was started' );
			$allowed = $t->ok( $ask( [ 'steps' => [ [ 'command' => 'wordpress.no-such-command', 'allowFailure' => true ], $home ] ] ) );
			$t->same( [ true, [ 'steps[0]:unsupported', 'steps[1]:completed' ] ], [ $allowed['success'], $states( $allowed ) ] );
		}
	);
	$t->test(
		'workload: a user may mount and stage only code of the site, and an unknown field is refused by name',
		static function () use ( $t, $ask, $home ): void {
			$t->as( 'administrator' );
			$outside = sys_get_temp_dir() . '/workload-outside-' . getmypid();
			mkdir( $outside );
			file_put_contents( "$outside/secret.txt", 'x' );
			$t->error( 'wp_codebox_mount_denied', 403, $ask( [ 'mounts' => [ [ 'source' => $outside, 'target' => '/workspace/x' ] ] ] ) );
			$t->error( 'wp_codebox_mount_denied', 403, $ask( [ 'mounts' => [ [ 'source' => ABSPATH, 'target' => '/workspace/x' ] ] ] ) );
			$t->error( 'wp_codebox_mount_denied', 403, $ask( [ 'staged_files' => [ [ 'source' => "$outside/secret.txt", 'target' => '/workspace/secret.txt' ] ] ] ) );
			$t->error( 'wp_codebox_mount_denied', 403, $ask( [ 'staged_files' => [ [ 'source' => WP_PLUGIN_DIR . '/sample/../../../wp-config.php', 'target' => '/workspace/config.php' ] ] ] ) );
			$secret = WP_PLUGIN_DIR . '/sample/.env';
			file_put_contents( $secret, 'KEY=1' );
			try {
				$t->error( 'wp_codebox_mount_denied', 403, $ask( [ 'staged_files' => [ [ 'source' => $secret, 'target' => '/workspace/env.txt' ] ] ] ) );
			} finally {
				unlink( $secret );
			}
			$good = $t->ok( $ask( [ 'mounts' => [ [ 'source' => WP_PLUGIN_DIR . '/sample', 'target' => '/wordpress/wp-content/plugins/sample', 'mode' => 'readonly' ] ], 'staged_files' => [ [ 'source' => WP_PLUGIN_DIR . '/sample/sample.php', 'target' => '/workspace/sample.php' ] ] ] ) );
			$t->same( true, $good['success'], 'positive control' );
			$refused = $ask( [ 'steps' => [ $home + [ 'shell' => 'id' ] ] ] );
			$t->same( 'ability_invalid_input', $refused->get_error_code() );
			$t->contains( 'shell', $refused->get_error_message() );
			$t->error( 'wp_codebox_wordpress_workload_steps_missing', 400, $ask( [ 'steps' => [] ] ) );
			$t->error( 'wp_codebox_input_invalid', 400, $ask( [ 'steps' => [ [ 'command' => ' ' ] ] ] ) );
			$t->error( 'wp_codebox_input_invalid', 400, $ask( [ 'steps' => array_fill( 0, 60, $home ), 'after' => array_fill( 0, 60, $home ) ] ) );
			$t->as( 'editor' );
			$t->same( 'ability_invalid_permissions', $ask( [] )->get_error_code() );
			unlink( "$outside/secret.txt" );
			rmdir( $outside );
		}
	);
	$t->test(
		'workload: nothing runs in this WordPress',
		static function () use ( $t, $ask ): void {
			$t->as( 'administrator' );
			update_option( 'blogname', 'Untouched' );
			file_put_contents( WP_PLUGIN_DIR . '/sample/workload-probe.php', '<?php define( "WORKLOAD_RAN_HERE", 1 ); update_option( "blogname", "Touched" );' );
			$t->ok( $ask( [ 'steps' => [ [ 'command' => 'wordpress.run-workload', 'args' => [ 'type=php', 'path=' . WP_PLUGIN_DIR . '/sample/workload-probe.php' ] ], [ 'command' => 'wordpress.wp-cli', 'args' => [ 'command=option update blogname Touched' ] ] ] ] ) );
			$t->ok( $t->ability( 'run-fuzz-suite', [ 'schema' => 'wp-codebox/fuzz-suite/v1', 'id' => 's', 'runnerMode' => 'php-in-process', 'cases' => [ [ 'id' => 'a', 'target' => [ 'kind' => 'command', 'id' => 'wordpress.wp-cli' ], 'input' => [ 'command' => 'option update blogname Touched' ] ] ] ] ) );
			wp_cache_flush();
			$t->same( [ 'Untouched', false ], [ get_option( 'blogname' ), defined( 'WORKLOAD_RAN_HERE' ) ] );
			unlink( WP_PLUGIN_DIR . '/sample/workload-probe.php' );
		}
	);
	$t->test(
		'workload: declared files are returned, and a missing required one fails the workload',
		static function () use ( $t, $ask ): void {
			$t->as( 'administrator' );
			$make   = 'native' === $t->phase ? [ 'steps' => [ [ 'command' => 'wordpress.run-php', 'args' => [ 'code=file_put_contents( "/tmp/report.json", "{\"passed\":7}\n" );' ] ] ] ] : [];
			$answer = Published::answers( $t, 'run-wordpress-workload', $ask( $make + [ 'artifacts' => [ [ 'name' => 'report', 'path' => '/tmp/report.json', 'type' => 'test-report' ], [ 'path' => '/workspace/no-such-file', 'required' => false ] ] ] ) );
			$row    = $answer['artifacts'][0];
			$t->same( [ true, 'report', 'test-report', 13, hash( 'sha256', "{\"passed\":7}\n" ), "{\"passed\":7}\n", 2 ], [ $answer['success'], $row['name'] ?? null, $row['type'] ?? null, $row['size_bytes'] ?? null, $row['sha256'] ?? null, $row['content'] ?? null, count( $answer['artifacts'] ) ], (string) wp_json_encode( $answer ) );
			$missing = Published::answers( $t, 'run-wordpress-workload', $ask( [ 'artifacts' => [ [ 'path' => '/workspace/no-such-file' ], [ 'path' => '../etc/passwd', 'required' => false ] ] ] ) );
			$t->same( [ false, 'failed', 'wp_codebox_collection_failed', 'artifacts[0].path' ], [ $missing['success'], $missing['status'], $missing['error']['code'], $missing['diagnostics'][0]['field'] ] );
		}
	);
	$t->test(
		'workload: a plugin can run workloads, and its answer is checked',
		static function () use ( $t, $ask ): void {
			$t->as( 'administrator' );
			$with = static fn( mixed $answer ): mixed => $t->filtered( 'wp_codebox_wordpress_workload_runners', static fn(): array => [ [ 'id' => 'cloud', 'matches' => static fn( array $input ): bool => isset( $input['metadata']['cloud'] ), 'callback' => static fn(): mixed => $answer ] ], static fn(): mixed => $ask( [ 'metadata' => [ 'cloud' => 1 ] ] ), 2 );
			$good = Published::answers( $t, 'run-wordpress-workload', $with( [ 'status' => 'completed', 'steps' => [] ] ) );
			$t->same( [ true, 'completed', 'cloud' ], [ $good['success'], $good['status'], $good['run']['runner'] ] );
			foreach ( [ 'text', [], [ 'status' => 'ok' ], [ 'status' => 'failed', 'error' => [ 'code' => 'x' ] ], [ 'status' => 'failed', 'diagnostics' => [ 'text' ] ] ] as $wrong ) {
				$t->error( 'wp_codebox_wordpress_workload_provider_invalid_result', 502, $with( $wrong ) );
			}
			$t->error( 'cloud_down', 502, $with( new WP_Error( 'cloud_down', 'Down' ) ) );
		}
	);
	$suite = [
		'schema'       => 'wp-codebox/fuzz-suite/v1',
		'id'           => 'suite-1',
		'version'      => '1',
		'runnerMode'   => 'runtime-backed',
		'target'       => [ 'kind' => 'rest', 'id' => '/wp/v2/types' ],
		'cases'        => [
			[ 'id' => 'types' ],
			[ 'id' => 'cli', 'target' => [ 'kind' => 'command', 'id' => 'wordpress.wp-cli' ], 'input' => [ 'command' => 'option get home' ], 'description' => 'Home', 'metadata' => [ 'a' => 1 ] ],
		],
		'coveragePlan' => [ 'routes' => [ '/wp/v2/types' ] ],
		'metadata'     => [ 'ticket' => 7 ],
	];
	$t->test(
		'fuzz suite: each case runs as a command of the sandbox and has its own status',
		static function () use ( $t, $suite ): void {
			$t->as( 'administrator' );
			$answer = Published::answers( $t, 'run-fuzz-suite', $t->ability( 'run-fuzz-suite', Published::takes( $t, 'run-fuzz-suite', $suite ) ) );
			$t->same( [ true, 'passed', [ 'types' => 'passed', 'cli' => 'passed' ], 2, [ 'ticket' => 7 ], 'artifact-bundle' ], [ $answer['success'], $answer['status'], array_column( $answer['cases'], 'status', 'id' ), $answer['summary']['passed'], $answer['metadata'], $answer['artifactRefs'][0]['kind'] ], (string) wp_json_encode( $answer ) );
			$mixed = Published::answers( $t, 'run-fuzz-suite', $t->ability( 'run-fuzz-suite', [ 'cases' => [ [ 'id' => 'bad', 'target' => [ 'kind' => 'command', 'id' => 'wordpress.wp-cli' ], 'input' => [ 'args' => [ 'command=nonsense' ] ] ], [ 'id' => 'odd', 'target' => [ 'kind' => 'runtime-action', 'id' => 'click' ] ], ...$suite['cases'] ] ] + $suite ) );
			$t->same( [ false, 'failed', [ 'bad' => 'failed', 'odd' => 'unsupported', 'types' => 'passed', 'cli' => 'passed' ] ], [ $mixed['success'], $mixed['status'], array_column( $mixed['cases'], 'status', 'id' ) ] );
			$t->same( 'wp_codebox_fuzz_step_unsupported', $mixed['cases'][1]['error']['code'] );
		}
	);
	if ( 'native' !== $t->phase ) {
		$t->test(
			'fuzz suite: a response of the server with an error of its own fails the case',
			static function () use ( $t, $suite ): void {
				$t->as( 'administrator' );
				$answer = $t->ok( $t->ability( 'run-fuzz-suite', [ 'cases' => [ [ 'id' => 'crash', 'target' => [ 'kind' => 'rest', 'entrypoint' => '/broken' ] ] ] ] + $suite ) );
				$t->same( [ 'failed', 500 ], [ $answer['cases'][0]['status'], $answer['cases'][0]['result']['result']['status'] ] );
			}
		);
	}
	$t->test(
		'fuzz suite: a suite that needs this site, coverage or unknown targets is unsupported, and an invalid one is refused',
		static function () use ( $t, $suite ): void {
			$t->as( 'administrator' );
			foreach ( [ [ 'runnerMode' => 'php-in-process' ], [ 'requireCoverage' => true ], [ 'runnerMode' => 'auto', 'cases' => [ [ 'id' => 'a', 'target' => [ 'kind' => 'runtime', 'id' => 'x' ] ], [ 'id' => 'b', 'target' => [ 'kind' => 'command', 'id' => 'no.such' ] ] ] ] ] as $more ) {
				$answer = Published::answers( $t, 'run-fuzz-suite', $t->ability( 'run-fuzz-suite', $more + $suite ) );
				$t->same( [ false, 'unsupported', [], 2 ], [ $answer['success'], $answer['status'], $answer['artifactRefs'], $answer['summary']['unsupported'] ] );
			}
			$t->error( 'wp_codebox_fuzz_case_invalid', 400, $t->ability( 'run-fuzz-suite', [ 'cases' => [ [ 'id' => 'a' ], [ 'id' => 'a' ] ] ] + $suite ) );
			$t->error( 'wp_codebox_fuzz_case_invalid', 400, $t->ability( 'run-fuzz-suite', [ 'cases' => [] ] + $suite ) );
			$t->same( 'wp_codebox_fuzz_suite_runner_mode_unavailable', $t->ok( $t->ability( 'run-fuzz-suite', [ 'runner_mode' => 'php-in-process', 'runnerMode' => 'php-in-process' ] + $suite ) )['diagnostics'][0]['code'] );
			$t->error( 'wp_codebox_input_invalid', 400, $t->ability( 'run-fuzz-suite', [ 'runner_mode' => 'auto' ] + $suite ) );
			$t->same( 'ability_invalid_input', $t->ability( 'run-fuzz-suite', [ 'eval' => 'x' ] + $suite )->get_error_code() );
			$t->as( 'editor' );
			$t->same( 'ability_invalid_permissions', $t->ability( 'run-fuzz-suite', $suite )->get_error_code() );
		}
	);
};
