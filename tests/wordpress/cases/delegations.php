<?php
/**
 * Tasks that are passed to a plugin of the site.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;
use WPCodebox\Tests\Published;

require_once dirname( __DIR__ ) . '/published.php';

return static function ( Harness $t ): void {
	$input = [
		'schema'               => 'wp-codebox/host-delegation-request/v1',
		'request_id'           => ' req-1 ',
		'goal'                 => 'Deploy it',
		'execution'            => [ 'kind' => 'deploy' ],
		'orchestrator'         => [ 'id' => 'o', 'type' => 'ci', 'job_id' => '7' ],
		'sandbox_session_id'   => 'session-1',
		'metadata'             => [ 'ticket' => 7 ],
		'target'               => [ 'kind' => 'plugin', 'ref' => 'sample' ],
		'allowed_tools'        => [ 'workspace.read' ],
		'expected_artifacts'   => [ 'report' ],
		'structured_artifacts' => [ [ 'schema' => 'wp-codebox/structured-artifact/v1', 'name' => 'a', 'type' => 'b', 'payload' => [ 1 ], 'metadata' => [ 'x' => 1 ], 'provenance' => [ 'direction' => 'input' ] ] ],
		'policy'               => [ 'kind' => 'x' ],
		'context'              => [ 'why' => 'because' ],
	];
	$ask = static fn( callable $filter, array $more = [] ): mixed => $t->filtered( 'wp_codebox_host_delegation_request', $filter, static fn(): mixed => $t->ability( 'request-host-delegation', $more + $input ), 2 );

	$t->test(
		'delegation: without a plugin the status is unavailable, and the audit log says so',
		static function () use ( $t, $input ): void {
			$t->as( 'administrator' );
			$answer = Published::answers( $t, 'request-host-delegation', $t->ability( 'request-host-delegation', Published::takes( $t, 'request-host-delegation', $input ) ) );
			$t->same( [ false, 'unavailable', 'req-1', 'session-1', 'host-delegation', 'wp_codebox_host_delegation_unavailable' ], [ $answer['success'], $answer['status'], $answer['request_id'], $answer['session_id'], $answer['execution'], $answer['error']['code'] ] );
			$line = $t->audited()[0];
			$t->same( [ 'host-delegation', 'failure', 'unavailable', 'req-1' ], [ $line['event'], $line['status'], $line['delegation_status'], $line['request_id'] ] );
			$generated = $t->ok( $t->ability( 'request-host-delegation', [ 'task' => 'Deploy it' ] ) );
			$t->same( 1, preg_match( '/^delegation-[0-9a-f-]{36}$/', $generated['request_id'] ) );
			$t->same( 'Deploy it', $generated['request']['goal'] );
		}
	);
	$t->test(
		'delegation: a plugin gets the request and its answer is returned without secrets',
		static function () use ( $t, $ask ): void {
			$t->as( 'administrator' );
			$seen   = null;
			$answer = Published::answers(
				$t,
				'request-host-delegation',
				$ask(
					static function ( mixed $before, array $request ) use ( &$seen ): array {
						$seen = $request;
						return [ 'status' => 'accepted', 'request_id' => 'req-1', 'session_id' => 'session-1', 'source_digest' => str_repeat( 'A', 64 ), 'provider' => 'deployer', 'result' => [ 'job' => 9, 'api_key' => 'sk-1234567890abcdef' ], 'events' => [ [ 'type' => 'queued' ] ], 'artifacts' => [ 'log' => 'x' ], 'timings' => [ 'queued_ms' => 1 ] ];
					},
					[ 'source_digest' => [ 'algorithm' => 'sha256', 'value' => str_repeat( 'a', 64 ) ] ]
				)
			);
			$t->same( [ true, 'accepted', 'deployer', 9, '[redacted]', [ [ 'type' => 'queued' ] ], [ 'queued_ms' => 1 ], str_repeat( 'a', 64 ) ], [ $answer['success'], $answer['status'], $answer['provider'], $answer['result']['job'], $answer['result']['api_key'], $answer['events'], $answer['timings'], $answer['source_digest'] ] );
			$t->same( [ 'wp-codebox/host-delegation-request/v1', 'req-1', 'Deploy it', str_repeat( 'a', 64 ), [ 'ticket' => 7 ] ], [ $seen['schema'], $seen['request_id'], $seen['goal'], $seen['source_digest'], $seen['metadata'] ] );
			$t->same( 'success', $t->audited()[0]['status'] );
			$refused = Published::answers( $t, 'request-host-delegation', $ask( static fn(): WP_Error => new WP_Error( 'deployer_closed', 'Closed on Sundays' ) ) );
			$t->same( [ false, 'failed', 'deployer_closed', 'Closed on Sundays' ], [ $refused['success'], $refused['status'], $refused['error']['code'], $refused['error']['message'] ] );
		}
	);
	$t->test(
		'delegation: an answer that belongs to another request, or is none, is refused with its own code',
		static function () use ( $t, $ask ): void {
			$t->as( 'administrator' );
			$good = [ 'status' => 'completed', 'request_id' => 'req-1', 'session_id' => 'session-1' ];
			$t->same( true, $t->ok( $ask( static fn(): array => $good ) )['success'], 'positive control' );
			foreach ( [
				'wp_codebox_host_delegation_request_id_mismatch' => [ 'request_id' => 'req-2' ] + $good,
				'wp_codebox_host_delegation_scope_mismatch' => [ 'session_id' => 'session-2' ] + $good,
				'wp_codebox_host_delegation_source_digest_mismatch' => [ 'source_digest' => str_repeat( 'b', 64 ) ] + $good,
				'wp_codebox_host_delegation_provider_status_invalid' => [ 'status' => 'queued' ] + $good,
				'wp_codebox_host_delegation_provider_result_invalid' => [ 'schema' => 'other/v1' ] + $good,
			] as $code => $answer ) {
				$t->error( $code, 502, $ask( static fn(): array => $answer ) );
				$t->same( [ 'failure', $code ], [ $t->audited()[0]['status'], $t->audited()[0]['error']['code'] ] );
			}
			foreach ( [ 'text', [], [ 1, 2 ], [ 'events' => 'x' ] + $good, [ 'result' => [ 1 ] ] + $good, [ 'result' => fopen( 'php://memory', 'r' ) ] + $good, [ 'result' => [ 'x' => str_repeat( 'x', 3000000 ) ] ] + $good ] as $answer ) {
				$t->error( 'wp_codebox_host_delegation_provider_result_invalid', 502, $ask( static fn(): mixed => $answer ) );
			}
			$log    = ini_set( 'error_log', getenv( 'TEST_WORK' ) . '/expected.log' );
			$thrown = $ask( static fn() => throw new RuntimeException( 'password hunter2' ) );
			ini_set( 'error_log', (string) $log );
			$t->error( 'wp_codebox_host_delegation_provider_result_invalid', 502, $thrown );
			$t->true( ! str_contains( $thrown->get_error_message(), 'hunter2' ), 'the text of an exception is in the answer' );
		}
	);
	$t->test(
		'delegation: a request without a goal, with a wrong digest or too large is refused before the plugin is asked',
		static function () use ( $t, $ask ): void {
			$t->as( 'administrator' );
			$asked = 0;
			$count = static function () use ( &$asked ): array {
				++$asked;
				return [ 'status' => 'accepted' ];
			};
			$t->error( 'wp_codebox_host_delegation_request_invalid', 400, $ask( $count, [ 'goal' => " \n", 'task' => '' ] ) );
			$t->error( 'wp_codebox_host_delegation_source_digest_invalid', 400, $ask( $count, [ 'source_digest' => 'abc' ] ) );
			$t->error( 'wp_codebox_host_delegation_request_invalid', 400, $ask( $count, [ 'context' => [ 'x' => str_repeat( 'x', 1100000 ) ] ] ) );
			$t->same( 'ability_invalid_input', $ask( $count, [ 'gaol' => 'x' ] )->get_error_code() );
			$t->same( 0, $asked );
			$t->ok( $ask( $count ) );
			$t->same( 1, $asked, 'positive control' );
		}
	);
};
