<?php
/**
 * The abilities through core's REST route: verbs, statuses, query strings.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$call = static function ( string $method, string $name, mixed $input = null ): array {
		$request = new WP_REST_Request( $method, '/wp-abilities/v1/abilities/wp-codebox/' . $name . '/run' );
		if ( null !== $input ) {
			if ( 'GET' === $method ) {
				$request->set_query_params( [ 'input' => $input ] );
			} else {
				$request->set_header( 'Content-Type', 'application/json' );
				$request->set_body( (string) wp_json_encode( [ 'input' => $input ] ) );
			}
		}
		$response = rest_do_request( $request );
		return [ $response->get_status(), $response->get_data() ];
	};
	// WordPress derives the method from the annotations.
	$verbs = [];
	foreach ( require dirname( __DIR__ ) . '/annotations.php' as $ability => [ $readonly ] ) {
		$verbs[ substr( $ability, strlen( 'wp-codebox/' ) ) ] = $readonly ? 'GET' : 'POST';
	}

	$t->test(
		'over REST a user can set the fields of a task meant for callers, and no fields meant for the host',
		static function () use ( $t, $call ): void {
			$fields = json_decode( (string) file_get_contents( dirname( __DIR__ ) . '/fake/task-fields.json' ), true );
			$t->as( 'editor' );
			$t->filtered(
				'map_meta_cap',
				static fn( array $caps, string $cap ): array => 'wp_codebox_run' === $cap ? [ 'edit_posts' ] : $caps,
				static function () use ( $t, $call, $fields ): void {
					foreach ( $fields as [ 'name' => $name, 'authority' => $authority ] ) {
						foreach ( [ 'x', [ 'x' => 1 ] ] as $value ) {
							// Without a goal nothing starts, whatever the value.
							[ $status, $data ] = $call( 'POST', 'run-agent-task', [ $name => $value ] + [ 'goal' => ' ' ] );
							$refused           = str_contains( $data['message'] ?? '', "has no field \"$name\"" );
							if ( 'goal' !== $name ) {
								// `mode` and `staged_files` of a caller are public fields with another meaning, which PHP converts.
								$host = 'caller' !== $authority && ! in_array( $name, [ 'mode', 'staged_files' ], true );
								$t->same( [ 400, $host ], [ $status, $refused ], $name . ': ' . wp_json_encode( $data ) );
							}
						}
					}
					$t->same( [ 400, 'wp_codebox_task_missing' ], [ ( $got = $call( 'POST', 'run-agent-task', [ 'goal' => ' ', 'checks' => [ 'true' ], 'find_renames' => true ] ) )[0], $got[1]['code'] ], 'positive control' );
				}
			);
		}
	);
	foreach ( $verbs as $name => $verb ) {
		$t->test(
			"$name takes $verb only, and only from an administrator",
			static function () use ( $t, $call, $name, $verb ): void {
				$t->as( 'administrator' );
				foreach ( array_diff( [ 'GET', 'POST', 'DELETE' ], [ $verb ] ) as $other ) {
					$t->same( 405, $call( $other, $name )[0], $other );
				}
				$t->true( 405 !== $call( $verb, $name, 'GET' === $verb ? null : (object) [] )[0], 'positive control' );
				$t->as( 'editor' );
				$t->same( 403, $call( $verb, $name )[0] );
				$t->as( 'nobody' );
				$t->same( 401, $call( $verb, $name )[0] );
			}
		);
	}
	$t->test(
		'numbers in a query string are parsed as numbers',
		static function () use ( $t, $call ): void {
			$t->as( 'administrator' );
			[ $status, $data ] = $call( 'GET', 'list-artifacts', [ 'page' => '1', 'per_page' => '2' ] );
			$t->same( [ 200, 1, 2 ], [ $status, $data['page'], $data['per_page'] ] );
			$t->same( 400, $call( 'GET', 'list-artifacts', [ 'page' => 'x' ] )[0] );
		}
	);
	$t->test(
		'an error over REST has the code and status of the plugin',
		static function () use ( $t, $call ): void {
			$t->as( 'administrator' );
			[ $status, $data ] = $call( 'POST', 'run-agent-task', (object) [] );
			$t->same( [ 400, 'wp_codebox_task_missing' ], [ $status, $data['code'] ] );
			[ $status, $data ] = $call( 'GET', 'get-artifact', [ 'artifact_id' => 'run_' . str_repeat( '0', 32 ) ] );
			$t->same( [ 404, 'wp_codebox_artifact_not_found' ], [ $status, $data['code'] ] );
		}
	);
	$t->test(
		'a failed run over REST answers 200, and its JSON objects stay objects',
		static function () use ( $t, $call ): void {
			$t->as( 'administrator' );
			copy( getenv( 'TEST_FIXTURES' ) . '/agent.php', WP_PLUGIN_DIR . '/sample/agent.php' );
			[ $status, $data ] = $call( 'POST', 'run-agent-task', [ 'goal' => 'x', 'plugin' => 'sample', 'agent_command' => 'php agent.php fix-and-fail' ] );
			$t->same( [ 200, false, 'failed' ], [ $status, $data['success'], $data['run']['outcome'] ], (string) json_encode( $data ) );
			$again = json_decode( (string) wp_json_encode( $data ), false );
			$t->true( is_object( $again->session ) && is_object( $again->cost ) && is_array( $again->changed_files ), 'an object was encoded as a list' );
		}
	);
	$t->test(
		'the input schema of an ability is published over REST',
		static function () use ( $t ): void {
			$t->as( 'administrator' );
			$data = rest_do_request( new WP_REST_Request( 'GET', '/wp-abilities/v1/abilities/wp-codebox/run-agent-task' ) )->get_data();
			$t->same( [ 'wp-codebox/run-agent-task', 'object' ], [ $data['name'], $data['input_schema']['type'] ] );
		}
	);
};
