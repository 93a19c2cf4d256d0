<?php
/**
 * Documents in which other programs wrap a task. The extension unpacks them before the plugin reads the task.
 */

declare(strict_types=1);

use WPCodebox\Abilities\SchemaStore;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Run\RunRequest;
use WPCodebox\Services;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$here     = WP_PLUGIN_DIR . '/wp-codebox/abilities';
	$schemas  = new SchemaStore( $here . '/schemas' );
	$services = new Services( new ExtensionGate( \WPCodebox\VERSION, ( require $here . '/manifest.php' )['contract_digest'] ), $schemas );
	$sample   = (string) realpath( WP_PLUGIN_DIR . '/sample' );
	$parent   = static fn( array $request ): array => [ 'parent_request' => [ 'schema' => 'wp-codebox/task-input/v1' ] + $request ];
	$prepared = static function ( array $input ) use ( $services, $schemas ): RunRequest {
		$input += [ 'goal' => 'x', 'plugin' => 'sample', 'agent_command' => 'true' ];
		$valid  = $schemas->check( 'run-agent-task-input', $input );
		if ( is_wp_error( $valid ) ) {
			throw new RuntimeException( $valid->get_error_message() );
		}
		return $services->runs->prepare( $input, \WPCodebox\Authority::User );
	};
	$refused  = static function ( array $input ) use ( $prepared ): Failure {
		try {
			$prepared( $input );
		} catch ( Throwable $thrown ) {
			return Failure::from( $thrown );
		}
		throw new RuntimeException( 'not refused: ' . wp_json_encode( $input ) );
	};

	$t->test(
		'the envelopes agent_workload, workload and parent_request give fields that the task lacks',
		static function () use ( $t, $prepared, $refused ): void {
			$t->as( 'administrator' );
			$task = $prepared(
				[
					'goal'           => '',
					'allowed_tools'  => [ 'workspace.read' ],
					'context'        => [ 'own' => 1 ],
					'agent_workload' => [
						'schema'        => 'wp-codebox/agent-workload/v1',
						'task'          => [ 'prompt' => 'From the workload' ],
						'tools'         => [ 'workspace.read', 'workspace.edit' ],
						'artifacts'     => [ 'patch' ],
						'context'       => [ 'own' => 2, 'more' => 3 ],
						'agent_runtime' => [ 'mode' => 'chat' ],
						'note'          => 'left out',
					],
					'parent_request' => [ 'schema' => 'wp-codebox/task-input/v1', 'goal' => 'Not used', 'expected_artifacts' => [ 'report' ] ],
				]
			)->task;
			$t->same( 'From the workload', $task['goal'] );
			$t->same( [ [ 'workspace.read', 'workspace.edit' ], [ 'patch', 'report' ] ], [ $task['allowed_tools'], $task['expected_artifacts'] ] );
			$t->same( [ 'own' => 1, 'more' => 3, 'mode' => 'chat' ], $task['context'] );
			$t->same( [ 'parent_request' => [ 'id' => 4 ] ], $prepared( [ 'parent_request' => [ 'id' => 4 ] ] )->task['context'] );
			$t->same( 'A goal', $prepared( [ 'goal' => '', 'workload' => [ 'task' => 'A goal' ] ] )->task['goal'] );
			$t->same( 'Own', $prepared( [ 'goal' => 'Own', 'workload' => [ 'artifacts' => [ 'patch' ] ] ] )->task['goal'] );
			$t->same( [ 'wp_codebox_task_missing', 'workload.task' ], [ $refused( [ 'goal' => '', 'workload' => [ 'tools' => [ 'workspace.read' ] ] ] )->error_code, $refused( [ 'goal' => '', 'workload' => [ 'tools' => [ 'workspace.read' ] ] ] )->data['field'] ] );
			$t->same( 'workload.schema', $refused( [ 'workload' => [ 'schema' => 'other/v1', 'task' => 'x' ] ] )->data['field'] );
			$t->same( 'wp_codebox_input_invalid', $refused( [ 'workload' => [ 'task' => 'x', 'model' => [ 'not' => 'a name' ] ] ] )->error_code );
			$t->same( 'wp_codebox_raw_code_forbidden', $refused( [ 'workload' => [ 'task' => [ 'goal' => 'x', 'code' => 'y' ] ] ] )->error_code );
		}
	);
	$t->test(
		'an envelope stages only files that the task may stage',
		static function () use ( $t, $prepared, $refused, $parent, $sample ): void {
			$t->as( 'administrator' );
			$file = static fn( string $source ): array => [ 'staged_files' => [ [ 'source' => $source, 'target' => '/workspace/notes.txt' ] ] ];
			$t->same( "$sample/sample.php", $prepared( $parent( $file( "$sample/sample.php" ) ) )->host['staged_files'][0]['source'] );
			$t->same( 'wp_codebox_mount_denied', $refused( $parent( $file( '/etc/passwd' ) ) )->error_code );
		}
	);
	$t->test(
		'fields of the host are never taken from an envelope',
		static function () use ( $t, $prepared, $parent ): void {
			$t->as( 'administrator' );
			$made = $prepared( [ 'workload' => [ 'task' => 'x', 'mounts' => [ [ 'source' => '/etc', 'target' => '/workspace/x' ] ] ] ] + $parent( [ 'wordpress' => '/etc', 'secrets' => [ [ 'env' => 'A', 'value' => 'b' ] ], 'hold' => [ 'ttl_ms' => 1 ] ] ) );
			$t->same( [ false, false, 1 ], [ isset( $made->task['hold'] ), isset( $made->task['secrets'] ), count( $made->host['mounts'] ) ] );
			$t->true( '/etc' !== $made->host['wordpress'] && ! isset( $made->host['hold'] ), 'host fields' );
		}
	);
};
