<?php
/**
 * Tools of a task, and abilities of this site that an agent may call.
 */

declare(strict_types=1);

use WPCodebox\Settings;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$log = getenv( 'TEST_WORK' ) . '/request.json';
	update_site_option( Settings::PROVIDERS, [ 'local' => [ 'api' => 'openai-chat', 'base_url' => 'http://127.0.0.1:11434/v1', 'models' => [ 'm' ] ] ] );
	$run     = static function ( array $input ) use ( $t, $log ): array {
		$t->made( 'nothing' );
		is_file( $log ) && unlink( $log );
		putenv( "WP_CODEBOX_FAKE_REQUEST_LOG=$log" );
		$answer = $t->ability( 'run-agent-task', $input + [ 'goal' => 'Fix it', 'plugin' => 'sample', 'provider' => 'local' ] );
		putenv( 'WP_CODEBOX_FAKE_REQUEST_LOG' );
		return [ $answer, is_file( $log ) ? json_decode( (string) file_get_contents( $log ), true ) : null ];
	};
	$policy  = static fn( string ...$ids ): array => [
		'schema'  => 'wp-codebox/sandbox-tool-policy/v1',
		'version' => 1,
		'tools'   => array_map( static fn( string $id ): array => [ 'id' => $id, 'runtime_tool_id' => str_replace( '.', '_', $id ), 'execution_location' => 'sandbox', 'transport_visibility' => 'sandbox', 'allowed' => true, 'runtime' => [ 'environment' => 'runtime_local', 'capability_scope' => 'runtime_local' ] ], $ids ),
	];
	$said    = static fn( array $got ): array => [ $got[1]['task_input']['allowed_tools'] ?? null, $got[1]['tool_policy'] ?? null ];
	$nothing = [ 'schema' => 'wp-codebox/sandbox-tool-policy/v1', 'version' => 1, 'tools' => [] ];

	$t->test(
		'tool names, tool policy and tool bridge of a task reach the extension',
		static function () use ( $t, $run, $policy, $said ): void {
			$t->same( [ null, null ], $said( $run( [] ) ) );
			$t->same( [ [ 'workspace.read' ], null ], $said( $run( [ 'allowed_tools' => [ 'workspace.read', 'workspace.read' ] ] ) ) );
			$t->same( [ null, $policy( 'a.b' ) ], $said( $run( [ 'sandbox_tool_policy' => $policy( 'a.b' ) ] ) ) );
			$t->same( [ [ 'a.b' ], $policy( 'a.b' ) ], $said( $run( [ 'tool_bridge' => [ 'schema' => 'wp-codebox/tool-bridge/v1', 'version' => 1, 'allowed_tools' => [ 'a.b' ], 'sandbox_tool_policy' => $policy( 'a.b' ) ] ] ) ) );
			$t->same( [ [ 'a.b' ], null ], array_slice( [ ( $got = $run( [ 'allowed_tools' => [ 'a.b' ] ] ) )[0]['task_input']['allowed_tools'], $got[1]['tool_policy'] ?? null ], 0 ) );
			$t->error( 'wp_codebox_sandbox_tool_policy_invalid', 400, $run( [ 'sandbox_tool_policy' => [ 'tools' => 'all' ] ] )[0] );
		}
	);
	$t->test(
		'filters can add, edit and remove tools, and an invalid filter result allows none',
		static function () use ( $t, $run, $policy, $said, $nothing ): void {
			$named  = [ 'allowed_tools' => [ 'a.b', 'c.d' ] ];
			$answer = static fn( mixed $what ): Closure => static fn(): mixed => $what;
			$t->filtered( 'wp_codebox_tool_bridge', $answer( [ 'allowed_tools' => [ 'x.y' ], 'sandbox_tool_policy' => $policy( 'x.y' ) ] ), static fn() => $t->same( [ [ 'x.y' ], $policy( 'x.y' ) ], $said( $run( [] ) ) ) );
			$t->filtered( 'wp_codebox_tool_bridge', $answer( [ 'sandbox_tool_policy' => $policy( 'x.y' ) ] ), static fn() => $t->same( [ null, $policy( 'a.b' ) ], $said( $run( [ 'sandbox_tool_policy' => $policy( 'a.b' ) ] ) ), 'the task brings its own' ) );
			$drop = static fn( array $rule, string $id ): mixed => 'c.d' === $id ? null : $rule;
			$t->filtered( 'wp_codebox_sandbox_tool_policy_tool', $drop, static fn() => $t->same( [ [ 'a.b', 'c.d' ], $policy( 'a.b' ) ], $said( $run( $named ) ) ) );
			$t->filtered( 'wp_codebox_sandbox_tool_policy', static fn( array $p ): array => $p + [ 'metadata' => [ 'by' => 'host' ] ], static fn() => $t->same( [ 'by' => 'host' ], $run( $named )[1]['tool_policy']['metadata'] ) );
			$t->filtered( 'wp_codebox_sandbox_tool_policy', $answer( 'all' ), static fn() => $t->same( $nothing, $run( $named )[1]['tool_policy'] ) );
			$t->filtered( 'wp_codebox_resolved_tool_bridge', static fn( array $bridge ): array => [ 'allowed_tools' => [ 'a.b' ] ] + $bridge, static fn() => $t->same( [ [ 'a.b' ], null ], $said( $run( $named ) ) ) );
			$t->filtered( 'wp_codebox_resolved_tool_bridge', $answer( null ), static fn() => $t->same( [ null, $nothing ], $said( $run( $named ) ) ) );
			$t->same( [ [ 'a.b', 'c.d' ], null ], $said( $run( $named ) ), 'positive control: without hooks' );
		}
	);

	$GLOBALS['codebox_test_allowed'] = true;
	$GLOBALS['codebox_test_calls']   = [];
	// Core accepts abilities only during wp_abilities_api_init.
	$register = static function (): void {
		foreach ( [
			'read-ticket' => static fn( array $input ): array => [ 'title' => 'Ticket ' . $input['id'], 'user' => get_current_user_id() ],
			'large'       => static fn( array $input ): string => str_repeat( 'x', 70000 ),
			'throws'      => static fn( array $input ): never => throw new RuntimeException( 'password hunter2 in /etc/secret' ),
			'plain'       => static fn(): string => 'pong',
		] as $name => $does ) {
			$schema = 'plain' === $name ? [] : [ 'input_schema' => [ 'type' => 'object', 'properties' => [ 'id' => [ 'type' => 'integer', 'enum' => [] ] ], 'required' => 'read-ticket' === $name ? [ 'id' ] : [], 'additionalProperties' => false ] ];
			wp_register_ability(
				'example-host/' . $name,
				$schema + [
					'label'               => 'Read a ticket',
					'description'         => 'Reads one ticket.',
					'category'            => 'wp-codebox',
					'permission_callback' => static fn(): bool => $GLOBALS['codebox_test_allowed'],
					'execute_callback'    => static function ( $input = null ) use ( $does, $name ): mixed {
						$GLOBALS['codebox_test_calls'][] = $name;
						return null === $input ? $does() : $does( (array) $input );
					},
				]
			);
		}
	};
	if ( ! wp_has_ability( 'example-host/plain' ) ) {
		$current                      = $GLOBALS['wp_current_filter'];
		$GLOBALS['wp_current_filter'][] = 'wp_abilities_api_init';
		$register();
		$GLOBALS['wp_current_filter'] = $current;
	}
	/** Returns the replies that the sandbox received, in the order of its calls. */
	$replies = static function ( WP_Error|array $answer ) use ( $t ): array {
		$id    = $t->ok( $answer )['run']['run_id'];
		$files = glob( getenv( 'WP_CODEBOX_FAKE_STATE' ) . "/sites/*/runs/$id/reply-*.json" );
		natsort( $files );
		return array_map( static fn( string $file ): array => json_decode( (string) file_get_contents( $file ), true ), array_values( $files ) );
	};
	$ask     = static fn( array $tools, array ...$calls ): array => [
		'parent_tool_bridge' => [ 'schema' => 'wp-codebox/parent-tool-bridge/v1', 'allowed_tools' => $tools, 'timeout_ms' => 5000 ],
		'context'            => [ 'ask' => $calls ],
	];

	$t->test(
		'a listed ability is offered with its schema, runs as the current user and is audited',
		static function () use ( $t, $run, $ask, $replies ): void {
			[ $answer, $request ] = $run( $ask( [ 'example-host/read-ticket', 'example-host/plain' ], [ 'tool' => 'example-host.read-ticket', 'input' => [ 'id' => 7 ] ], [ 'tool' => 'example-host.plain', 'input' => [] ] ) );
			$t->same( [ 'example-host.read-ticket', 'Read a ticket. Reads one ticket.', 5000 ], [ $request['parent_tools']['tools'][0]['id'], $request['parent_tools']['tools'][0]['description'], $request['parent_tools']['timeout_ms'] ] );
			$t->same( [ 'type' => 'object', 'properties' => [ 'id' => [ 'type' => 'integer' ] ], 'required' => [ 'id' ], 'additionalProperties' => false ], $request['parent_tools']['tools'][0]['input_schema'] );
			$t->same( [ 'type' => 'object' ], $request['parent_tools']['tools'][1]['input_schema'] );
			[ $ticket, $plain ] = $replies( $answer );
			$t->same( [ 'wp-codebox/parent-tool-result/v1', 'succeeded', [ 'title' => 'Ticket 7', 'user' => get_user_by( 'login', 'admin' )->ID ] ], [ $ticket['schema'], $ticket['status'], $ticket['output'] ] );
			$t->same( [ $answer['run']['run_id'] . '-parent-0', 'pong' ], [ $ticket['request_id'], $plain['output'] ] );
			$t->same( [ [ 'parent-tool', 'example-host.read-ticket', 'success' ], [ 'parent-tool', 'example-host.plain', 'success' ] ], array_map( static fn( array $record ): array => [ $record['event'], $record['tool'], $record['status'] ], $t->audited( 2 ) ) );
			// Parent tools are added to allowed_tools, which would otherwise exclude them.
			[ , $request ] = $run( [ 'allowed_tools' => [ 'workspace.read' ] ] + $ask( [ 'example-host/plain' ] ) );
			$t->same( [ 'workspace.read', 'example-host.plain' ], $request['task_input']['allowed_tools'] );
		}
	);
	$t->test(
		'each tool call is checked again for allow list, permission, input, size and errors',
		static function () use ( $t, $run, $ask, $replies ): void {
			$GLOBALS['codebox_test_calls'] = [];
			$log                           = ini_set( 'error_log', getenv( 'TEST_WORK' ) . '/expected.log' );
			[ $answer ]                    = $run(
				$ask(
					[ 'example-host/read-ticket', 'example-host/large', 'example-host/throws' ],
					[ 'tool' => 'example-host.plain', 'input' => [] ],
					[ 'tool' => 'wp-codebox.list-artifacts', 'input' => [] ],
					[ 'tool' => 'example-host/read-ticket', 'input' => [ 'id' => 1 ] ],
					[ 'tool' => [ 'x' ], 'input' => [] ],
					[ 'tool' => 'example-host.read-ticket', 'input' => [ 'id' => 'x; DROP' ] ],
					[ 'tool' => 'example-host.read-ticket', 'input' => 'text' ],
					[ 'tool' => 'example-host.large', 'input' => [] ],
					[ 'tool' => 'example-host.throws', 'input' => [] ],
					[ 'tool' => 'example-host.read-ticket', 'input' => [ 'id' => 2 ] ]
				)
			);
			ini_set( 'error_log', (string) $log );
			$got = array_map( static fn( array $reply ): array => [ $reply['status'], $reply['error']['code'] ?? null ], $replies( $answer ) );
			$t->same(
				[
					[ 'denied', 'wp_codebox_tool_not_allowed' ],
					[ 'denied', 'wp_codebox_tool_not_allowed' ],
					[ 'denied', 'wp_codebox_tool_not_allowed' ],
					[ 'denied', 'wp_codebox_tool_not_allowed' ],
					[ 'failed', 'ability_invalid_input' ],
					[ 'failed', 'ability_invalid_input' ],
					[ 'failed', 'wp_codebox_input_invalid' ],
					[ 'failed', 'wp_codebox_internal' ],
					[ 'succeeded', null ],
				],
				$got
			);
			$t->same( [ 'large', 'throws', 'read-ticket' ], $GLOBALS['codebox_test_calls'] );
			$t->true( ! str_contains( (string) json_encode( $replies( $answer ) ), 'hunter2' ), 'the text of the exception reached the sandbox' );
			$GLOBALS['codebox_test_allowed'] = false;
			[ $answer ]                      = $run( $ask( [ 'example-host/plain' ], [ 'tool' => 'example-host.plain', 'input' => [] ] ) );
			$t->same( [ 'denied', 'ability_invalid_permissions' ], [ $replies( $answer )[0]['status'], $replies( $answer )[0]['error']['code'] ] );
			$GLOBALS['codebox_test_allowed'] = true;
			$asked                           = 0;
			$late                            = static function () use ( &$asked ): bool {
				return 1 === ++$asked;
			};
			[ $answer ]                      = $t->filtered( 'wp_codebox_can_call_parent_tool', $late, static fn() => $run( $ask( [ 'example-host/plain' ], [ 'tool' => 'example-host.plain', 'input' => [] ] ) ) );
			$t->same( [ 'denied', 2 ], [ $replies( $answer )[0]['status'], $asked ] );
			$t->same( 'failure', $t->audited()[0]['status'] );
		}
	);
	$t->test(
		'a tool that is not an ability open to agents is refused before a run starts',
		static function () use ( $t, $run, $ask ): void {
			foreach ( [
				[ $ask( [ 'wp-codebox/apply-approved-artifact' ] ), 'wp_codebox_tool_not_allowed', 403 ],
				[ $ask( [ 'example-host/nobody' ] ), 'wp_codebox_tool_not_allowed', 403 ],
				[ $ask( [ 'example-host.plain' ] ), 'wp_codebox_tool_not_allowed', 403 ],
				[ $ask( [] ), 'wp_codebox_input_invalid', 400 ],
				[ [ 'parent_tool_bridge' => [ 'allowed_tools' => [ 'example-host/plain' ], 'dispatcher' => [ 'mode' => 'host_command', 'command' => [ 'argv' => [ 'id' ] ] ] ] ], 'wp_codebox_input_invalid', 400 ],
				[ [ 'parent_tool_bridge' => [ 'allowed_tools' => [ 'example-host/plain' ], 'dispatcher' => [ 'mode' => 'host_endpoint' ] ] ], 'wp_codebox_input_invalid', 400 ],
				[ [ 'parent_tool_bridge' => [ 'allowed_tools' => [ 'example-host/plain' ], 'dispatcher' => [ 'endpoint' => [ 'url_env' => 'X' ] ] ] ], 'wp_codebox_input_invalid', 400 ],
			] as [ $input, $code, $status ] ) {
				[ $error, $request ] = $run( $input );
				$t->error( $code, $status, $error );
				$t->same( null, $request, 'a run was started' );
			}
			$t->filtered( 'wp_codebox_can_call_parent_tool', '__return_false', static fn() => $t->error( 'wp_codebox_tool_not_allowed', 403, $run( $ask( [ 'example-host/plain' ] ) )[0] ) );
			$t->ok( $run( $ask( [ 'example-host/plain' ] ) )[0] );
		}
	);
	$t->test(
		'cleanup: provider and abilities of these tests are removed',
		static function () use ( $t ): void {
			delete_site_option( Settings::PROVIDERS );
			foreach ( [ 'read-ticket', 'large', 'throws', 'plain' ] as $name ) {
				wp_unregister_ability( 'example-host/' . $name );
			}
			$t->same( false, wp_has_ability( 'example-host/plain' ) );
		}
	);
};
