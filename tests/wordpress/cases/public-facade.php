<?php
/**
 * The published methods of WP_Codebox_API: name, parameters and return type of each, and what the methods answer
 * that have no ability behind them.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	// Published methods by signature. Callers pass arguments by position or by name.
	$published = [
		'(array $input = []): array' => [
			'runtime_descriptor',
			'wordpress_fuzz_runtime_contract',
		],
		'(): array' => [
			'runtime_contract_manifest',
			'public_abilities',
			'public_contract_schemas',
			'public_contract_primitives',
		],
		'(string $ability_name, array $input = []): WP_Error|array' => [
			'execute_ability',
		],
		'(array $input): WP_Error|array' => [
			'run_agent_task',
			'run_agent_task_batch',
			'run_agent_task_fanout',
			'run_runtime_task',
			'run_wordpress_workload',
			'run_runtime_package',
			'run_fuzz_suite',
			'create_browser_session',
			'create_browser_task_contract',
			'create_browser_materializer_contract',
			'create_browser_contained_site_session',
			'get_browser_session_status',
			'browser_contained_site_status',
			'preview_reuse_decision',
			'open_browser_session',
			'open_or_create_browser_session',
			'open_or_create_browser_contained_site',
			'snapshot_browser_contained_site',
			'export_browser_contained_site',
			'plan_browser_contained_site_apply',
			'apply_browser_contained_site_plan',
			'browser_contained_site_sync_delegation',
			'browser_contained_site_sync_source_connect',
			'browser_contained_site_sync_manifest',
			'browser_contained_site_sync_export',
			'browser_contained_site_sync_apply_plan_generate',
			'browser_contained_site_sync_apply_plan_validate',
			'browser_contained_site_sync_apply',
			'request_host_delegation',
			'get_artifact',
			'inspect_artifact',
			'normalize_artifact_bundle',
			'persist_artifact',
			'import_artifact',
			'reimport_artifact',
			'preflight_artifact_apply',
			'stage_artifact_apply',
			'apply_approved_artifact',
		],
		'(array $input): array' => [
			'resolve_runtime_requirements',
			'prepare_runner_workspace',
			'capture_runner_workspace',
			'run_runner_workspace_command',
			'publish_runner_workspace',
		],
		'(array $input = []): WP_Error|array' => [
			'list_artifacts',
		],
	];

	$t->test(
		'every published method of WP_Codebox_API exists with its parameters and its return type',
		static function () use ( $t, $published ): void {
			foreach ( $published as $signature => $methods ) {
				foreach ( $methods as $name ) {
					$method     = new ReflectionMethod( 'WP_Codebox_API', $name );
					$parameters = array_map(
						static fn( ReflectionParameter $parameter ): string => $parameter->getType() . ' $' . $parameter->getName() . ( $parameter->isOptional() ? ' = []' : '' ),
						$method->getParameters()
					);
					$t->true( $method->isStatic() && $method->isPublic(), $name );
					$t->same( $signature, '(' . implode( ', ', $parameters ) . '): ' . $method->getReturnType(), $name );
				}
			}
		}
	);
	$t->test(
		'an unknown ability about browsers is refused',
		static function () use ( $t ): void {
			$t->error( 'wp_codebox_api_ability_not_supported', 404, WP_Codebox_API::execute_ability( 'wp-codebox/create-browser-nothing' ) );
		}
	);
	$t->test(
		'a method with another name runs the ability behind it, also with a named argument',
		static function () use ( $t ): void {
			foreach ( [
				'preflight_artifact_apply'  => 'apply_artifact_preflight',
				'preflight_apply_artifact'  => 'apply_artifact_preflight',
				'import_artifact'           => 'import_artifact_bundle',
				'reimport_artifact'         => 'reimport_artifact_bundle',
				'persist_artifact'          => 'persist_browser_artifact',
				'normalize_artifact_bundle' => 'normalize_browser_artifact_bundle',
			] as $other => $own ) {
				$direct = WP_Codebox_API::$own( [] );
				$t->true( is_wp_error( $direct ), $own );
				$t->same( $direct->get_error_code(), WP_Codebox_API::$other( input: [] )->get_error_code(), $other );
			}
			$t->same( true, $t->ok( WP_Codebox_API::execute_ability( ability_name: 'wp-codebox/list-artifacts', input: [] ) )['success'] );
		}
	);
	$t->test(
		'a method that answers arrays turns an error into an array with its code',
		static function () use ( $t ): void {
			$methods = [ 'prepare_runner_workspace', 'capture_runner_workspace', 'run_runner_workspace_command', 'publish_runner_workspace' ];
			foreach ( $methods as $method ) {
				$answer = WP_Codebox_API::$method( [ 'no_such_field' => 1 ] );
				$t->same( false, $answer['success'], $method );
				$t->true( str_starts_with( $answer['error']['code'], 'wp_codebox_' ) && '' !== $answer['error']['message'], $method );
				$t->true( in_array( $answer['failure_type'], [ 'invalid_request', 'backend_unavailable' ], true ), $method );
			}
		}
	);
	$t->test(
		'the runtime descriptor names the abilities, the readiness and the digest of this installation',
		static function () use ( $t ): void {
			$descriptor = WP_Codebox_API::runtime_descriptor();
			$t->same( 'wp-codebox/runtime-descriptor/v1', $descriptor['schema'] );
			$t->same( WPCodebox\VERSION, $descriptor['version'] );
			$t->same( 'ready', $descriptor['readiness']['status'] );
			$t->same( false, $descriptor['readiness']['browserRuntime'] );
			$t->same( array_keys( WP_Codebox_API::public_abilities() ), $descriptor['abilities'] );
			$t->true( in_array( 'agent-task:fanout', $descriptor['capabilities'], true ), 'agent-task:fanout' );
			$t->same( WP_Codebox_API::runtime_contract_manifest(), $descriptor['contractManifest'] );
			$t->same( ( require WP_PLUGIN_DIR . '/wp-codebox/abilities/manifest.php' )['contract_digest'], $descriptor['contractManifest']['contract_digest']['value'] );
			$t->true( in_array( 'run_agent_task', $descriptor['contractManifest']['methods'], true ), 'methods' );
		}
	);
	$t->test(
		'the runtime descriptor of a site without a working extension is blocked and says why',
		static function () use ( $t ): void {
			putenv( 'WP_CODEBOX_FAKE_VERSION=0.0.1' );
			$descriptor = WP_Codebox_API::runtime_descriptor();
			putenv( 'WP_CODEBOX_FAKE_VERSION' );
			$t->same( [ 'blocked', 'wp_codebox_extension_stale' ], [ $descriptor['readiness']['status'], $descriptor['readiness']['missing'][0]['code'] ] );
			$t->same( 'ready', WP_Codebox_API::runtime_descriptor()['readiness']['status'] );
		}
	);
	$t->test(
		'the primitives list status words, outcomes and error codes; the fuzz contract says whether suites run',
		static function () use ( $t ): void {
			$primitives = WP_Codebox_API::public_contract_primitives();
			$t->true( in_array( 'timed_out', $primitives['statuses']['command'], true ) && in_array( 'no_op', $primitives['outcomes'], true ), 'words' );
			$t->same( 404, $primitives['error_codes']['wp_codebox_api_ability_not_supported']['http_status'] );
			$t->true( in_array( 'wp-codebox/run-result/v1', $primitives['schemas'], true ), 'schemas' );
			$fuzz = WP_Codebox_API::wordpress_fuzz_runtime_contract();
			$t->same( isset( WP_Codebox_API::public_abilities()['wp-codebox/run-fuzz-suite'] ), $fuzz['supported'] );
			$t->same( $fuzz['supported'] ? 'ready' : 'blocked', $fuzz['readiness']['status'] );
			$t->true( in_array( 'wordpress.wp-cli', $fuzz['sandboxCommands'], true ), 'commands' );
		}
	);
};
