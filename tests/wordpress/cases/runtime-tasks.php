<?php
/**
 * Abilities that run a task or an agent package in a named runtime, or list what a task needs. A runtime is the sandboxes of
 * this host or what a plugin registers.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;
use WPCodebox\Tests\Published;

require_once dirname( __DIR__ ) . '/published.php';

return static function ( Harness $t ): void {
	$document = [ 'schema' => 'wp-codebox/task-input/v1', 'version' => 1, 'goal' => 'Fix it', 'target' => [ 'kind' => 'plugin' ], 'allowed_tools' => [], 'expected_artifacts' => [], 'structured_artifacts' => [], 'tool_bridge' => [], 'parent_tool_bridge' => [], 'sandbox_tool_policy' => [], 'policy' => [], 'context' => [ 'why' => 'x' ] ];
	$task     = [
		'schema'             => 'wp-codebox/runtime-task-request/v1',
		'task'               => ' Fix it ',
		'target_id'          => 'wp-codebox/host-playground',
		'mode'               => 'sandbox',
		'input'              => [ 'plugin' => 'sample', 'agent_command' => 'php runtime-agent.php fix' ],
		'task_input'         => $document,
		'sandbox_session_id' => 'session-1',
		'orchestrator'       => [ 'id' => 'o' ],
		'metadata'           => [ 'ticket' => 7 ],
		'options'            => [ 'find_renames' => true ],
	];
	$agent    = static function ( callable $body ): void {
		copy( getenv( 'TEST_FIXTURES' ) . '/sample/sample.php', WP_PLUGIN_DIR . '/sample/sample.php' );
		copy( getenv( 'TEST_FIXTURES' ) . '/agent.php', WP_PLUGIN_DIR . '/sample/runtime-agent.php' );
		try {
			$body();
		} finally {
			unlink( WP_PLUGIN_DIR . '/sample/runtime-agent.php' );
		}
	};

	$t->test(
		'runtime task: the runtime of this host runs the task like run-agent-task',
		static function () use ( $t, $task, $agent ): void {
			$t->as( 'administrator' );
			$agent(
				static function () use ( $t, $task ): void {
					$answer = Published::answers( $t, 'run-runtime-task', $t->ability( 'run-runtime-task', Published::takes( $t, 'run-runtime-task', $task ) ) );
					$t->same( [ true, 'completed', 'wp-codebox/host-playground', 'Fix it', 'session-1', [ 'id' => 'o' ], [ 'ticket' => 7 ] ], [ $answer['success'], $answer['status'], $answer['execution'], $answer['task'], $answer['sandbox_session_id'], $answer['orchestrator'], $answer['metadata'] ] );
					$t->same( [ 'wp-codebox/agent-task-run/v1', 'succeeded', [ 'why' => 'x', 'mode' => 'sandbox' ] ], [ $answer['result']['schema'], $answer['result']['run']['outcome'], $answer['result']['task_input']['context'] ] );
					$t->same( [ $answer['result']['artifacts'], $answer['result']['run']['run_id'] ], [ $answer['artifacts'], $answer['run']['run_id'] ] );
					$failed = Published::answers( $t, 'run-runtime-task', $t->ability( 'run-runtime-task', [ 'task' => [ 'prompt' => 'Fix it', 'agent_command' => 'php runtime-agent.php fix-and-fail' ] ] + $task ) );
					$t->same( [ false, 'failed', 'Fix it' ], [ $failed['success'], $failed['status'], $failed['result']['task'] ] );
					$handle = Published::answers( $t, 'run-runtime-task', $t->ability( 'run-runtime-task', [ 'options' => [ 'wait' => false ] ] + $task ) );
					$t->same( [ true, 'running', 'wp-codebox/run-handle/v1' ], [ $handle['success'], $handle['status'], $handle['result']['schema'] ] );
					$t->idle();
				}
			);
		}
	);
	$t->test(
		'runtime task: an unknown field, target or right of the caller is refused, also inside input and options',
		static function () use ( $t, $task ): void {
			$t->as( 'administrator' );
			$t->error( 'wp_codebox_runtime_task_unsupported_target', 422, $t->ability( 'run-runtime-task', [ 'target_id' => 'wp-codebox/browser-playground' ] + $task ) );
			$t->error( 'wp_codebox_runtime_task_target_required', 400, $t->ability( 'run-runtime-task', [ 'target_id' => ' ' ] + $task ) );
			$t->error( 'wp_codebox_runtime_task_request_invalid', 400, $t->ability( 'run-runtime-task', [ 'task' => '  ' ] + $task ) );
			foreach ( [ 'resolved_agent' => [ 'input' => [ 'resolved_agent' => [ 'argv' => [ 'sh' ] ] ] ], 'site' => [ 'options' => [ 'site' => 'other' ] ], 'denied' => [ 'task' => [ 'goal' => 'x', 'denied' => [] ] ], 'allowed_roots' => [ 'input' => [ 'allowed_roots' => [ '/' ] ] ] ] as $field => $more ) {
				$refused = $t->ability( 'run-runtime-task', $more + $task );
				$t->error( 'wp_codebox_input_invalid', 400, $refused );
				$t->contains( $field, $refused->get_error_message() );
			}
			$t->error( 'wp_codebox_raw_code_forbidden', 400, $t->ability( 'run-runtime-task', [ 'input' => [ 'plugin' => 'sample', 'agent_command' => 'true', 'code' => 'phpinfo();' ] ] + $task ) );
			$t->error( 'wp_codebox_mount_denied', 403, $t->ability( 'run-runtime-task', [ 'input' => [ 'agent_command' => 'true', 'mounts' => [ [ 'source' => ABSPATH, 'target' => '/workspace/site' ] ] ] ] + $task ) );
			$t->as( 'editor' );
			$t->same( 'ability_invalid_permissions', $t->ability( 'run-runtime-task', $task )->get_error_code() );
		}
	);
	$t->test(
		'runtime task: a plugin can provide a runtime, and its answer is checked',
		static function () use ( $t, $task ): void {
			$t->as( 'administrator' );
			$with = static fn( mixed $providers, string $target = 'other/runtime' ): mixed => $t->filtered( 'wp_codebox_runtime_task_providers', static fn(): mixed => $providers, static fn(): mixed => $t->ability( 'run-runtime-task', [ 'target_id' => $target ] + $task ), 2 );
			$says = static fn( mixed $answer ): array => [ [ 'id' => 'other', 'target_ids' => [ 'other/runtime' ], 'callback' => static fn( array $request ): mixed => is_callable( $answer ) ? $answer( $request ) : $answer ] ];
			$good = Published::answers( $t, 'run-runtime-task', $with( $says( static fn( array $request ): array => [ 'success' => true, 'status' => 'queued', 'result' => [ 'task' => $request['task'], 'password' => 'hunter2hunter2' ], 'upstream_refs' => [ 'job' => '7' ] ] ) ) );
			$t->same( [ true, 'queued', 'other', 'Fix it', '[redacted]', [ 'job' => '7' ] ], [ $good['success'], $good['status'], $good['execution'], $good['result']['task'], $good['result']['password'], $good['upstream_refs'] ] );
			$t->same( 'matched', $t->ok( $with( [ 'matched' => [ 'matches' => static fn( array $request ): bool => 'any/thing' === $request['target_id'], 'callback' => static fn(): array => [ 'status' => 'completed' ] ] ], 'any/thing' ) )['execution'] );
			$t->error( 'other_error', 502, $with( $says( new WP_Error( 'other_error', 'No' ) ) ) );
			foreach ( [ 'text', [], [ 'schema' => 'x/v1', 'status' => 'completed' ], [ 'status' => 7 ], [ 'events' => 'x' ] ] as $wrong ) {
				$t->error( 'wp_codebox_runtime_task_provider_invalid_result', 502, $with( $says( $wrong ) ) );
			}
			foreach ( [ 'text', [ [ 'id' => 'other' ] ], [ [ 'callback' => 'trim' ] ], [ 7 ] ] as $wrong ) {
				$t->error( 'wp_codebox_runtime_task_provider_invalid', 500, $with( $wrong ) );
			}
		}
	);
	$t->test(
		'runtime task: the REST route takes the request as its body, from users with the capability only',
		static function () use ( $t, $task ): void {
			$send = static function ( string $body ): array {
				$request = new WP_REST_Request( 'POST', '/wp-codebox/v1/runtime-task' );
				$request->set_header( 'Content-Type', 'application/json' );
				$request->set_body( $body );
				$response = rest_do_request( $request );
				return [ $response->get_status(), $response->get_data() ];
			};
			$t->as( 'administrator' );
			$good = $t->filtered( 'wp_codebox_runtime_task_providers', static fn(): array => [ [ 'id' => 'other', 'target_ids' => [ 'other/runtime' ], 'callback' => static fn(): array => [ 'status' => 'completed' ] ] ], static fn(): array => $send( (string) wp_json_encode( [ 'target_id' => 'other/runtime' ] + $task ) ) );
			$t->same( [ 200, 'other' ], [ $good[0], $good[1]['execution'] ] );
			$t->same( [ 422, 'wp_codebox_runtime_task_unsupported_target' ], [ ( $refused = $send( (string) wp_json_encode( [ 'target_id' => 'other/runtime' ] + $task ) ) )[0], $refused[1]['code'] ] );
			$t->same( 400, $send( '["x"]' )[0] );
			$t->same( 400, $send( '{"task":"x","target_id":"y","shell":"id"}' )[0] );
			$t->as( 'editor' );
			$t->same( 403, $send( '{}' )[0] );
			$t->as( 'nobody' );
			$t->same( 401, $send( '{}' )[0] );
		}
	);
	$package = [
		'schema'                => 'wp-codebox/runtime-package-task/v1',
		'package'               => [ 'slug' => 'writer', 'source' => WP_PLUGIN_DIR . '/sample/writer.json' ],
		'workflow'              => [ 'id' => 'writer/run', 'spec' => [ 'input' => [ 'style' => 'short' ] ] ],
		'input'                 => [ 'topic' => 'cats' ],
		'artifact_declarations' => [ [ 'name' => 'report' ] ],
		'output_projections'    => [ [ 'name' => 'topic', 'pointer' => '/outputs/given/topic' ] ],
		'required_artifacts'    => [ 'report' ],
		'metadata'              => [ 'ticket' => 7 ],
	];
	if ( 'native' !== $t->phase ) {
		$t->test(
			'runtime package: the workflow runs as an ability of a sandbox, without code of the site',
			static function () use ( $t, $package ): void {
				$t->as( 'administrator' );
				file_put_contents( $package['package']['source'], '{"slug":"writer"}' );
				$log    = getenv( 'TEST_WORK' ) . '/package-request.json';
				putenv( "WP_CODEBOX_FAKE_REQUEST_LOG=$log" );
				$answer = Published::answers( $t, 'run-runtime-package', $t->ability( 'run-runtime-package', Published::takes( $t, 'run-runtime-package', $package ) ) );
				putenv( 'WP_CODEBOX_FAKE_REQUEST_LOG' );
				$t->same( [ 'success', true, [ 'topic' => 'cats' ], 'report', 'artifact-bundle', 'wp-codebox/sandbox', 7 ], [ $answer['status'], $answer['success'], $answer['outputs'], $answer['artifacts'][0]['name'], $answer['artifacts'][1]['kind'], $answer['metadata']['runtime'], $answer['metadata']['ticket'] ] );
				$asked = json_decode( (string) file_get_contents( $log ), true );
				$t->same( [ [ 'kind' => 'ability', 'ability' => 'writer/run', 'input' => [ 'style' => 'short', 'topic' => 'cats' ] ], [ [ 'source' => $package['package']['source'], 'slug' => 'writer' ] ], [] ], [ $asked['agent'], $asked['agent_bundles'], $asked['mounts'] ] );
				$missing = Published::answers( $t, 'run-runtime-package', $t->ability( 'run-runtime-package', [ 'required_artifacts' => [ 'slides' ], 'output_projections' => [ [ 'name' => 'x', 'path' => 'outputs.nothing' ] ] ] + $package ) );
				$t->same( [ 'failed', [ 'wp_codebox_runtime_package_task_invalid', 'wp_codebox_collection_failed' ] ], [ $missing['status'], array_column( $missing['diagnostics'], 'code' ) ] );
				unlink( $package['package']['source'] );
			}
		);
	}
	$t->test(
		'runtime package: what cannot run is a failed result with the reason, and an incomplete request is refused',
		static function () use ( $t, $package ): void {
			$t->as( 'administrator' );
			foreach ( [
				'wp_codebox_runtime_package_source_missing'        => [ 'package' => [ 'slug' => 'writer', 'source' => 'https://example.org/writer.zip' ] ],
				'wp_codebox_runtime_package_workflow_unavailable'  => [ 'workflow' => [ 'id' => 'Default Workflow' ] ],
				'wp_codebox_runtime_package_task_invalid'          => [ 'workflow' => [ 'id' => 'writer/run', 'spec' => [ 'agent_command' => 'sh -c id' ] ] ],
			] as $code => $more ) {
				$answer = Published::answers( $t, 'run-runtime-package', $t->ability( 'run-runtime-package', $more + $package ) );
				$t->same( [ 'failed', false, [ $code ] ], [ $answer['status'], $answer['success'], array_column( $answer['diagnostics'], 'code' ) ] );
			}
			$t->error( 'wp_codebox_runtime_package_task_invalid', 400, $t->ability( 'run-runtime-package', [ 'package' => [ 'slug' => ' ', 'source' => 'x' ] ] + $package ) );
			$t->same( 'ability_invalid_input', $t->ability( 'run-runtime-package', [ 'run_as' => 'root' ] + $package )->get_error_code() );
			$t->as( 'editor' );
			$t->same( 'ability_invalid_permissions', $t->ability( 'run-runtime-package', $package )->get_error_code() );
		}
	);
	$t->test(
		'runtime package: a plugin can choose the runtime, and its answer is checked',
		static function () use ( $t, $package ): void {
			$t->as( 'administrator' );
			$run  = static fn(): mixed => $t->ability( 'run-runtime-package', [ 'required_artifacts' => [] ] + $package );
			$with = static fn( string $id, mixed $registry ): mixed => $t->filtered( 'wp_codebox_default_runtime_provider', static fn(): string => $id, static fn(): mixed => $t->filtered( 'wp_codebox_runtime_package_registry', static fn(): mixed => $registry, $run ), 1 );
			$good = Published::answers( $t, 'run-runtime-package', $with( 'cloud', [ 'cloud' => [ 'callback' => static fn( array $request ): array => [ 'status' => 'success', 'outputs' => [ 'slug' => $request['package']['slug'] ] ] ] ] ) );
			$t->same( [ 'success', [ 'slug' => 'writer' ], 'cloud' ], [ $good['status'], $good['outputs'], $good['metadata']['runtime'] ] );
			$odd = Published::answers( $t, 'run-runtime-package', $with( 'cloud', [ 'cloud' => [ 'callback' => static fn(): array => [ 'status' => 'success', 'diagnostics' => [ [ 'code' => 'x', 'message' => 'X', 'severity' => 2, 'field' => null ] ] ] ] ] ) );
			$t->same( [ [ 'code' => 'x', 'message' => 'X' ] ], $odd['diagnostics'] );
			$own = Published::answers( $t, 'run-runtime-package', $with( 'cloud', [ 'writer' => [ 'callback' => static fn(): WP_Error => new WP_Error( 'writer_down', 'Down' ) ] ] ) );
			$t->same( [ 'failed', [ 'writer_down' ] ], [ $own['status'], array_column( $own['diagnostics'], 'code' ) ] );
			foreach ( [ 'cloud' => 'wp_codebox_runtime_provider_unavailable', 'wp-codebox/run-runtime-package' => 'wp_codebox_runtime_provider_unavailable' ] as $id => $code ) {
				$t->same( [ $code ], array_column( $t->ok( $with( $id, [] ) )['diagnostics'], 'code' ) );
			}
			foreach ( [ 'text', [], [ 'status' => 'completed' ], [ 'status' => 'success', 'artifacts' => 'x' ], [ 'status' => 'success', 'outputs' => [ 1 ] ] ] as $wrong ) {
				$answer = Published::answers( $t, 'run-runtime-package', $with( 'cloud', [ 'cloud' => [ 'callback' => static fn(): mixed => $wrong ] ] ) );
				$t->same( [ 'failed', [ 'wp_codebox_runtime_provider_invalid_result' ] ], [ $answer['status'], array_column( $answer['diagnostics'], 'code' ) ] );
			}
		}
	);
	$t->test(
		'requirements: the answer says what a task needs and what this site lacks, without values and paths',
		static function () use ( $t ): void {
			$t->as( 'administrator' );
			$input  = [ 'runtime_provider' => 'acme', 'model' => 'm1', 'components' => [ 'sample', 'no-such-plugin' ], 'secret_env' => [ 'DEPLOY_TOKEN', 'NO_SUCH_SECRET' ], 'inherit' => [ 'connectors' => [ 'no-such-connector' ] ], 'capabilities' => [ 'agent-task:run', 'time-travel' ], 'metadata' => [ 'x' => 1 ] ];
			$answer = $t->filtered(
				'wp_codebox_secret_values',
				static fn(): array => [ 'DEPLOY_TOKEN' => [ 'value' => 'hunter2hunter2', 'hosts' => [ 'example.org' ] ] ],
				static fn(): array => Published::answers( $t, 'resolve-runtime-requirements', $t->ability( 'resolve-runtime-requirements', Published::takes( $t, 'resolve-runtime-requirements', $input ) ) )
			);
			$t->same( [ 'wp-codebox/runtime-requirements-readiness/v1', 'acme', 'm1', [ 'DEPLOY_TOKEN', 'NO_SUCH_SECRET' ] ], [ $answer['schema'], $answer['provider'], $answer['model'], $answer['secret_env'] ] );
			$t->same( [ 'sample' => 'available', 'no-such-plugin' => 'missing' ], array_column( $answer['components'], 'status', 'slug' ) );
			$t->same( [ 'blocked', false, 'missing', 'missing', 'missing', 'missing' ], [ $answer['availability']['status'], $answer['availability']['ready'], $answer['availability']['provider'], $answer['availability']['components'], $answer['availability']['secret_env'], $answer['availability']['connectors'] ] );
			$t->same( [ 'provider:acme', 'component:no-such-plugin', 'secret:NO_SUCH_SECRET', 'capability:time-travel' ], array_map( static fn( array $row ): string => $row['type'] . ':' . $row['name'], $answer['missing_adapters'] ) );
			$t->same( [ [ 'slug' => 'no-such-plugin' ] ], $answer['installable_components'] );
			$t->same( [ 'no-such-connector' ], array_column( $answer['pending_connectors'], 'name' ) );
			$t->true( ! str_contains( (string) wp_json_encode( $answer ), 'hunter2' ) && ! str_contains( (string) wp_json_encode( $answer, JSON_UNESCAPED_SLASHES ), WP_PLUGIN_DIR ), 'a value or a path is in the answer' );
			$ready = $t->ok( $t->ability( 'resolve-runtime-requirements', [ 'components' => [ [ 'slug' => 'sample' ] ] ] ) );
			$t->same( [ 'ready', 'available', 'not-required' ], [ $ready['availability']['status'], $ready['availability']['components'], $ready['availability']['secret_env'] ] );
		}
	);
	$t->test(
		'requirements: hostile names are refused, and a user without the capability gets nothing',
		static function () use ( $t ): void {
			$t->as( 'administrator' );
			foreach ( [ [ 'secret_env' => [ 'PATH; id' ] ], [ 'components' => [ '../../etc' ] ], [ 'components' => [ '' ] ], [ 'runtime_provider' => 'a', 'provider' => 'b' ] ] as $input ) {
				$t->error( 'wp_codebox_input_invalid', 400, $t->ability( 'resolve-runtime-requirements', $input ) );
			}
			$t->same( 'ability_invalid_input', $t->ability( 'resolve-runtime-requirements', [ 'no_such_field' => 1 ] )->get_error_code() );
			$t->true( ! is_wp_error( $t->ability( 'resolve-runtime-requirements' ) ), 'positive control: no input at all' );
			$t->as( 'editor' );
			$t->same( 'ability_invalid_permissions', $t->ability( 'resolve-runtime-requirements', [] )->get_error_code() );
		}
	);
};
