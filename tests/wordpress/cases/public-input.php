<?php
/**
 * Public fields of a task: each has its effect, or is refused by its name.
 */

declare(strict_types=1);

use WPCodebox\Abilities\SchemaStore;
use WPCodebox\Authority;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Run\RunRequest;
use WPCodebox\Services;
use WPCodebox\Settings;
use WPCodebox\TaskInput\TaskInput;
use WPCodebox\TaskInput\Workers;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$here     = WP_PLUGIN_DIR . '/wp-codebox/abilities';
	$schemas  = new SchemaStore( $here . '/schemas' );
	$services = new Services( new ExtensionGate( \WPCodebox\VERSION, ( require $here . '/manifest.php' )['contract_digest'] ), $schemas );
	$sample   = (string) realpath( WP_PLUGIN_DIR . '/sample' );
	$prepared = static function ( array $input, Authority $authority = Authority::User ) use ( $services, $schemas ): RunRequest {
		$input += [ 'goal' => 'x', 'plugin' => 'sample', 'agent_command' => 'true' ];
		$valid  = $schemas->check( 'run-agent-task-input', $input );
		if ( is_wp_error( $valid ) ) {
			throw new RuntimeException( $valid->get_error_message() );
		}
		return $services->runs->prepare( $input, $authority );
	};
	$refused  = static function ( array $input ) use ( $t, $prepared ): Failure {
		try {
			$prepared( $input );
		} catch ( Failure $failure ) {
			return $failure;
		}
		throw new RuntimeException( 'not refused: ' . wp_json_encode( $input ) );
	};

	$t->test(
		'texts are trimmed, lists are trimmed and distinct, and empty objects count as none',
		static function () use ( $t, $prepared ): void {
			$t->as( 'administrator' );
			$task = $prepared(
				[
					'schema'              => 'wp-codebox/task-input/v1',
					'version'             => 1,
					'goal'                => "  Fix it \n",
					'model'               => '',
					'allowed_tools'       => [ ' workspace.read', 'workspace.read', '' ],
					'expected_artifacts'  => [ 'patch ', 'patch' ],
					'structured_artifacts' => [],
					'target'              => [],
					'tool_bridge'         => [],
					'parent_tool_bridge'  => [],
					'sandbox_tool_policy' => [],
					'policy'              => [],
					'context'             => [],
				]
			)->task;
			$t->same( [ 'goal' => 'Fix it', 'allowed_tools' => [ 'workspace.read' ], 'expected_artifacts' => [ 'patch' ], 'plugin' => 'sample', 'agent_command' => 'true' ], $task );
		}
	);
	$t->test(
		'workspaces and runtime mounts become mounts',
		static function () use ( $t, $prepared, $refused, $sample ): void {
			$t->as( 'administrator' );
			$mounts = static fn( array $input ): array => array_map( static fn( array $row ): array => array_intersect_key( $row, array_flip( [ 'source', 'target', 'mode', 'exclude' ] ) ), array_slice( $prepared( $input )->host['mounts'], 1 ) );
			$t->same(
				[
					[ 'source' => $sample, 'target' => '/workspace/a', 'mode' => 'readwrite', 'exclude' => [ 'node_modules', 'dist' ] ],
					[ 'source' => $sample, 'target' => '/workspace/sample', 'mode' => 'readonly' ],
					[ 'source' => $sample, 'target' => '/workspace/stack', 'mode' => 'readonly' ],
					[ 'source' => $sample, 'target' => '/workspace/config', 'mode' => 'readwrite' ],
				],
				$mounts(
					[
						'workspaces'            => [
							[ 'target' => '/workspace/a', 'seed' => [ 'type' => 'directory', 'source' => $sample, 'excludePaths' => [ 'node_modules/**', './dist/' ] ] ],
							[ 'source' => $sample, 'mode' => 'readonly' ],
						],
						'runtime_stack_mounts'  => [ [ 'source' => $sample, 'target' => '/workspace/stack' ] ],
						'runtime_config_mounts' => [ [ 'source' => $sample, 'target' => '/workspace/config', 'mode' => 'readwrite' ] ],
					]
				)
			);
			$t->same( [ 'field' => 'workspaces[0].seed.type' ], $refused( [ 'workspaces' => [ [ 'seed' => [ 'type' => 'plugin_scaffold', 'slug' => 'x' ] ] ] ] )->data );
			$t->same( [ 'field' => 'workspaces[0].seed.source' ], $refused( [ 'workspaces' => [ [ 'target' => '/workspace/a' ] ] ] )->data );
		}
	);
	$t->test(
		'a task may stage files of the directories that it may mount, and no others',
		static function () use ( $t, $prepared, $refused, $sample ): void {
			$t->as( 'administrator' );
			$file = static fn( string $source, array $more = [] ): array => [ 'staged_files' => [ [ 'source' => $source, 'target' => '/workspace/notes.txt' ] + $more ] ];
			$made = $prepared( $file( "$sample/sample.php", [ 'metadata' => [ 'what' => 'notes' ] ] ) );
			$t->same( [ [ 'source' => "$sample/sample.php", 'target' => '/workspace/notes.txt' ] ], $made->host['staged_files'] );
			$t->same( [ [ 'target' => '/workspace/notes.txt', 'metadata' => [ 'what' => 'notes' ] ] ], $made->task['context']['staged_files'] );
			$t->same( false, isset( $made->task['staged_files'] ) );
			file_put_contents( "$sample/.env", 'KEY=value' );
			symlink( '/etc/passwd', "$sample/link.txt" );
			foreach ( [ '/etc/passwd', ABSPATH . 'wp-config.php', '/no/such/file', "$sample/link.txt", "$sample/.env" ] as $source ) {
				$t->same( 'wp_codebox_mount_denied', $refused( $file( $source ) )->error_code, $source );
			}
			unlink( "$sample/.env" );
			unlink( "$sample/link.txt" );
			$t->same( 'wp_codebox_mount_source_invalid', $refused( $file( "$sample/none.txt" ) )->error_code );
			$t->same( 'wp_codebox_mount_source_invalid', $refused( $file( $sample ) )->error_code );
			$outside = (string) tempnam( sys_get_temp_dir(), 'staged' );
			$t->same( 'wp_codebox_mount_denied', $refused( $file( $outside ) )->error_code );
			$t->same( $outside, $prepared( $file( $outside ), Authority::Operator )->host['staged_files'][0]['source'], 'control: the operator may' );
			unlink( $outside );
		}
	);
	$t->test(
		'environment, mode, debug settings, notes and the default agent of other systems have their effect',
		static function () use ( $t, $prepared, $refused, $schemas ): void {
			$t->as( 'administrator' );
			$made = $prepared(
				[
					'runtime_env'               => [ 'NODE_ENV' => 'test', 'LEVEL' => 2, 'OWN' => 'b' ],
					'agent_env'                 => [ 'OWN' => 'a' ],
					'mode'                      => ' sandbox ',
					'context'                   => [ 'ticket' => 7 ],
					'workspace_artifact_policy' => [ 'include' => [ '*.php' ] ],
					'debug'                     => [ 'provider_plugin_paths' => [ 'host-plugin', ' host-plugin' ] ],
				]
			);
			$env = $made->host['resolved_agent']['env'];
			ksort( $env );
			$t->same( [ 'LEVEL' => '2', 'NODE_ENV' => 'test', 'OWN' => 'a' ], $env );
			$t->same( [ 'ticket' => 7, 'mode' => 'sandbox' ], $made->task['context'] );
			$t->same( [ 'workspace_artifact_policy' => [ 'include' => [ '*.php' ] ] ], $made->task['metadata'] );
			$t->same( [ [ 'host-plugin', 'plugin' ] ], array_map( static fn( array $row ): array => [ $row['slug'], $row['load_as'] ], $made->host['components'] ) );
			$t->same( [], array_intersect( [ 'mode', 'runtime_env', 'debug', 'workspace_artifact_policy' ], array_keys( $made->task ) ) );
			$t->same( 'attached', $made->host['mode'] ?? 'attached', 'the mode of the agent is not the mode of the run' );
			$task = new TaskInput( $schemas, new Settings() );
			$t->same( [ 'ability' => 'a/b', 'input' => [ 'mode' => 'chat' ] ], $task->known( [ 'goal' => 'x', 'mode' => 'chat', 'runtime_task' => [ 'ability' => 'a/b' ] ] )['runtime_task'] );
			$t->same( [ 'goal' => 'x' ], $task->known( [ 'goal' => 'x', 'agent' => 'wp-codebox-sandbox' ] ) );
			$t->same( [ 'goal' => 'x', 'agent' => 'codex' ], $task->known( [ 'goal' => 'x', 'agent' => 'codex' ] ) );
		}
	);
	$t->test(
		'the WordPress version of the site and "latest" are accepted, others are refused',
		static function () use ( $t, $prepared, $refused ): void {
			$t->as( 'administrator' );
			$own = (string) get_bloginfo( 'version' );
			foreach ( [ 'latest', '', $own, explode( '.', $own )[0] ] as $version ) {
				$t->same( false, isset( $prepared( [ 'wp' => $version ] )->task['wp'] ), $version );
			}
			$failure = $refused( [ 'wp' => '5.9' ] );
			$t->same( [ 'wp_codebox_wordpress_invalid', [ 'field' => 'wp' ] ], [ $failure->error_code, $failure->data ] );
			$t->contains( $own, $failure->getMessage() );
		}
	);
	$t->test(
		'a field that cannot have its effect is refused by its name with the reason, and accepted when it asks for nothing',
		static function () use ( $t, $prepared, $refused ): void {
			$t->as( 'administrator' );
			foreach ( [
				'preview_port'         => [ 8080, null, 'the seconds' ],
				'preview_bind'         => [ '127.0.0.1', '', 'the seconds' ],
				'preview_public_url'   => [ 'https://preview.example.org', '', 'the seconds' ],
				'artifacts_path'       => [ '/tmp', '', 'wp_codebox.state_dir' ],
				'runtime_overlays'     => [ [ [ 'target' => '/wordpress/wp-includes' ] ], [], 'component_contracts' ],
				'runtime_state_mounts' => [ [ [ 'source' => '/x', 'target' => '/y' ] ], [], 'mounts' ],
				'debug'                => [ [ 'wp_codebox_bin' => '/bin/sh' ], [], 'wp_codebox.runner' ],
			] as $field => [ $value, $nothing, $instead ] ) {
				$failure = $refused( [ $field => $value ] );
				$t->same( 'wp_codebox_input_invalid', $failure->error_code, $field );
				$t->contains( $field, $failure->getMessage() );
				$t->contains( $instead, implode( ' ', $failure->hints ) );
				if ( null !== $nothing ) {
					$t->same( false, isset( $prepared( [ $field => $nothing ] )->task[ $field ] ), $field );
				}
			}
		}
	);
	$t->test(
		'a preview listens where the user may listen, and elsewhere only with permission of the host',
		static function () use ( $t, $prepared, $refused ): void {
			$t->as( 'administrator' );
			$hold = static fn( array $input, Authority $authority = Authority::User ): array => $prepared( [ 'preview_hold_seconds' => 60 ] + $input, $authority )->host['hold'];
			$t->same( false, isset( $prepared( [ 'preview_hold_seconds' => 0 ] )->host['hold'] ) );
			$token = static fn( array $preview ): array => array_replace( $preview, [ 'token' => strlen( $preview['token'] ?? '' ) ] );
			$local = $hold( [ 'preview_bind' => 'localhost' ] );
			$t->same( [ 'ttl_ms' => 60000, 'max_ttl_ms' => 60000, 'preview' => [ 'token' => 64 ] ], array_replace( $local, [ 'preview' => $token( $local['preview'] ) ] ), 'other users of the host reach a loopback address' );
			$t->same( [ 'bind' => '127.0.0.2', 'port' => 8081, 'token' => 64 ], $token( $hold( [ 'preview_port' => 8081, 'preview_bind' => '127.0.0.2' ] )['preview'] ) );
			$t->same( [ 'public_url' => 'http://localhost:8081', 'token' => 64 ], $token( $hold( [ 'preview_public_url' => 'http://localhost:8081/' ] )['preview'] ) );
			$t->true( $local['preview']['token'] !== $hold( [ 'preview_bind' => 'localhost' ] )['preview']['token'], 'two previews have one token' );
			$public = $hold( [ 'preview_public_url' => 'https://preview.example.org' ] )['preview'];
			$t->same( [ 'public_url' => 'https://preview.example.org', 'token' => 64 ], array_replace( $public, [ 'token' => strlen( $public['token'] ) ] ) );
			foreach ( [
				'preview_port'       => [ 80, 1023 ],
				'preview_bind'       => [ '0.0.0.0', '192.0.2.7', '::', '::ffff:127.0.0.1', 'example.org', '127.1' ],
				'preview_public_url' => [ home_url(), 'HTTP://LOCALHOST:80', 'http://localhost./' ],
			] as $field => $values ) {
				foreach ( $values as $value ) {
					$failure = $refused( [ 'preview_hold_seconds' => 60, $field => $value ] );
					$t->same( [ 'wp_codebox_input_invalid', [ 'field' => $field ] ], [ $failure->error_code, $failure->data ], "$field $value" );
				}
			}
			$all = $hold( [ 'preview_port' => 80, 'preview_bind' => '0.0.0.0' ], Authority::Operator )['preview'];
			$t->same( [ 'bind' => '0.0.0.0', 'port' => 80, 'token' => 64 ], array_replace( $all, [ 'token' => strlen( $all['token'] ) ] ), 'control: the operator may' );
			define( 'WP_CODEBOX_PREVIEW', [ 'bind' => [ '0.0.0.0' ], 'ports' => [ 80 ] ] );
			$t->same( [ '0.0.0.0', 80 ], array_values( array_intersect_key( $hold( [ 'preview_port' => 80, 'preview_bind' => '0.0.0.0' ] )['preview'], [ 'bind' => 1, 'port' => 1 ] ) ), 'control: the host allows it' );
			$t->same( [ 'field' => 'preview_port' ], $refused( [ 'preview_hold_seconds' => 60, 'preview_port' => 81 ] )->data );
		}
	);
	$t->test(
		'a runtime profile adds components and defaults, and an unknown one is refused',
		static function () use ( $t, $prepared, $refused, $schemas ): void {
			$t->as( 'administrator' );
			$slugs = static fn( array $input ): array => array_map( static fn( array $row ): array => [ $row['slug'], $row['load_as'], $row['activate'] ], $prepared( $input )->host['components'] );
			$given = [ 'schema' => 'wp-codebox/runtime-profile/v1', 'capabilities' => [ 'x' ], 'plugins' => [ 'host-plugin' ], 'mu_plugins' => [ [ 'slug' => 'sample-two', 'path' => WP_PLUGIN_DIR . '/host-git-branch' ] ] ];
			$t->same( [ [ 'sample-two', 'mu-plugin', false ], [ 'host-plugin', 'plugin', true ] ], $slugs( [ 'runtime_profile' => $given ] ) );
			$t->same( [ [ 'sample-two', 'mu-plugin', false ], [ 'host-plugin', 'mu-plugin', false ] ], $slugs( [ 'runtime_profile' => $given, 'component_contracts' => [ [ 'slug' => 'host-plugin' ] ] ] ), 'the contract of the task wins' );
			$task = new TaskInput( $schemas, new Settings() );
			$t->same( [ 'goal' => 'x', 'provider' => 'openai' ], $task->known( [ 'goal' => 'x', 'runtime_profile' => [ 'id' => 'provider-openai' ] ] ) );
			$t->same( [ 'goal' => 'x', 'provider' => 'own' ], $task->known( [ 'goal' => 'x', 'provider' => 'own', 'runtime_profile' => [ 'id' => 'provider-openai' ] ] ) );
			$t->same( [ 'goal' => 'x' ], $task->known( [ 'goal' => 'x', 'runtime_profile' => 'wordpress-playground' ] ) );
			$failure = $refused( [ 'runtime_profile' => [ 'id' => 'my-profile' ] ] );
			$t->same( 'wp_codebox_runtime_profile_unresolved', $failure->error_code );
			$t->contains( 'provider-openai', implode( ' ', $failure->hints ) );
			$t->same( [ 'field' => 'runtime_profile.themes' ], $refused( [ 'runtime_profile' => [ 'themes' => [ 'x' ] ] ] )->data );
			$t->filtered(
				'wp_codebox_runtime_profile_registry',
				static fn( array $registry, array $input ): array => $registry + [ 'my-profile' => [ 'plugins' => [ 'host-plugin' ] ] ],
				static fn() => $t->same( [ [ 'host-plugin', 'plugin', true ] ], $slugs( [ 'runtime_profile' => [ 'id' => 'my-profile' ] ] ) )
			);
			$t->filtered( 'wp_codebox_runtime_profile', static fn( array $profile, mixed $raw ): array => $profile + [ 'model' => $raw['id'] ], static fn() => $t->same( 'wordpress-playground', $task->known( [ 'goal' => 'x', 'runtime_profile' => [ 'id' => 'wordpress-playground' ] ] )['model'] ) );
			$t->filtered( 'wp_codebox_apply_runtime_profile', static fn( array $input, array $profile ): array => [ 'theme' => 'twentytwentyfive' ] + $input, static fn() => $t->same( 'twentytwentyfive', $task->known( [ 'goal' => 'x', 'runtime_profile' => [ 'id' => 'wordpress-playground' ] ] )['theme'] ) );
		}
	);
	$t->test(
		'fields of the host are never taken from a public field or a filter',
		static function () use ( $t, $prepared ): void {
			$t->as( 'administrator' );
			$made = $prepared( [ 'mode' => 'detached' ] );
			$t->true( ! isset( $made->task['mode'] ) && ! isset( $made->host['mode'] ), 'the mode of the agent became the mode of the run' );
			$error = null;
			try {
				$t->filtered( 'wp_codebox_apply_runtime_profile', static fn( array $input ): array => [ 'hold' => [ 'ttl_ms' => 1 ] ] + $input, static fn() => $prepared( [ 'runtime_profile' => 'wordpress-playground' ] ) );
			} catch ( Failure $failure ) {
				$error = $failure->error_code;
			}
			$t->same( 'wp_codebox_input_invalid', $error );
		}
	);
	$t->test(
		'workers of a fan-out may name their goal "task" and their schema',
		static function () use ( $t, $schemas ): void {
			$input = [
				'schema'  => 'wp-codebox/agent-fanout-request/v1',
				'workers' => [
					[ 'schema' => 'wp-codebox/agent-fanout-worker/v1', 'id' => 'a', 'task' => 'Fix a' ],
					[ 'id' => 'b', 'task' => 'Not used', 'goal' => 'Fix b' ],
					'Not a worker',
				],
			];
			$t->same( true, $schemas->check( 'run-agent-task-fanout-input', $input ) );
			$t->same( [ 'workers' => [ [ 'id' => 'a', 'goal' => 'Fix a' ], [ 'id' => 'b', 'goal' => 'Fix b' ], 'Not a worker' ] ], Workers::known( $input ) );
			$t->same( true, $schemas->check( 'run-agent-task-batch-input', [ 'tasks' => [ 'A goal', [ 'goal' => 'x' ] ], 'wp' => 'latest', 'preview_hold_seconds' => 0 ] ) );
		}
	);
	$t->test(
		'an unknown field is named with its path, and with similar fields, the reason or all fields',
		static function () use ( $t, $schemas ): void {
			$said = static function ( array $input, string $schema = 'run-agent-task-input' ) use ( $schemas ): array {
				$error = $schemas->check( $schema, $input );
				$data  = $error->get_error_data();
				return [ $error->get_error_message(), $data['field'] ?? null, implode( ' ', $data['hints'] ?? [] ) ];
			};
			[ $message, $field, $hints ] = $said( [ 'goal' => 'x', 'plugn' => 'sample' ] );
			$t->same( [ 'The input has no field "plugn".', 'plugn' ], [ $message, $field ] );
			$t->contains( 'plugin', $hints );
			[ $message, $field, $hints ] = $said( [ 'mounts' => [ [ 'source' => '/x', 'target' => '/y' ], [ 'sorce' => '/x' ] ] ] );
			$t->same( 'mounts[1].sorce', $field );
			$t->contains( 'source', $hints );
			$t->contains( 'approved_files', $said( [ 'approved' => [] ], 'artifact-apply-input' )[2] );
			$t->contains( 'page, per_page', $said( [ 'zzzzzzzz' => 1 ], 'artifact-list-input' )[2] );
			foreach ( [ 'artifact-list-input', 'artifact-reference-input', 'artifact-apply-input', 'artifact-stage-input', 'artifact-review-input' ] as $schema ) {
				[ $message, $field, $hints ] = $said( [ 'artifacts_path' => '/tmp' ], $schema );
				$t->same( 'artifacts_path', $field );
				$t->contains( 'wp_codebox.state_dir', $hints );
			}
			$t->contains( 'wp_codebox.runner', $said( [ 'wp_codebox_bin' => 'x' ] )[2] );
			$t->same( [ 'input[goal] is not of type string.', 'goal' ], array_slice( $said( [ 'goal' => 7 ] ), 0, 2 ), 'a value of the wrong type keeps the message of WordPress' );
			$t->same( 'mounts[1].source', $said( [ 'mounts' => [ [ 'source' => '/x', 'target' => '/y' ], [ 'source' => 7, 'target' => '/y' ] ] ] )[1] );
			$t->contains( 'goal', $said( [ 'goal' => [] ] )[0] );
			$error = WP_Codebox_API::get_run( [ 'runid' => 'x' ] );
			$t->error( 'wp_codebox_input_invalid', 400, $error );
			$t->contains( 'run_id', implode( ' ', $error->get_error_data()['hints'] ) );
		}
	);

	// Every published field of every ability that exists here. A value of its published type fits our schema, unless
	// differences.json lists the field; a value of another type is refused by our code and the name of the field.
	$public = static fn( string $file ): array => (array) json_decode( (string) file_get_contents( getenv( 'TEST_ROOT' ) . "/tests/conformance/public/$file" ), true );
	$listed = array_merge( ...array_column( $public( 'differences.json' )['inputs'], 'names' ) );
	$digest = str_repeat( '0', 64 );
	// Values of fields whose published schema leaves out the form that we check.
	$forms = [
		'secret_env'              => [ 'TOKEN' ],
		'token_env'               => 'TOKEN',
		'runtime_stack_mounts'    => [ [ 'source' => '/srv/stack', 'target' => '/workspace/stack' ] ],
		'runtime_config_mounts'   => [ [ 'source' => '/srv/config', 'target' => '/workspace/config' ] ],
		'loadAs'                  => 'mu-plugin',
		'runtime_task'            => [ 'ability' => 'a/b' ],
		'artifacts'               => [ [ 'path' => '/workspace/report.json' ] ],
		'staged_files'            => [ [ 'source' => '/srv/notes.txt', 'target' => '/workspace/notes.txt' ] ],
		'artifact_id'             => "artifact-bundle-sha256-$digest",
		'expected_artifact_id'    => "artifact-bundle-sha256-$digest",
		'expected_content_digest' => $digest,
	];
	$sample = static function ( array $schema, string $name = '' ) use ( &$sample, $forms ): mixed {
		if ( isset( $schema['const'] ) || isset( $schema['enum'] ) ) {
			return $schema['const'] ?? $schema['enum'][0];
		}
		if ( isset( $forms[ $name ] ) ) {
			return $forms[ $name ];
		}
		$members = $schema['properties'] ?? [];
		return match ( ( (array) ( $schema['type'] ?? 'string' ) )[0] ) {
			'integer', 'number' => max( 1, $schema['minimum'] ?? 1 ),
			'boolean'           => true,
			'array'             => [ $sample( $schema['items'] ?? [] ) ],
			'object'            => array_combine( array_keys( $members ), array_map( $sample, $members, array_keys( $members ) ) ),
			default             => 'uri' === ( $schema['format'] ?? '' ) ? 'https://example.org' : 'x',
		};
	};
	$types  = [ 'string' => 'x', 'number' => 7.5, 'boolean' => true, 'object' => [ 'x' => [ 'y' => 1 ] ] ];
	foreach ( $public( 'php-surface.json' )['abilities'] as $ability => $surface ) {
		$properties = $surface['input']['properties'] ?? [];
		$name       = str_replace( 'wp-codebox/', '', $ability );
		if ( ! wp_has_ability( $ability ) || [] === $properties ) {
			continue;
		}
		$t->test(
			"parity: $name takes its published fields, and refuses a wrong type by the name of the field",
			static function () use ( $t, $schemas, $ability, $name, $properties, $listed, $sample, $types ): void {
				$own    = ( require WP_PLUGIN_DIR . "/wp-codebox/abilities/definitions/$name.php" )['input_schema'];
				$schema = $schemas->get( $own )['properties'];
				foreach ( $properties as $field => $published ) {
					$value = $sample( $published, $field );
					$valid = $schemas->check( $own, [ $field => $value ] );
					$text  = "$field = " . wp_json_encode( $value ) . ( is_wp_error( $valid ) ? ': ' . $valid->get_error_message() : '' );
					if ( in_array( "$name $field", $listed, true ) ) {
						$t->true( is_wp_error( $valid ), "$text is accepted; remove it from differences.json" );
						$t->same( $field, $valid->get_error_data()['field'] ?? null, $text );
						continue;
					}
					$t->same( true, $valid, $text );
					$tried = 0;
					foreach ( array_diff_key( $types, array_flip( (array) ( $schema[ $field ]['type'] ?? array_keys( $types ) ) ) ) as $wrong ) {
						// WordPress itself accepts a string for a list, and numeric strings for numbers.
						if ( true === rest_validate_value_from_schema( $wrong, array_diff_key( $schema[ $field ], [ 'enum' => 1 ] ), $field ) ) {
							continue;
						}
						++$tried;
						$error = WP_Codebox_API::execute_ability( $ability, [ $field => $wrong ] );
						$t->error( 'wp_codebox_input_invalid', 400, $error );
						$at = (string) ( $error->get_error_data()['field'] ?? '' );
						$t->true( $field === $at || str_starts_with( $at, "$field." ) || str_starts_with( $at, $field . '[' ), "$field is named \"$at\" for " . wp_json_encode( $wrong ) );
					}
					$t->true( $tried > 0 || ! isset( $schema[ $field ]['type'] ), "no wrong value of $field was tried" );
				}
			}
		);
	}
};
