<?php
/**
 * Registered abilities, their schemas and the users who may call them.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$annotations = require dirname( __DIR__ ) . '/annotations.php';

	$t->test(
		'exactly these abilities exist, with these annotations',
		static function () use ( $t, $annotations ): void {
			$found = array_filter( wp_get_abilities(), static fn( $ability ): bool => 'wp-codebox' === $ability->get_category() );
			$names = array_values( array_map( static fn( $ability ): string => $ability->get_name(), $found ) );
			$t->same( [], [ ...array_diff( array_keys( $annotations ), $names ), ...array_diff( $names, array_keys( $annotations ) ) ] );
			$t->same( array_keys( WP_Codebox_API::public_abilities() ), $names );
			foreach ( $found as $ability ) {
				$meta = $ability->get_meta();
				$t->same( $annotations[ $ability->get_name() ], [ $meta['annotations']['readonly'], $meta['annotations']['destructive'], $meta['annotations']['idempotent'] ], $ability->get_name() );
				$t->same( true, $meta['show_in_rest'] );
				$t->same( false, $ability->get_input_schema()['additionalProperties'] );
				$t->same( [], $ability->get_input_schema()['default'] );
				$t->true( '' !== $ability->get_label() && '' !== $ability->get_description() && [] !== $ability->get_output_schema(), 'label, description or output schema is empty' );
			}
		}
	);
	$t->test(
		'list abilities take page and per_page; log abilities take after or before, and per_page',
		static function () use ( $t, $annotations ): void {
			$found = [];
			foreach ( array_keys( $annotations ) as $name ) {
				// An array with one of these names, such as the phase `after` of a workload, is not a paging argument.
				$fields = array_keys( array_filter( wp_get_ability( $name )->get_input_schema()['properties'], static fn( array $field ): bool => 'array' !== $field['type'] ) );
				$paging = array_values( array_intersect( [ 'page', 'per_page', 'after', 'before', 'cursor', 'limit', 'offset' ], $fields ) );
				if ( [] !== $paging ) {
					$found[ substr( $name, strlen( 'wp-codebox/' ) ) ] = implode( ' ', $paging );
				}
			}
			$t->same(
				[
					'list-runs'          => 'page per_page',
					'list-run-events'    => 'per_page after',
					'list-artifacts'     => 'page per_page',
					'list-audit-records' => 'per_page after',
					'list-artifact-history' => 'per_page before',
				],
				$found
			);
		}
	);
	foreach ( array_keys( $annotations ) as $name ) {
		$t->test(
			"$name is allowed for an administrator and denied for an editor and an anonymous visitor",
			static function () use ( $t, $name ): void {
				$ability = wp_get_ability( $name );
				foreach ( [ 'administrator' => true, 'editor' => false, 'nobody' => false ] as $role => $expected ) {
					$t->as( $role );
					$t->same( $expected, $ability->check_permissions( [] ), $role );
					$answer = $ability->execute( [] );
					$t->same( ! $expected, is_wp_error( $answer ) && 'ability_invalid_permissions' === $answer->get_error_code(), $role );
				}
			}
		);
	}
	$t->test(
		'each ability is allowed with its own capability and denied with the other capabilities',
		static function () use ( $t, $annotations ): void {
			$browser  = array_keys( array_filter( WP_Codebox_API::public_abilities(), static fn( array $about ): bool => in_array( 'browser-session:create', $about['scopes'], true ) ) );
			$browser  = array_map( static fn( string $name ): string => substr( $name, strlen( 'wp-codebox/' ) ), $browser );
			$run      = [ 'run-agent-task', 'run-agent-task-batch', 'run-agent-task-fanout', 'replay-artifact', 'normalize-browser-artifact-bundle', 'browser-connector-request', 'execute-browser-provider-request', 'resolve-runtime-requirements', 'run-runtime-task', 'run-runtime-package', 'run-wordpress-workload', 'run-fuzz-suite', 'request-host-delegation', 'runner-workspace-prepare', 'runner-workspace-capture', 'runner-workspace-command', ...$browser ];
			$both     = [ 'list-runs', 'get-run', 'list-run-events', 'cancel-run' ];
			$apply    = [ 'apply-approved-artifact', 'rollback-artifact', 'runner-workspace-publish' ];
			$all      = array_map( static fn( string $name ): string => substr( $name, strlen( 'wp-codebox/' ) ), array_keys( $annotations ) );
			$expected = [
				'wp_codebox_run'      => [ ...$run, ...$both ],
				'wp_codebox_review'   => array_diff( $all, $run, $apply ),
				'wp_codebox_apply'    => $apply,
				'wp_codebox_settings' => [],
			];
			foreach ( $expected as $capability => $allowed ) {
				$grant = static fn( array $caps, string $cap ): array => $cap === $capability ? [ 'edit_posts' ] : $caps;
				$found = $t->filtered(
					'map_meta_cap',
					$grant,
					static function () use ( $t, $all ): array {
						$t->as( 'editor' );
						return array_filter( $all, static fn( string $name ): bool => true === wp_get_ability( "wp-codebox/$name" )->check_permissions( [] ) );
					}
				);
				sort( $found );
				sort( $allowed );
				$t->same( $allowed, $found, $capability );
			}
		}
	);
	$required = [
		'run-agent-task'           => [ 'goal' => 'wp_codebox_task_missing' ],
		'run-agent-task-batch'     => [ 'tasks' => 'wp_codebox_tasks_missing' ],
		'run-agent-task-fanout'    => [ 'workers' => 'wp_codebox_fanout_workers_missing' ],
		'get-run'                  => [ 'run_id' => 'wp_codebox_input_invalid' ],
		'list-run-events'          => [ 'run_id' => 'wp_codebox_input_invalid' ],
		'cancel-run'               => [ 'run_id' => 'wp_codebox_input_invalid' ],
		'get-artifact'             => [ 'artifact_id' => 'wp_codebox_artifact_id_missing' ],
		'inspect-artifact'         => [ 'artifact_id' => 'wp_codebox_artifact_id_missing' ],
		'apply-artifact-preflight' => [ 'artifact_id' => 'wp_codebox_artifact_id_missing', 'approved_files' => 'wp_codebox_approved_files_missing' ],
		'apply-approved-artifact'  => [ 'artifact_id' => 'wp_codebox_artifact_id_missing', 'approved_files' => 'wp_codebox_approved_files_missing' ],
		'discard-artifact'         => [ 'artifact_id' => 'wp_codebox_artifact_id_missing' ],
		'rollback-artifact'        => [ 'artifact_id' => 'wp_codebox_artifact_id_missing' ],
		'stage-artifact-apply'     => [ 'artifact_id' => 'wp_codebox_artifact_id_missing', 'approved_files' => 'wp_codebox_approved_files_missing' ],
		'review-artifact'          => [ 'artifact_id' => 'wp_codebox_artifact_id_missing', 'action' => 'wp_codebox_review_action_missing' ],
		'export-artifact-bundle'   => [ 'artifact_id' => 'wp_codebox_artifact_id_missing' ],
		'normalize-browser-artifact-bundle' => [ 'schema_id' => 'wp_codebox_browser_artifact_schema_missing', 'entrypoint' => 'wp_codebox_browser_artifact_entrypoint_missing', 'files' => 'wp_codebox_browser_artifact_files_missing' ],
		'get-artifact-diff'        => [ 'artifact_id' => 'wp_codebox_artifact_id_missing' ],
		'download-approved-files'  => [ 'artifact_id' => 'wp_codebox_artifact_id_missing' ],
		'replay-artifact'          => [ 'artifact_id' => 'wp_codebox_artifact_id_missing' ],
		'browser-connector-request' => [ 'connector' => 'wp_codebox_browser_connector_request_invalid', 'operation' => 'wp_codebox_browser_connector_request_invalid' ],
		'execute-browser-provider-request' => [ 'operation' => 'wp_codebox_browser_provider_operation_required', 'request' => 'wp_codebox_browser_provider_request_required', 'inherit' => 'wp_codebox_browser_provider_connector_required' ],
		'run-runtime-task'         => [ 'task' => 'wp_codebox_runtime_task_request_invalid', 'target_id' => 'wp_codebox_runtime_task_target_required' ],
		'run-runtime-package'      => array_fill_keys( [ 'schema', 'package', 'workflow', 'input', 'artifact_declarations', 'required_artifacts' ], 'wp_codebox_runtime_package_task_invalid' ),
		'run-wordpress-workload'   => [ 'schema' => 'wp_codebox_input_invalid', 'steps' => 'wp_codebox_wordpress_workload_steps_missing' ],
		'run-fuzz-suite'           => [ 'schema' => 'wp_codebox_input_invalid', 'id' => 'wp_codebox_input_invalid', 'cases' => 'wp_codebox_fuzz_case_invalid' ],
		'runner-workspace-prepare' => [ 'repo' => 'wp_codebox_runner_workspace_prepare_invalid_request' ],
		'runner-workspace-capture' => [ 'workspace' => 'wp_codebox_runner_workspace_identity_invalid_request' ],
		'runner-workspace-command' => [ 'workspace' => 'wp_codebox_runner_workspace_command_invalid_request', 'command' => 'wp_codebox_runner_workspace_command_invalid_request' ],
		'create-browser-playground-session' => [ 'goal' => 'wp_codebox_task_missing' ],
		'create-browser-contained-site-session' => [ 'goal' => 'wp_codebox_task_missing' ],
		'create-browser-task-contract' => [ 'goal' => 'wp_codebox_task_missing' ],
		'create-browser-materializer-contract' => [ 'goal' => 'wp_codebox_task_missing' ],
		'open-or-create-browser-contained-site' => [ 'mode' => 'wp_codebox_browser_contained_site_mode_required' ],
		'replay-browser-viewport' => [ 'archive_base64' => 'wp_codebox_viewport_replay_archive_invalid', 'route' => 'wp_codebox_viewport_replay_route_invalid', 'viewport' => 'wp_codebox_input_invalid' ],
		'runner-workspace-publish' => array_fill_keys( [ 'workspace', 'repo', 'commit_message', 'title', 'body' ], 'wp_codebox_runner_workspace_publication_invalid_request' ),
	];
	// Fields whose value depends on the ability.
	$own = [
		'run-runtime-package'    => [ 'schema' => 'wp-codebox/runtime-package-task/v1' ],
		'run-wordpress-workload' => [ 'schema' => 'wp-codebox/wordpress-workload-run/v1' ],
		'run-fuzz-suite'         => [ 'schema' => 'wp-codebox/fuzz-suite/v1' ],
	];
	$t->test(
		'schemas list the required fields, and a missing required field returns its own error code',
		static function () use ( $t, $annotations, $required, $own ): void {
			$made   = $t->made();
			$values = [
				'goal'           => 'x',
				'tasks'          => [ 'x' ],
				'workers'        => [ [ 'id' => 'a', 'goal' => 'x' ] ],
				'run_id'         => $made['run']['run_id'],
				'artifact_id'    => $made['run']['run_id'],
				'approved_files' => array_column( $made['changed_files'], 'path' ),
				'action'         => 'reject',
				'schema_id'      => 'x',
				'entrypoint'     => 'x.html',
				'files'          => [ [ 'path' => 'x.html', 'content' => 'x' ] ],
				'connector'      => 'none',
				'operation'      => 'chat.completions',
				'request'        => [ 'x' => 1 ],
				'inherit'        => [ 'connectors' => [ 'none' ] ],
				'task'           => 'x',
				'target_id'      => 'other/runtime',
				'package'        => [ 'slug' => 'x', 'source' => 'x' ],
				'workflow'       => [ 'id' => 'x' ],
				'input'          => [ 'x' => 1 ],
				'artifact_declarations' => [],
				'required_artifacts' => [],
				'steps'          => [ [ 'command' => 'x' ] ],
				'id'             => 'x',
				'cases'          => [ [ 'id' => 'x' ] ],
				'repo'           => 'acme/shop',
				'workspace'      => 'x',
				'command'        => 'x',
				'commit_message' => 'x',
				'title'          => 'x',
				'body'           => 'x',
				'mode'           => 'open-only',
				'archive_base64' => base64_encode( 'PK' ),
				'route'          => '/',
				'viewport'       => [ 'width' => 1, 'height' => 1 ],
			];
			foreach ( array_keys( $annotations ) as $name ) {
				$short  = substr( $name, strlen( 'wp-codebox/' ) );
				$schema = wp_get_ability( $name )->get_input_schema();
				$fields = $required[ $short ] ?? [];
				$t->same( array_keys( $fields ), $schema['required'] ?? [], $name );
				$whole = array_intersect_key( ( $own[ $short ] ?? [] ) + $values, $fields );
				$t->same( true, rest_validate_value_from_schema( $whole, $schema, 'input' ), $name );
				foreach ( $fields as $field => $code ) {
					$input = array_diff_key( $whole, [ $field => 1 ] );
					$t->true( is_wp_error( rest_validate_value_from_schema( $input, $schema, 'input' ) ), "$name takes input without $field" );
					$t->as( 'administrator' );
					foreach ( [ $t->ability( $short, $input ), WP_Codebox_API::execute_ability( $name, $input ) ] as $answer ) {
						$t->error( $code, 400, $answer );
					}
					$t->as( 'editor' );
					$t->same( 'ability_invalid_permissions', $t->ability( $short, $input )->get_error_code(), $name );
				}
			}
		}
	);
	$t->test(
		'input that violates its schema gets the error of WordPress core, and an error of another plugin is not replaced',
		static function () use ( $t ): void {
			$t->as( 'administrator' );
			$t->same( 'ability_invalid_input', $t->ability( 'get-artifact', [ 'no_such_field' => 1 ] )->get_error_code() );
			$t->same( 'ability_invalid_input', $t->ability( 'run-agent-task', [ 'mounts' => [ [ 'source' => '/x' ] ] ] )->get_error_code() );
			$explained = $t->ability( 'get-artifact', [ 'artefact_id' => 'x' ] );
			$t->same( [ 'ability_invalid_input', 'artefact_id', 400 ], [ $explained->get_error_code(), $explained->get_error_data()['field'], $explained->get_error_data()['status'] ] );
			$t->contains( 'artifact_id', implode( ' ', $explained->get_error_data()['hints'] ) );
			$other = static fn(): WP_Error => new WP_Error( 'other_plugin', 'no' );
			add_filter( 'wp_ability_validate_input', $other, 1 );
			$refused = $t->ability( 'get-artifact' );
			remove_filter( 'wp_ability_validate_input', $other, 1 );
			$t->same( 'other_plugin', $refused->get_error_code() );
			$theirs = new WP_Error( 'ability_invalid_input', 'no' );
			$t->same( $theirs, apply_filters( 'wp_ability_validate_input', $theirs, [], 'core/get-site-info' ), 'an error of an ability of another plugin changed' );
		}
	);
	$t->test(
		'the capability filter can deny access and cannot grant it',
		static function () use ( $t ): void {
			$seen   = [];
			$answer = static function ( mixed $return ) use ( &$seen ): Closure {
				return static function ( bool $allowed, string $capability, int $user ) use ( $return, &$seen ): mixed {
					$seen[] = [ $allowed, $capability, $user ];
					return $return;
				};
			};
			$run    = wp_get_ability( 'wp-codebox/run-agent-task' );
			foreach ( [ [ true, true ], [ false, false ], [ 1, false ], [ 'yes', false ], [ null, false ] ] as [ $return, $expected ] ) {
				$filter = $answer( $return );
				add_filter( 'wp_codebox_can_run_agent_task', $filter, 10, 3 );
				$t->as( 'administrator' );
				$t->same( $expected, $run->check_permissions( [] ), var_export( $return, true ) );
				$t->as( 'editor' );
				$t->same( false, $run->check_permissions( [] ), 'an editor was allowed' );
				remove_filter( 'wp_codebox_can_run_agent_task', $filter, 10 );
			}
			$t->same( [ true, 'wp_codebox_run', 1 ], $seen[0] );
			$t->same( [ false, 'wp_codebox_run' ], array_slice( $seen[1], 0, 2 ) );
		}
	);
	$t->test(
		'a site can grant single capabilities through the map_meta_cap filter',
		static function () use ( $t ): void {
			$editor = get_user_by( 'login', 'editor' );
			$grant  = static fn( array $caps, string $cap ): array => 'wp_codebox_review' === $cap ? [ 'edit_posts' ] : $caps;
			$t->same( false, user_can( $editor, 'wp_codebox_review' ) );
			add_filter( 'map_meta_cap', $grant, 20, 2 );
			$t->as( 'editor' );
			$t->same( [ true, false, false ], [ wp_get_ability( 'wp-codebox/list-artifacts' )->check_permissions( [] ), wp_get_ability( 'wp-codebox/run-agent-task' )->check_permissions( [] ), wp_get_ability( 'wp-codebox/apply-approved-artifact' )->check_permissions( [] ) ] );
			remove_filter( 'map_meta_cap', $grant, 20 );
		}
	);
	$t->test(
		'the documented example gives a role one capability, and takes it from nobody',
		static function () use ( $t ): void {
			$parts = explode( "= Giving a role a capability =\n", (string) file_get_contents( WP_PLUGIN_DIR . '/wp-codebox/readme.txt' ) );
			$t->same( 2, count( $parts ), 'the section is in the readme' );
			preg_match_all( '/^    (.*)$/m', explode( "\n= ", explode( "\n== ", $parts[1] )[0] )[0], $lines );
			$example = implode( "\n", $lines[1] );
			$t->contains( 'map_meta_cap', $example );
			$may = static function () use ( $t ): array {
				$found = [];
				foreach ( [ 'administrator', 'editor', 'subscriber' ] as $role ) {
					$t->as( $role );
					$found[ $role ] = [ current_user_can( 'wp_codebox_review' ), wp_get_ability( 'wp-codebox/list-artifacts' )->check_permissions( [] ), current_user_can( 'wp_codebox_apply' ) ];
				}
				return $found;
			};
			$subscriber = wp_insert_user( [ 'user_login' => 'subscriber', 'user_pass' => wp_generate_password(), 'role' => 'subscriber' ] );
			$without    = [ 'administrator' => [ true, true, true ], 'editor' => [ false, false, false ], 'subscriber' => [ false, false, false ] ];
			$t->same( $without, $may(), 'without the example' );
			$hooks      = [ 'init' => $GLOBALS['wp_filter']['init'], 'map_meta_cap' => clone $GLOBALS['wp_filter']['map_meta_cap'] ];
			$file       = getenv( 'TEST_WORK' ) . '/example.php';
			file_put_contents( $file, "<?php\n$example" );
			try {
				$GLOBALS['wp_filter']['init'] = new WP_Hook();
				require $file;
				do_action( 'init' );
				$t->same( array_replace( $without, [ 'editor' => [ true, true, false ] ] ), $may(), 'with the example' );
			} finally {
				$GLOBALS['wp_filter'] = array_replace( $GLOBALS['wp_filter'], $hooks );
				get_role( 'editor' )->remove_cap( 'wp_codebox_review' );
				require_once ABSPATH . 'wp-admin/includes/user.php';
				wp_delete_user( $subscriber );
				unlink( $file );
			}
		}
	);
	$t->test(
		'a role with a plugin capability may use it only when map_meta_cap maps the capability to itself',
		static function () use ( $t ): void {
			$may = static fn(): array => array_map( static fn( string $name ): bool => wp_get_ability( 'wp-codebox/' . $name )->check_permissions( [] ), [ 'list-artifacts', 'run-agent-task', 'apply-approved-artifact' ] );
			$map = static fn( array $caps, string $cap ): array => 'wp_codebox_review' === $cap ? [ $cap ] : $caps;
			get_role( 'editor' )->add_cap( 'wp_codebox_review' );
			clean_user_cache( get_user_by( 'login', 'editor' ) );
			$t->as( 'editor' );
			$t->same( [ false, false, false ], $may(), 'the capability of the role alone allows nothing' );
			add_filter( 'map_meta_cap', $map, 20, 2 );
			$t->same( [ true, false, false ], $may() );
			get_role( 'editor' )->remove_cap( 'wp_codebox_review' );
			clean_user_cache( get_user_by( 'login', 'editor' ) );
			$t->as( 'nobody' );
			$t->as( 'editor' );
			$t->same( [ false, false, false ], $may(), 'the map_meta_cap mapping alone allows nothing' );
			$has = static fn( array $all ): array => [ 'wp_codebox_review' => true ] + $all;
			add_filter( 'user_has_cap', $has );
			$t->same( [ true, false, false ], $may(), 'user_has_cap can grant the mapped capability' );
			remove_filter( 'user_has_cap', $has );
			remove_filter( 'map_meta_cap', $map, 20 );
		}
	);
};
