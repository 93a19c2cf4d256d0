<?php
/**
 * Components, runtime tasks and agent bundles: from the task to the request, and in real runs
 * when the extension is loaded.
 */

declare(strict_types=1);

use WPCodebox\Abilities\SchemaStore;
use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Services;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$root = (string) getenv( 'TEST_WORK' ) . '/components';
	wp_mkdir_p( $root . '/worker' );
	file_put_contents(
		$root . '/worker/worker.php',
		<<<'PHP'
		<?php
		/* Plugin Name: Worker */
		add_action( 'wp_abilities_api_categories_init', static fn() => wp_register_ability_category( 'worker', [ 'label' => 'Worker', 'description' => 'Works.' ] ) );
		add_action( 'wp_abilities_api_init', static fn() => wp_register_ability( 'worker/note', [
			'label' => 'Note', 'description' => 'Notes.', 'category' => 'worker', 'permission_callback' => '__return_true',
			'input_schema' => [ 'type' => 'object' ],
			'execute_callback' => static function ( array $input ): array {
				file_put_contents( 'note.txt', $input['text'] . "\n" );
				return [ 'noted' => strlen( $input['text'] ) ];
			},
		] ) );
		PHP
	);
	chmod( $root, 0755 );
	$here     = WP_PLUGIN_DIR . '/wp-codebox/abilities';
	$services = new Services( new ExtensionGate( \WPCodebox\VERSION, ( require $here . '/manifest.php' )['contract_digest'] ), new SchemaStore( $here . '/schemas' ) );
	$fields   = static fn( array $input, Authority $authority = Authority::Operator ): array => array_intersect_key(
		array_filter( $services->runs->prepare(
			$input + [
				'goal'          => 'x',
				'plugin'        => 'sample',
				'agent_command' => 'true',
			],
			$authority
		)->host ),
		array_flip( [ 'components', 'agent_bundles', 'provenance' ] )
	);
	$refused  = static function ( string $code, callable $call ) use ( $t ): string {
		try {
			$call();
		} catch ( Failure $failure ) {
			$t->same( $code, $failure->error_code );
			return $failure->getMessage();
		}
		throw new RuntimeException( 'nothing was refused' );
	};
	$contract = [
		'slug'            => 'worker',
		'path'            => $root . '/worker',
		'loadAs'          => 'plugin',
		'activate'        => true,
		'required'        => true,
		'readiness_probe' => [
			'type' => 'ability',
			'name' => 'worker/note',
		],
	];

	$t->test(
		'a component contract becomes a component of the request',
		static function () use ( $t, $fields, $contract, $root ): void {
			$t->same( [], array_diff_key( $fields( [] ), [ 'provenance' => 1 ] ) );
			$made = $fields( [ 'component_contracts' => [ $contract + [ 'provenance' => [ 'repository' => 'https://example.org/worker' ] ] ] ] );
			$t->same( [ $root . '/worker', 'plugin', true, true, 'worker/note' ], [ $made['components'][0]['source'], $made['components'][0]['load_as'], $made['components'][0]['activate'], $made['components'][0]['required'], $made['components'][0]['readiness_probe']['name'] ] );
			$t->same( [ 'worker' => [ 'repository' => 'https://example.org/worker' ] ], $made['provenance']['components'] );
			// By default a component is an optional must-use plugin named after its directory.
			$t->same(
				[
					[
						'slug'     => 'worker',
						'source'   => $root . '/worker',
						'load_as'  => 'mu-plugin',
						'activate' => false,
						'required' => false,
					],
				],
				$fields( [ 'component_contracts' => [ [ 'source' => $root . '/worker/' ] ] ] )['components']
			);
			$installed = $fields( [ 'component_contracts' => [ [ 'slug' => 'host-plugin' ] ] ] )['components'][0];
			$t->same( realpath( WP_PLUGIN_DIR . '/host-plugin' ), $installed['source'] );
		}
	);
	$t->test(
		'component contracts of the site come first, and a contract of the task replaces one with the same slug',
		static function () use ( $t, $fields, $contract ): void {
			$site = [
				[
					'slug'     => 'host-plugin',
					'loadAs'   => 'plugin',
					'activate' => true,
				],
				[ 'slug' => 'worker', 'path' => $contract['path'] ],
			];
			update_site_option( 'wp_codebox_component_contracts', $site );
			try {
				$t->same( [ [ 'host-plugin', 'plugin' ], [ 'worker', 'mu-plugin' ] ], array_map( static fn( array $row ): array => [ $row['slug'], $row['load_as'] ], $fields( [] )['components'] ) );
				$t->same( [ [ 'host-plugin', 'plugin' ], [ 'worker', 'plugin' ] ], array_map( static fn( array $row ): array => [ $row['slug'], $row['load_as'] ], $fields( [ 'component_contracts' => [ $contract ] ] )['components'] ) );
				// A plugin that the task mounts is not added as a component.
				$t->same( [ 'worker' ], array_column( $fields( [ 'plugin' => 'host-plugin' ] )['components'], 'slug' ) );
				$added = $t->filtered( 'wp_codebox_component_contracts', static fn( array $rows ): array => array_slice( $rows, 0, 1 ), static fn(): array => $fields( [] )['components'], 1 );
				$t->same( [ 'host-plugin' ], array_column( $added, 'slug' ) );
			} finally {
				delete_site_option( 'wp_codebox_component_contracts' );
			}
		}
	);
	$t->test(
		'a component path that does not exist is an error and never ignored',
		static function () use ( $t, $fields, $refused, $root ): void {
			foreach ( [ [ 'component_contracts' => [ [ 'slug' => 'a', 'path' => $root . '/none' ] ] ], [ 'component_contracts' => [ [ 'slug' => 'a', 'path' => 'worker' ] ] ], [ 'component_contracts' => [ [ 'slug' => 'not-installed' ] ] ], [ 'provider_plugin_paths' => [ $root . '/none' ] ], [ 'provider_plugin_paths' => [ 'not-installed' ] ], [ 'provider_plugin_paths' => [ $root . '/worker/worker.php' ] ] ] as $input ) {
				$sentence = $refused( 'wp_codebox_component_path_missing', static fn() => $fields( $input ) );
				$t->true( str_contains( $sentence, '"' ), $sentence );
			}
			$t->same( [ 'worker', 'plugin', true, true ], array_values( array_diff_key( $fields( [ 'provider_plugin_paths' => [ $root . '/worker' ] ] )['components'][0], [ 'source' => 1 ] ) ) );
			$t->same( [ 'host-plugin' ], array_column( $fields( [ 'provider_plugin_paths' => [ 'host-plugin' ] ] )['components'], 'slug' ) );
		}
	);
	$t->test(
		'an ability call can name installed plugins only, and every other path gets the same error',
		static function () use ( $t, $fields, $refused, $root ): void {
			$by_path = static fn( string $path ): array => [ 'component_contracts' => [ [ 'slug' => 'a', 'path' => $path ] ] ];
			$there   = $refused( 'wp_codebox_mount_denied', static fn() => $fields( $by_path( $root . '/worker' ), Authority::User ) );
			$t->same( $there, $refused( 'wp_codebox_mount_denied', static fn() => $fields( $by_path( $root . '/none' ), Authority::User ) ) );
			$t->same( $there, $refused( 'wp_codebox_mount_denied', static fn() => $fields( $by_path( WP_PLUGIN_DIR . '/../../..' ), Authority::User ) ) );
			$t->same( 'a', $fields( $by_path( WP_PLUGIN_DIR . '/host-plugin' ), Authority::User )['components'][0]['slug'] );
			$t->as( 'administrator' );
			$t->error( 'wp_codebox_mount_denied', 403, $t->ability( 'run-agent-task', $by_path( $root . '/worker' ) + [ 'goal' => 'x', 'plugin' => 'sample', 'agent_command' => 'true' ] ) );
		}
	);
	$t->test(
		'agent bundles are passed to the extension unchanged',
		static function () use ( $t, $fields ): void {
			$bundles = [
				[
					'source'      => '/srv/agents/a.json',
					'on_conflict' => 'skip',
				],
				[
					'bundle'   => [ 'agent' => [ 'agent_slug' => 'b' ] ],
					'owner_id' => 1,
				],
			];
			$t->same( $bundles, $fields( [ 'agent_bundles' => $bundles ] )['agent_bundles'] );
		}
	);
	$t->test(
		'a task with both a runtime task and an agent command is refused',
		static function () use ( $t, $services ): void {
			$t->as( 'administrator' );
			$base = [
				'goal'         => 'x',
				'plugin'       => 'sample',
				'runtime_task' => [
					'ability' => 'worker/note',
					'input'   => [ 'text' => 'hello' ],
				],
			];
			$t->same( [ 'kind' => 'ability' ] + $base['runtime_task'], $services->runs->prepare( $base, Authority::Operator )->host['resolved_agent'] );
			$t->error( 'wp_codebox_input_invalid', 400, $t->ability( 'run-agent-task', $base + [ 'agent_command' => 'true' ] ) );
		}
	);
	$t->test(
		'component flags of WP-CLI become fields of the request, and invalid JSON is refused',
		static function () use ( $t, $root ): void {
			$log   = getenv( 'TEST_WORK' ) . '/request-components.json';
			$flags = static fn( string ...$flags ): array => \WPCodebox\Cli\ComponentFlags::fields( array_combine( array_map( static fn( string $flag ): string => explode( '=', $flag, 2 )[0], $flags ), array_map( static fn( string $flag ): string => explode( '=', $flag, 2 )[1], $flags ) ) );
			$t->same( [ 'runtime_task' => [ 'ability' => 'worker/note' ] ], $flags( 'runtime-task=worker/note' ) );
			$t->same( [ 'ability' => 'worker/note', 'input' => [ 'text' => 'a' ] ], $flags( 'runtime-task={"ability":"worker/note","input":{"text":"a"}}' )['runtime_task'] );
			$t->same( [ [ 'slug' => 'host-plugin', 'loadAs' => 'plugin', 'activate' => true, 'required' => true ], [ 'path' => $root . '/worker', 'loadAs' => 'plugin', 'activate' => true, 'required' => true ] ], $flags( "component=host-plugin,$root/worker" )['component_contracts'] );
			$t->same( [ [ 'slug' => 'a' ] ], $flags( 'component=[{"slug":"a"}]' )['component_contracts'] );
			$t->same( [ $root . '/worker', 'host-plugin' ], $flags( "provider-plugin-paths=$root/worker,host-plugin" )['provider_plugin_paths'] );
			$t->same( [ [ 'source' => $root . '/worker/worker.php' ], [ 'bundle' => [ 'a' => 1 ] ] ], $flags( 'agent-bundles=["' . $root . '/worker/worker.php",{"bundle":{"a":1}}]' )['agent_bundles'] );
			foreach ( [ 'component=[1]', 'agent-bundles=[', 'runtime-task={' ] as $bad ) {
				try {
					$flags( $bad );
					$t->true( false, "$bad was taken" );
				} catch ( Failure $failure ) {
					$t->same( ErrorCode::InputInvalid->value, $failure->error_code );
				}
			}
			if ( 'fake' === $t->phase ) {
				putenv( 'WP_CODEBOX_FAKE_REQUEST_LOG=' . $log );
				$t->wp( [ 'codebox', 'run-agent-task', 'x', '--plugin=sample', '--component=' . $root . '/worker', '--runtime-task=worker/note' ] );
				putenv( 'WP_CODEBOX_FAKE_REQUEST_LOG' );
				$request = json_decode( (string) file_get_contents( $log ), true );
				$t->same( [ 'worker', 'ability' ], [ $request['components'][0]['slug'], $request['agent']['kind'] ] );
			}
		}
	);
	if ( 'native' !== $t->phase ) {
		return;
	}
	$t->test(
		'an ability of a component changes files of a plugin of this site inside the sandbox',
		static function () use ( $t, $root ): void {
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'Note it', '--plugin=sample', '--component=' . $root . '/worker', '--runtime-task={"ability":"worker/note","input":{"text":"from the guest"}}', '--check=grep -q guest note.txt', '--format=json' ] );
			$t->same( 0, $code, $err );
			$run = json_decode( $out, true );
			$t->same( [ 'succeeded', [ '/wordpress/wp-content/plugins/sample/note.txt' ] ], [ $run['run']['outcome'], array_column( $run['changed_files'], 'path' ) ] );
			$t->contains( '"noted":14', (string) wp_json_encode( $run['transcript'] ?? json_decode( (string) file_get_contents( $run['artifacts'] . '/files/transcript.json' ), true ) ) );
			$t->true( ! is_file( WP_PLUGIN_DIR . '/sample/note.txt' ), 'the site changed' );
		}
	);
	$t->test(
		'a runtime task that names an ability no component registers is refused',
		static function () use ( $t, $root ): void {
			[ $code, , $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'Note it', '--plugin=sample', '--component=' . $root . '/worker', '--runtime-task=worker/other' ] );
			$t->same( 1, $code );
			$t->contains( 'wp_codebox_runtime_task_request_invalid', $err );
			$t->contains( 'worker/', $err );
		}
	);
	$t->test(
		'a required component that throws stops the run, and an optional one does not',
		static function () use ( $t, $root ): void {
			wp_mkdir_p( $root . '/thrower' );
			file_put_contents( $root . '/thrower/thrower.php', "<?php\n/* Plugin Name: Thrower */\nthrow new RuntimeException( 'no such table' );\n" );
			[ $code, , $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', '--plugin=sample', '--component=' . $root . '/thrower', '--agent-command=true' ] );
			$t->same( 125, $code, $err );
			$t->contains( 'wp_codebox_component_unavailable', $err );
			$t->contains( 'no such table', $err );
			[ $code, $out, $err ] = $t->wp( [ 'codebox', 'run-agent-task', 'x', '--plugin=sample', '--component=[{"path":"' . $root . '/thrower","loadAs":"plugin","activate":true}]', '--agent-command=true' ] );
			$t->same( 0, $code, $err );
			$t->contains( 'no such table', $out . $err );
		}
	);
};
