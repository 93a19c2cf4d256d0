<?php
/**
 * run-agent-task through the ability.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$plugin = WP_PLUGIN_DIR . '/sample';
	// An ability stages no host file: the agent and the check must be in the mounted code or in the guest.
	$agent  = static function ( string $what ) use ( $plugin ): array {
		copy( getenv( 'TEST_FIXTURES' ) . '/agent.php', $plugin . '/agent.php' );
		copy( getenv( 'TEST_FIXTURES' ) . '/check.php', $plugin . '/check.php' );
		return [
			'goal'          => 'Make the check pass',
			'plugin'        => 'sample',
			'agent_command' => 'php agent.php ' . $what,
		];
	};
	$tree   = static fn(): string => hash( 'sha256', implode( '', array_map( static fn( string $file ): string => $file . hash_file( 'sha256', $file ), [ $plugin . '/sample.php', $plugin . '/inc/more.php', $plugin . '/agent.php' ] ) ) );

	$t->test(
		'a successful run returns all fields and the ids of the caller, and leaves the site unchanged',
		static function () use ( $t, $agent, $tree ): void {
			$t->as( 'administrator' );
			$input  = $agent( 'fix' ) + [
				'checks'             => [ 'php check.php' ],
				'sandbox_session_id' => 'job-42-' . uniqid(),
				'session_id'         => 'conversation-7-' . uniqid(),
				'orchestrator'       => [
					'id'     => 'control-plane-' . uniqid(),
					'nested' => [ 'any' => 'thing' ],
				],
				'metadata'           => [ 'ticket' => 'T-1' ],
				'context'            => [ 'language' => 'en' ],
			];
			$before = $tree();
			$run    = $t->ok( $t->ability( 'run-agent-task', $input ) );
			$t->same( $before, $tree(), 'the site changed' );
			$t->same( [ true, 'wp-codebox/agent-task-run/v1', 'completed', 'succeeded', 0 ], [ $run['success'], $run['schema'], $run['status'], $run['run']['outcome'], $run['exit_code'] ] );
			$t->same( [ 'command' => 'completed', 'phase' => 'succeeded', 'agent_task' => 'succeeded' ], $run['statuses'] );
			$paths = array_column( $run['changed_files'], 'path' );
			$t->same( [ '/wordpress/wp-content/plugins/sample/inc/more.php', '/wordpress/wp-content/plugins/sample/sample.php' ], $paths );
			$t->same( [ [ 'php check.php', 'passed' ] ], array_map( static fn( array $check ): array => [ $check['command'], $check['status'] ], $run['checks'] ) );
			$t->same( [ $input['sandbox_session_id'], 'completed', 'external-orchestrator', $input['session_id'], $input['orchestrator'] ], [ $run['session']['id'], $run['session']['status'], $run['session']['persistence'], $run['session']['agent_session_id'], $run['session']['orchestrator'] ] );
			$t->same( [ 'Make the check pass', 'wp-codebox/task-input/v1', [ 'language' => 'en' ] ], [ $run['task'], $run['task_input']['schema'], $run['task_input']['context'] ] );
			$t->same( $run['artifacts'], $run['completion_outcome']['provenance']['artifactDirectory'] );
			$t->same( 'promote', $run['completion_outcome']['nextAction'] );
			$t->same( [ true, 'full' ], [ $run['agent_result']['actionable'], $run['isolation']['level'] ] );
			$t->true( $run['cost']['wall_ms'] > 0 && is_dir( $run['artifacts'] ) && is_file( $run['paths']['patch'] ), 'cost or bundle is missing' );
			$stored = '';
			foreach ( new RecursiveIteratorIterator( new RecursiveDirectoryIterator( $run['artifacts'], FilesystemIterator::SKIP_DOTS ) ) as $file ) {
				$stored .= (string) file_get_contents( $file->getPathname() );
			}
			foreach ( [ $input['sandbox_session_id'], $input['session_id'], $input['orchestrator']['id'] ] as $echoed ) {
				$t->true( ! str_contains( $stored, $echoed ), "the bundle stores $echoed" );
			}
			$t->contains( 'T-1', $stored );
		}
	);
	$t->test(
		'the session id is the run id unless the caller passes one',
		static function () use ( $t, $agent ): void {
			$t->as( 'administrator' );
			$run = $t->ok( $t->ability( 'run-agent-task', $agent( 'nothing' ) ) );
			$t->same( $run['run']['run_id'], $run['session']['id'] );
			$t->same( [ true, 'no_op', 0, false, 'no_file_changes' ], [ $run['success'], $run['run']['outcome'], $run['exit_code'], $run['agent_result']['actionable'], $run['agent_result']['noOpReason'] ] );
			$run = $t->ok( $t->ability( 'run-agent-task', $agent( 'nothing' ) + [ 'session_id' => 'c-1' ] ) );
			$t->same( 'c-1', $run['session']['id'] );
		}
	);
	$t->test(
		'a failed agent that changed files returns data, not an error, and the bundle is kept',
		static function () use ( $t, $agent ): void {
			$t->as( 'administrator' );
			$run = $t->ok( $t->ability( 'run-agent-task', $agent( 'fix-and-fail' ) ) );
			$t->same( [ false, 'failed', 'failed', 1, 'partial', 'review' ], [ $run['success'], $run['status'], $run['run']['outcome'], $run['exit_code'], $run['completion_outcome']['status'], $run['completion_outcome']['nextAction'] ] );
			$t->same( [ 2, 'wp_codebox_run_failed' ], [ count( $run['changed_files'] ), $run['error']['code'] ] );
			$t->true( is_dir( $run['artifacts'] ), 'the bundle is gone' );
		}
	);
	$t->test(
		'a failed check makes the run partial',
		static function () use ( $t, $agent ): void {
			$t->as( 'administrator' );
			$run = $t->ok( $t->ability( 'run-agent-task', [ 'agent_success_codes' => [ 0, 1 ], 'checks' => [ 'php check.php' ] ] + $agent( 'style' ) ) );
			$t->same( [ false, 'completed', 'partial', 3, 'failed' ], [ $run['success'], $run['status'], $run['run']['outcome'], $run['exit_code'], $run['checks'][0]['status'] ] );
		}
	);
	$t->test(
		'agent_success_codes of the task decide which exit statuses are a success',
		static function () use ( $t, $agent ): void {
			$t->as( 'administrator' );
			$t->same( 'failed', $t->ok( $t->ability( 'run-agent-task', $agent( 'style' ) ) )['run']['outcome'] );
			$t->same( 'succeeded', $t->ok( $t->ability( 'run-agent-task', $agent( 'style' ) + [ 'agent_success_codes' => [ 0, 1 ] ] ) )['run']['outcome'] );
		}
	);
	$t->test(
		'a run that exceeds its deadline ends as timed_out with exit status 124',
		static function () use ( $t, $agent ): void {
			$t->as( 'administrator' );
			$run = $t->ok( $t->ability( 'run-agent-task', $agent( 'sleep' ) + [ 'limits' => [ 'wall_clock_ms' => 6000 ] ] ) );
			$t->same( [ 'timed_out', 124, 'timed_out', 'timeout', 'wp_codebox_run_timeout' ], [ $run['run']['outcome'], $run['exit_code'], $run['statuses']['command'], $run['statuses']['agent_task'], $run['error']['code'] ] );
			$t->same( true, $run['diagnostics']['outcome_retryable'] );
		}
	);
	$t->test(
		'a task can name an agent of the settings, and a filter can set the default agent',
		static function () use ( $t, $agent ): void {
			$t->as( 'administrator' );
			$agent( 'fix' );
			$stored = [
				'fixer'  => [ 'command' => 'php agent.php fix' ],
				'styler' => [
					'command'       => 'php agent.php style',
					'success_codes' => [ 1 ],
				],
			];
			update_site_option( 'wp_codebox_agents', $stored );
			// An invalid row that bypassed the settings, as after a database import.
			$imported = static fn(): array => $stored + [ 'broken' => 'no row' ];
			add_filter( 'pre_site_option_wp_codebox_agents', $imported );
			$task = [
				'goal'   => 'x',
				'plugin' => 'sample',
			];
			$t->same( 'succeeded', $t->ok( $t->ability( 'run-agent-task', $task + [ 'agent' => 'styler' ] ) )['run']['outcome'] );
			$t->error( 'wp_codebox_agent_missing', 400, $t->ability( 'run-agent-task', $task + [ 'agent' => 'broken' ] ) );
			$t->error( 'wp_codebox_agent_missing', 400, $missing = $t->ability( 'run-agent-task', $task ) );
			$t->same( 3, count( $missing->get_error_data()['hints'] ), 'the number of hints' );
			$default = static fn(): string => 'fixer';
			add_filter( 'wp_codebox_default_agent', $default );
			$t->same( 'succeeded', $t->ok( $t->ability( 'run-agent-task', $task ) )['run']['outcome'] );
			remove_filter( 'wp_codebox_default_agent', $default );
			remove_filter( 'pre_site_option_wp_codebox_agents', $imported );
			$t->same( 'succeeded', $t->ok( $t->ability( 'run-agent-task', $task + [ 'agent' => 'styler' ] ) )['run']['outcome'], 'the agent of the stored setting' );
			delete_site_option( 'wp_codebox_agents' );
		}
	);
	$outside = getenv( 'TEST_WORK' ) . '/outside';
	$refused = [
		'no goal'                                     => [ [ 'goal' => null ], 'wp_codebox_task_missing', 400 ],
		'a blank goal'                                => [ [ 'goal' => " \n" ], 'wp_codebox_task_missing', 400 ],
		'raw PHP code'                                => [ [ 'code' => 'echo 1;' ], 'wp_codebox_raw_code_forbidden', 400 ],
		'a raw PHP code file'                         => [ [ 'code_file' => '/tmp/x.php' ], 'wp_codebox_raw_code_forbidden', 400 ],
		'no mount'                                    => [ [ 'plugin' => null ], 'wp_codebox_mount_missing', 400 ],
		'an unknown plugin'                           => [ [ 'plugin' => 'nope' ], 'wp_codebox_mount_source_invalid', 400 ],
		'a plugin of a single file'                   => [ [ 'plugin' => 'hello' ], 'wp_codebox_mount_source_invalid', 400 ],
		'git history of a plugin outside a work tree' => [ [ 'git' => 'history' ], 'wp_codebox_git_unavailable', 400 ],
		'git history of a mount outside a work tree'  => [ [ 'mounts' => [ [ 'source' => $plugin, 'target' => '/workspace/x', 'git' => 'history' ] ] ], 'wp_codebox_git_unavailable', 400 ],
		'two agents'                                  => [ [ 'agent' => 'x' ], 'wp_codebox_input_invalid', 400 ],
		'a limit out of range'                        => [ [ 'limits' => [ 'processes' => 1 ] ], 'wp_codebox_limit_invalid', 400 ],
		'an unrestricted network'                     => [ [ 'network' => 'allow' ], 'wp_codebox_policy_unenforceable', 422 ],
		'a malformed policy'                          => [ [ 'policy' => [ 'network' => 'maybe' ] ], 'runtime-policy-invalid', 400 ],
		'a mount of the site'                         => [ [ 'plugin' => null, 'mounts' => [ [ 'source' => ABSPATH, 'target' => '/workspace/x' ] ] ], 'wp_codebox_mount_denied', 403 ],
		'a mount of the content directory'            => [ [ 'plugin' => null, 'mounts' => [ [ 'source' => WP_CONTENT_DIR, 'target' => '/workspace/x' ] ] ], 'wp_codebox_mount_denied', 403 ],
		'a mount of a parent directory of the site'   => [ [ 'plugin' => null, 'mounts' => [ [ 'source' => dirname( ABSPATH ), 'target' => '/workspace/x' ] ] ], 'wp_codebox_mount_denied', 403 ],
		'a mount outside the allowed directories'     => [ [ 'plugin' => null, 'mounts' => [ [ 'source' => $outside, 'target' => '/workspace/x' ] ] ], 'wp_codebox_mount_denied', 403 ],
	];
	if ( ! is_dir( $outside ) ) {
		mkdir( $outside );
		chmod( $outside, 0755 );
		file_put_contents( $outside . '/a.txt', "a\n" );
	}
	foreach ( $refused as $name => [ $change, $code, $status ] ) {
		$t->test(
			"a task is refused: $name",
			static function () use ( $t, $agent, $change, $code, $status ): void {
				$t->as( 'administrator' );
				$input = array_filter( array_merge( $agent( 'nothing' ), $change ), static fn( mixed $value ): bool => null !== $value );
				$t->error( $code, $status, $t->ability( 'run-agent-task', $input ) );
			}
		);
	}
	$t->test(
		'a request without input is refused for its missing goal',
		static function () use ( $t ): void {
			$t->as( 'administrator' );
			$t->error( 'wp_codebox_task_missing', 400, $t->ability( 'run-agent-task' ) );
		}
	);
	$t->test(
		'an unknown field is refused by the schema',
		static function () use ( $t, $agent ): void {
			$t->as( 'administrator' );
			foreach ( [ 'wp_codebox_bin' => '/tmp/x', 'preview_lease' => [] ] as $field => $value ) {
				$t->same( 'ability_invalid_input', $t->ability( 'run-agent-task', $agent( 'nothing' ) + [ $field => $value ] )->get_error_code(), $field );
			}
			$t->error( 'wp_codebox_input_invalid', 400, $t->ability( 'run-agent-task', $agent( 'nothing' ) + [ 'artifacts_path' => '/tmp' ] ) );
			$t->error( 'wp_codebox_mount_denied', 403, $t->ability( 'run-agent-task', $agent( 'nothing' ) + [ 'staged_files' => [ [ 'source' => '/etc/passwd', 'target' => '/run/codebox/staged/x' ] ] ] ) );
			$t->same( 'no_op', $t->ok( $t->ability( 'run-agent-task', $agent( 'nothing' ) ) )['run']['outcome'], 'positive control' );
		}
	);
	$t->test(
		'a task without a mount is refused with hints that name installed plugins and themes',
		static function () use ( $t ): void {
			$t->as( 'administrator' );
			$error = $t->ability( 'run-agent-task', [ 'goal' => 'x', 'agent_command' => 'true' ] );
			$t->contains( 'sample', implode( ' ', $error->get_error_data()['hints'] ) );
			$t->contains( 'twentytwentyfive', implode( ' ', $error->get_error_data()['hints'] ) );
		}
	);
};
