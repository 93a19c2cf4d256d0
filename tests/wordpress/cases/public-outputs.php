<?php
/**
 * Results of the abilities against the output schemas of the public contract, through the validator of WordPress itself.
 */

declare(strict_types=1);

use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$surface = json_decode( (string) file_get_contents( getenv( 'TEST_ROOT' ) . '/tests/conformance/public/php-surface.json' ), true )['abilities'];
	$file    = '/wordpress/wp-content/plugins/sample/sample.php';
	// WordPress ignores `const`, so it is checked as an enum with one value.
	$strict = static function ( array $schema ) use ( &$strict ): array {
		if ( array_key_exists( 'const', $schema ) ) {
			$schema['enum'] = [ $schema['const'] ];
			$schema        += [ 'type' => is_int( $schema['const'] ) ? 'integer' : 'string' ];
		}
		unset( $schema['const'], $schema['$id'] );
		return array_map( static fn( mixed $node ): mixed => is_array( $node ) ? $strict( $node ) : $node, $schema );
	};
	$fits   = static function ( string $ability, array $answer, array $members ) use ( $t, $surface, $strict ): void {
		$read  = json_decode( (string) json_encode( $answer ), true );
		$valid = rest_validate_value_from_schema( $read, $strict( $surface[ "wp-codebox/$ability" ]['output'] ), $ability );
		$t->same( true, $valid, is_wp_error( $valid ) ? $valid->get_error_message() : '' );
		$t->same( [], array_values( array_diff( $members, array_keys( $answer ) ) ), "$ability lacks members" );
	};

	$single = [ 'success', 'schema', 'status', 'statuses', 'agent_task_status', 'session', 'task', 'task_input', 'wp', 'paths', 'artifacts', 'exit_code', 'agent_result', 'agent_task_result', 'completion_outcome', 'diagnostics', 'evidence_refs', 'run_metadata', 'agent_task_run_result', 'headless_agent_task_result', 'artifact_result', 'outputs', 'run' ];
	$row    = [ 'index', 'task', 'task_input', 'success', 'status', 'exit_code', 'session', 'artifact_id', 'artifacts', 'artifact_result', 'outputs', 'agent_task_run_result', 'agent_result', 'agent_task_result', 'completion_outcome', 'run' ];
	$batch  = [ 'success', 'schema', 'session', 'tasks', 'task_inputs', 'execution', 'total', 'completed', 'failed', 'wp', 'paths', 'artifacts', 'runs' ];
	$fanout = [ 'success', 'schema', 'fanout_id', 'status', 'execution', 'session', 'concurrency', 'total', 'completed', 'failed', 'skipped', 'cancelled', 'timed_out', 'timings', 'plan', 'events', 'workerResultRefs', 'aggregate', 'runs', 'failures' ];
	$worker = [ 'worker_id', 'index', 'success', 'status', 'session', 'artifacts', 'evidence_refs', 'completion_outcome', 'timings' ];
	$bundle = [ 'id', 'content_digest', 'created_at', 'directory', 'paths', 'has_patch', 'has_changed_files', 'has_test_results', 'has_review' ];
	$import = [ 'success', 'schema', 'operation', 'status', 'artifactBundle', 'artifactRefs', 'evidenceRefs', 'verification', 'result', 'diagnostics', 'artifact' ];

	$fresh = static function () use ( $t ): void {
		$t->as( 'administrator' );
		foreach ( [ 'sample.php', 'inc/more.php' ] as $name ) {
			copy( getenv( 'TEST_FIXTURES' ) . '/sample/' . $name, WP_PLUGIN_DIR . '/sample/' . $name );
		}
		copy( getenv( 'TEST_FIXTURES' ) . '/agent.php', WP_PLUGIN_DIR . '/sample/agent.php' );
	};
	$do    = static fn( string $what ): array => [ 'goal' => "Do $what", 'agent_command' => "php agent.php $what" ];
	$id    = static fn( array $made ): array => [ 'artifact_id' => $made['run']['run_id'] ];
	$ok    = static fn( string $ability, mixed $input = null ): array => $t->ok( $t->ability( $ability, $input ) );

	// Each row: the ability, what its call is about, members of the result, the call.
	foreach ( [
		[ 'run-agent-task', 'a run that succeeds', $single, static fn(): array => $t->made( 'fix', [ 'session_id' => 'c-1', 'orchestrator' => [ 'id' => 'o' ], 'context' => [ 'a' => 'b' ] ] ) ],
		[ 'run-agent-task', 'a run that changes nothing', $single, static fn(): array => $t->made( 'nothing' ) ],
		[ 'run-agent-task', 'a run that fails', [ 'error', ...$single ], static fn(): array => $t->made( 'fix-and-fail' ) ],
		[ 'run-agent-task', 'a run that repairs a finding', [ 'outcome', ...$single ], static fn(): array => $t->made( 'fix', [ 'target' => [ 'kind' => 'audit-remediation', 'ref' => 'x' ] ] ) ],
		[ 'run-agent-task', 'a detached run', [ 'success', 'schema', 'status', 'session', 'task', 'task_input', 'wp' ], static fn(): array => $ok( 'run-agent-task', [ 'plugin' => 'sample', 'wait' => false ] + $do( 'nothing' ) ) ],
		[ 'run-agent-task-batch', 'a batch that succeeds', $batch, static fn(): array => $ok( 'run-agent-task-batch', [ 'plugin' => 'sample', 'tasks' => [ $do( 'write one.txt' ), $do( 'nothing' ) ] ] ) ],
		[ 'run-agent-task-batch', 'a batch with failed and invalid tasks', $batch, static fn(): array => $ok( 'run-agent-task-batch', [ 'plugin' => 'sample', 'tasks' => [ $do( 'fix-and-fail' ), 7, [], [ 'plugin' => 'nope' ] + $do( 'nothing' ) ] ] ) ],
		[ 'run-agent-task-fanout', 'a fan-out that succeeds', $fanout, static fn(): array => $ok( 'run-agent-task-fanout', [ 'plugin' => 'sample', 'workers' => [ [ 'id' => 'a' ] + $do( 'write a.txt' ), [ 'id' => 'b', 'dependsOn' => [ 'a' ] ] + $do( 'nothing' ) ] ] ) ],
		[ 'run-agent-task-fanout', 'a fan-out with a failed and a skipped worker', $fanout, static fn(): array => $ok( 'run-agent-task-fanout', [ 'plugin' => 'sample', 'orchestrator' => [ 'id' => 'o' ], 'workers' => [ [ 'id' => 'a' ] + $do( 'style' ), [ 'id' => 'b', 'dependsOn' => [ 'a' ] ] + $do( 'nothing' ) ] ] ) ],
		[ 'list-artifacts', 'the bundles of the site', [ 'success', 'schema', 'root', 'artifacts' ], static fn(): array => $ok( 'list-artifacts' ) ],
		[ 'get-artifact', 'a bundle', [ 'success', 'schema', 'artifact' ], static fn(): array => $ok( 'get-artifact', $id( $t->made() ) ) ],
		[ 'inspect-artifact', 'a bundle that verifies', [ 'success', 'schema', 'artifact', 'verification' ], static fn(): array => $ok( 'inspect-artifact', $id( $t->made() ) ) ],
		[
			'inspect-artifact',
			'a tampered bundle',
			[ 'success', 'schema', 'artifact', 'verification' ],
			static function () use ( $t, $ok, $id ): array {
				$made = $t->made();
				$t->tamper( $made );
				return $ok( 'inspect-artifact', $id( $made ) );
			},
		],
		[ 'discard-artifact', 'a bundle', [ 'success', 'schema', 'artifact_id', 'discarded' ], static fn(): array => $ok( 'discard-artifact', $id( $t->made() ) ) ],
		[ 'apply-artifact-preflight', 'one file', [ 'success', 'schema', 'artifact_id', 'artifact', 'approved_files', 'changed_files', 'patch_sha256', 'content_digest', 'verification', 'payload' ], static fn(): array => $ok( 'apply-artifact-preflight', [ 'approved_files' => [ $file ] ] + $id( $t->made() ) ) ],
		[ 'apply-approved-artifact', 'one file', [ 'success', 'schema', 'artifact_id', 'approved_files', 'patch_sha256', 'content_digest', 'verification', 'result' ], static fn(): array => $t->hosts( [ 'host-plugin' ], static fn(): array => $ok( 'apply-approved-artifact', [ 'approved_files' => [ $file ] ] + $id( $t->made() ) ) ) ],
		[ 'stage-artifact-apply', 'one file', [ 'success', 'schema', 'artifact_id' ], static fn(): array => $t->hosts( [ 'host-plugin', 'host-pending-actions' ], static fn(): array => $ok( 'stage-artifact-apply', [ 'approved_files' => [ $file ] ] + $id( $t->made() ) ) ) ],
		[ 'review-artifact', 'an approval', [ 'success', 'schema', 'artifact_id', 'action', 'approved_files', 'content_digest', 'verification', 'decision', 'message', 'result' ], static fn(): array => $t->hosts( [ 'host-plugin' ], static fn(): array => $ok( 'review-artifact', [ 'action' => 'approve', 'approved_files' => [ $file ] ] + $id( $t->made() ) ) ) ],
		[ 'review-artifact', 'a rejection', [ 'success', 'schema', 'artifact_id', 'action', 'verification', 'decision', 'message', 'result' ], static fn(): array => $ok( 'review-artifact', [ 'action' => 'reject' ] + $id( $t->made() ) ) ],
		[
			'import-artifact-bundle',
			'a bundle that was discarded',
			$import,
			static function () use ( $t, $ok, $id ): array {
				$made    = $t->made();
				$archive = $ok( 'export-artifact-bundle', $id( $made ) )['archive'];
				$ok( 'discard-artifact', $id( $made ) );
				return $ok( 'import-artifact-bundle', [ 'archive' => $archive ] );
			},
		],
		[
			'reimport-artifact-bundle',
			'an existing bundle',
			$import,
			static function () use ( $t, $ok, $id ): array {
				$made = $t->made();
				return $ok( 'reimport-artifact-bundle', [ 'artifact_id' => $made['artifact_id'], 'archive' => $ok( 'export-artifact-bundle', $id( $made ) )['archive'] ] );
			},
		],
		[ 'browser-connector-request', 'an unknown connector', [ 'success', 'schema', 'status', 'connector', 'operation', 'error', 'audit' ], static fn(): array => $ok( 'browser-connector-request', [ 'connector' => 'none', 'operation' => 'chat', 'payload' => [ 'a' => 1 ] ] ) ],
	] as [ $ability, $about, $members, $call ] ) {
		$t->test(
			"public schema: $ability with $about",
			static function () use ( $t, $ability, $members, $call, $fresh, $fits, $row, $worker, $bundle ): void {
				$fresh();
				$answer = $call();
				$fits( $ability, $answer, $members );
				if ( isset( $answer['execution'] ) && 'bounded-concurrent-isolated-sandboxes' !== $answer['execution'] ) {
					foreach ( array_filter( $answer['runs'], static fn( array $one ): bool => isset( $one['run'] ) ) as $one ) {
						$t->same( [], array_values( array_diff( $row, array_keys( $one ) ) ), 'row' );
					}
				} elseif ( isset( $answer['fanout_id'] ) ) {
					foreach ( array_filter( $answer['runs'], static fn( array $one ): bool => isset( $one['run'] ) ) as $one ) {
						$t->same( [], array_values( array_diff( $worker, array_keys( $one ) ) ), 'row' );
					}
				}
				$found = isset( $answer['artifacts'] ) && is_array( $answer['artifacts'] ) ? $answer['artifacts'][0] ?? null : $answer['artifact'] ?? null;
				if ( is_array( $found ) && 'agent-fanout' !== $ability && isset( $found['run_id'] ) ) {
					$t->same( [], array_values( array_diff( $bundle, array_keys( $found ) ) ), 'bundle' );
				}
			}
		);
	}

	$t->test(
		'public schema: a refused call is a WP_Error with a status',
		static function () use ( $t, $file ): void {
			$made = $t->made();
			$gone = [ 'artifact_id' => 'run_' . str_repeat( '0', 32 ) ];
			foreach ( [
				[ 'wp_codebox_task_missing', 400, 'run-agent-task', [ 'goal' => ' ', 'plugin' => 'sample', 'agent_command' => 'true' ] ],
				[ 'wp_codebox_tasks_missing', 400, 'run-agent-task-batch', [ 'tasks' => [] ] ],
				[ 'wp_codebox_fanout_workers_missing', 400, 'run-agent-task-fanout', [ 'workers' => [] ] ],
				[ 'wp_codebox_artifact_not_found', 404, 'get-artifact', $gone ],
				[ 'wp_codebox_artifact_not_found', 404, 'inspect-artifact', $gone ],
				[ 'wp_codebox_artifact_not_found', 404, 'discard-artifact', $gone ],
				[ 'wp_codebox_approved_files_missing', 400, 'apply-artifact-preflight', [ 'artifact_id' => $made['run']['run_id'] ] ],
				[ 'wp_codebox_approved_files_invalid', 400, 'apply-approved-artifact', [ 'artifact_id' => $made['run']['run_id'], 'approved_files' => [ '/nope' ] ] ],
				[ 'wp_codebox_review_action_missing', 400, 'review-artifact', [ 'artifact_id' => $made['run']['run_id'] ] ],
			] as [ $code, $status, $ability, $input ] ) {
				$t->error( $code, $status, $t->ability( $ability, $input ) );
			}
			$t->ok( $t->ability( 'apply-artifact-preflight', [ 'artifact_id' => $made['run']['run_id'], 'approved_files' => [ $file ] ] ) );
		}
	);
};
