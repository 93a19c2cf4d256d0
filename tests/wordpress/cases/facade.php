<?php
/**
 * WP_Codebox_API: the abilities as static methods, without the capability check of the ability.
 */

declare(strict_types=1);

use WPCodebox\Native\Artifacts;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$names   = array_map( static fn( string $file ): string => 'wp-codebox/' . basename( $file, '.php' ), (array) glob( WP_PLUGIN_DIR . '/wp-codebox/abilities/definitions/*.php' ) );
	$methods  = array_map(
		static fn( ReflectionMethod $method ): string => $method->getName(),
		array_filter( ( new ReflectionClass( 'WP_Codebox_API' ) )->getMethods( ReflectionMethod::IS_STATIC ), static fn( ReflectionMethod $method ): bool => $method->isPublic() )
	);
	$methods  = array_values( array_diff( $methods, [ 'execute_ability', 'public_abilities', 'public_contract_schemas', 'public_contract_primitives', 'runtime_contract_manifest', 'runtime_descriptor', 'wordpress_fuzz_runtime_contract', 'ability' ] ) );

	$t->test(
		'WP_Codebox_API has a method for every ability, and a method without an ability answers that there is none',
		static function () use ( $t, $names, $methods ): void {
			$abilities = array_map( [ 'WP_Codebox_API', 'ability' ], $methods );
			$t->same( [], array_values( array_diff( $names, $abilities ) ), 'abilities without a method of WP_Codebox_API' );
			foreach ( array_keys( array_diff( array_combine( $methods, $abilities ), $names ) ) as $method ) {
				$answer = WP_Codebox_API::$method( [] );
				$code   = is_wp_error( $answer ) ? $answer->get_error_code() : $answer['error']['code'] ?? '';
				$t->same( 'wp_codebox_api_ability_not_supported', $code, $method );
			}
		}
	);
	$t->test(
		'each method of WP_Codebox_API with an ability runs it',
		static function () use ( $t, $names, $methods ): void {
			foreach ( array_filter( $methods, static fn( string $method ): bool => in_array( WP_Codebox_API::ability( $method ), $names, true ) ) as $method ) {
				$direct = WP_Codebox_API::execute_ability( WP_Codebox_API::ability( $method ), [ 'no_such_field' => 1 ] );
				$t->error( 'wp_codebox_input_invalid', 400, $direct );
				$answer = WP_Codebox_API::$method( [ 'no_such_field' => 1 ] );
				$t->same( $direct->get_error_message(), is_wp_error( $answer ) ? $answer->get_error_message() : $answer['error']['message'], $method );
			}
			$t->same( 'wp-codebox/apply-artifact-preflight', WP_Codebox_API::ability( 'preflight_apply_artifact' ) );
			$t->same( 'wp-codebox/list-artifacts', WP_Codebox_API::ability( 'list_artifacts' ) );
		}
	);
	$t->test(
		'an unknown ability name is refused with its error code',
		static function () use ( $t ): void {
			foreach ( [ 'nope', 'wp-codebox/nope', 'core/get-site-info', '../manifest', 'wp-codebox/run-agent-task/..', '' ] as $name ) {
				$t->error( 'wp_codebox_api_ability_not_supported', 404, WP_Codebox_API::execute_ability( $name ) );
			}
			$t->same( true, $t->ok( WP_Codebox_API::execute_ability( 'list-artifacts' ) )['success'] );
			$t->same( true, $t->ok( WP_Codebox_API::execute_ability( 'wp-codebox/list-artifacts' ) )['success'] );
		}
	);
	$t->test(
		'a method of WP_Codebox_API checks no capability, and the ability itself does',
		static function () use ( $t ): void {
			$t->as( 'editor' );
			$refused = $t->ability( 'list-artifacts' );
			$t->same( 'ability_invalid_permissions', is_wp_error( $refused ) ? $refused->get_error_code() : 'let in' );
			$t->same( 'wp-codebox/artifact-list/v1', $t->ok( WP_Codebox_API::list_artifacts() )['schema'] );
		}
	);
	$t->test(
		'an approval through WP_Codebox_API still needs the capability of the current user',
		static function () use ( $t ): void {
			$input = [
				'artifact_id'    => 'run_' . str_repeat( '0', 32 ),
				'action'         => 'approve',
				'approved_files' => [ '/x' ],
			];
			$t->as( 'editor' );
			$t->error( 'wp_codebox_forbidden', 403, WP_Codebox_API::review_artifact( $input ) );
			$t->as( 'administrator' );
			$t->error( 'wp_codebox_artifact_not_found', 404, WP_Codebox_API::review_artifact( $input ) );
		}
	);
	$t->test(
		'WP_Codebox_API applies the mount rules of a user, never those of the operator',
		static function () use ( $t ): void {
			$outside = sys_get_temp_dir() . '/facade-outside-' . getmypid();
			mkdir( $outside );
			foreach ( [ 'administrator', 'nobody' ] as $role ) {
				$t->as( $role );
				$t->error(
					'wp_codebox_mount_denied',
					403,
					WP_Codebox_API::run_agent_task(
						[
							'goal'          => 'x',
							'agent_command' => 'php facade-agent.php nothing',
							'mounts'        => [
								[
									'source' => $outside,
									'target' => '/workspace/x',
								],
							],
						]
					)
				);
			}
			rmdir( $outside );
		}
	);
	$t->test(
		'bundle and audit log record the current user, or that there is none',
		static function () use ( $t ): void {
			copy( getenv( 'TEST_FIXTURES' ) . '/agent.php', WP_PLUGIN_DIR . '/sample/facade-agent.php' );
			$task = [
				'goal'          => 'Facade',
				'plugin'        => 'sample',
				'agent_command' => 'php facade-agent.php nothing',
			];
			foreach ( [ 'editor' => 'user', 'nobody' => 'none' ] as $role => $kind ) {
				$t->as( $role );
				$run   = $t->ok( WP_Codebox_API::run_agent_task( $task ) );
				$notes = json_decode( (string) file_get_contents( $run['artifacts'] . '/metadata.json' ), true );
				$t->same( [ $kind, get_current_user_id() ], [ $notes['provenance']['requester']['kind'] ?? null, $notes['provenance']['requester']['id'] ?? null ] );
				$t->same( true, $t->ok( WP_Codebox_API::discard_artifact( [ 'artifact_id' => $run['run']['run_id'] ] ) )['discarded'] );
				$log  = Artifacts::auditRecords( ( new Site( new InstalledCode() ) )->id(), -1, 1 );
				$last = end( $log['records'] );
				$t->same( [ 'discard', $kind ], [ $last['event'], $last['requester']['kind'] ] );
				$t->same( 'user' === $kind ? 'editor' : null, $last['requester']['login'] ?? null );
			}
			unlink( WP_PLUGIN_DIR . '/sample/facade-agent.php' );
		}
	);
	$t->test(
		'WP_Codebox_API lists all abilities, their capabilities and their schemas',
		static function () use ( $t, $names ): void {
			$catalogue = WP_Codebox_API::public_abilities();
			$schemas   = WP_Codebox_API::public_contract_schemas();
			$t->same( $names, array_keys( $catalogue ) );
			foreach ( $catalogue as $name => $row ) {
				$t->true( [] !== $row['output_schemas'] && [] !== $row['capabilities'], $name );
				$t->same( [], array_values( array_diff( [ $row['input_schema'], ...$row['output_schemas'] ], array_keys( $schemas ) ) ), $name );
				$t->same( [], array_values( array_diff( $row['capabilities'], [ 'wp_codebox_run', 'wp_codebox_review', 'wp_codebox_apply' ] ) ), $name );
				$t->true( '' !== $row['label'] && is_bool( $row['annotations']['readonly'] ), $name );
			}
			$t->same( count( (array) glob( WP_PLUGIN_DIR . '/wp-codebox/abilities/schemas/*.json' ) ), count( $schemas ) );
			$t->true( '' !== ( $schemas['run-result']['$id'] ?? '' ), 'a schema document has no id' );
		}
	);
};
