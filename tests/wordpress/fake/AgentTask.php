<?php
/**
 * The documents about an ended task, as the stand-in extension builds them: every member that the schema requires.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Native;

final class AgentTask {

	private const TASK = [ 'target', 'allowed_tools', 'expected_artifacts', 'structured_artifacts', 'tool_bridge', 'parent_tool_bridge', 'sandbox_tool_policy', 'policy', 'context' ];

	public static function input( array $input ): array {
		$trimmed = array_map( static fn( mixed $value ): mixed => is_string( $value ) ? trim( $value ) : $value, $input );
		foreach ( [ 'allowed_tools', 'expected_artifacts', 'secret_env', 'provider_plugin_paths' ] as $list ) {
			if ( is_array( $input[ $list ] ?? null ) ) {
				$trimmed[ $list ] = array_values( array_unique( array_filter( array_map( 'trim', $input[ $list ] ) ) ) );
			}
		}
		return $trimmed;
	}

	public static function started( array $input, array $task, string $runId, string $wordpress ): array {
		$fake    = new self();
		$session = $fake->session( $input, [ 'run_id' => $runId, 'session_status' => 'completed' ] );
		return [ 'session' => [ 'status' => 'ready' ] + $session, 'task' => (string) ( $task['goal'] ?? '' ), 'task_input' => $task + array_fill_keys( self::TASK, [] ), 'wp' => $wordpress ];
	}

	public static function answer( array $input, array $task, array $result, array $model, string $wordpress, array $preview = [] ): array {
		return ( new self() )->build( $input, $task, $result, $model, $wordpress ) + ( [] === $preview ? [] : [ 'preview' => $preview ] );
	}

	public static function row( array $document ): array {
		return [ 'run_id' => $document['run']['run_id'] ] + array_diff_key( $document, [ 'success' => 1, 'status' => 1 ] );
	}

	private function build( array $input, array $task, array $result, array $model, string $wordpress ): array {
		$run_id     = (string) $result['run_id'];
		$outcome    = (string) $result['outcome'];
		$artifacts  = (array) ( $result['artifacts'] ?? [] );
		$directory  = (string) ( $artifacts['path'] ?? '' );
		$completion = $this->located( (array) ( $result['completion_outcome'] ?? [] ), $directory );
		$agent      = $result['agent_result'] ?? null;
		$agent_task = $this->agent_task_status( $outcome );
		$success    = (bool) $result['success'];
		$part       = [ 'success' => $success, 'status' => $agent_task, 'summary' => (string) ( $result['summary'] ?? '' ), 'artifacts' => [], 'refs' => [], 'diagnostics' => [], 'metadata' => [ 'run_id' => $run_id ] ];
		$run_result = [ 'schema' => 'wp-codebox/agent-task-run-result/v1', 'no_op' => [ 'detected' => 'no_op' === $outcome ] ] + $part;
		$envelope   = [
			'success'                    => $success,
			'schema'                     => 'wp-codebox/agent-task-run/v1',
			'status'                     => (string) $result['session_status'],
			'statuses'                   => [
				'command'    => $this->command_status( $outcome ),
				'phase'      => (string) ( $completion['status'] ?? 'failed' ),
				'agent_task' => $agent_task,
			],
			'agent_task_status'          => $agent_task,
			'summary'                    => (string) ( $result['summary'] ?? '' ),
			'session'                    => $this->session( $input, $result ),
			'task'                       => $task['goal'],
			'task_input'                 => $task + array_intersect_key( $input, array_flip( self::TASK ) ) + array_fill_keys( self::TASK, [] ),
			'wp'                         => $wordpress,
			'artifacts'                  => $directory,
			'exit_code'                  => (int) $result['exit_status'],
			'changed_files'              => array_values( (array) ( $result['changed_files'] ?? [] ) ),
			'approvable'                 => (bool) ( $result['approvable'] ?? false ),
			'checks'                     => array_values( (array) ( $result['checks'] ?? [] ) ),
			'completion_outcome'         => $completion,
			'diagnostics'                => $this->diagnostics( $result, $completion, is_array( $agent ) ? $agent : [] ),
			'run_metadata'               => $this->run_metadata( $input, $run_id, $wordpress ) + $this->model( $model, $result ),
			'run'                        => $this->run( $result ),
			'agent_task_run_result'      => $run_result,
			'headless_agent_task_result' => [ 'schema' => 'wp-codebox/headless-agent-task-result/v1', 'evidence_refs' => [], 'agent_task_run_result' => $run_result ] + $part,
			'artifact_result'            => [ 'schema' => 'wp-codebox/artifact-result-envelope/v1', 'operation' => 'run-agent-task', 'status' => $success ? 'created' : 'failed', 'success' => $success, 'artifactRefs' => [], 'evidenceRefs' => [], 'result' => [], 'diagnostics' => [], 'metadata' => [ 'run_id' => $run_id ] ],
			'outputs'                    => [ 'changed_files' => array_column( (array) ( $result['changed_files'] ?? [] ), 'path' ) ],
		];
		if ( is_array( $agent ) ) {
			$envelope['agent_result'] = $this->located( $agent, $directory );
		}
		if ( '' !== $directory ) {
			$envelope['artifact_id']   = (string) ( $artifacts['bundle_id'] ?? '' );
			$envelope['paths']         = $this->paths( $directory );
			$envelope['evidence_refs'] = $this->evidence( $directory, $artifacts );
		}
		foreach ( [ 'mounts', 'cost', 'isolation', 'error', 'notices' ] as $field ) {
			if ( ! empty( $result[ $field ] ) ) {
				$envelope[ $field ] = $result[ $field ];
			}
		}
		return $envelope;
	}

	private function session( array $input, array $result ): array {
		$id      = '';
		$choices = [ $input['sandbox_session_id'] ?? '', $input['session_id'] ?? '', $result['run_id'] ];
		foreach ( $choices as $choice ) {
			if ( '' === $id && is_string( $choice ) ) {
				$id = trim( $choice );
			}
		}
		$session = [
			'schema'      => 'wp-codebox/sandbox-session/v1',
			'id'          => $id,
			'status'      => 'completed',
			'persistence' => 'external-orchestrator',
			'run_id'      => (string) $result['run_id'],
		];
		if ( ! empty( $input['session_id'] ) ) {
			$session['agent_session_id'] = (string) $input['session_id'];
		}
		if ( ! empty( $input['orchestrator'] ) ) {
			$session['orchestrator'] = $input['orchestrator'];
		}
		if ( ! empty( $result['artifacts']['path'] ) ) {
			$session['artifacts'] = [
				'path'               => (string) $result['artifacts']['path'],
				'bundle_id'          => (string) $result['artifacts']['bundle_id'],
				'completion_outcome' => 'files/completion-outcome.json',
			];
		}
		return $session;
	}

	private function paths( string $directory ): array {
		return [
			'artifacts'     => $directory,
			'manifest'      => $directory . '/manifest.json',
			'patch'         => $directory . '/files/patch.diff',
			'changed_files' => $directory . '/files/changed-files.json',
			'review'        => $directory . '/files/review.json',
			'test_results'  => $directory . '/files/test-results.json',
		];
	}

	private function evidence( string $directory, array $artifacts ): array {
		return [
			'schema'             => 'wp-codebox/agent-task-evidence-refs/v1',
			'artifacts_path'     => $directory,
			'artifact_bundle_id' => (string) ( $artifacts['bundle_id'] ?? '' ),
			'manifest_sha256'    => (string) ( $artifacts['manifest_sha256'] ?? '' ),
			'completion_outcome' => 'files/completion-outcome.json',
			'agent_result'       => 'files/agent-result.json',
			'transcript'         => 'files/transcript.json',
		];
	}

	private function diagnostics( array $result, array $completion, array $agent ): array {
		$diagnostics = [
			'schema'                    => 'wp-codebox/agent-task-diagnostics/v1',
			'exit_code'                 => (int) $result['exit_status'],
			'outcome_kind'              => (string) $result['outcome'],
			'outcome_retryable'         => 'retry' === ( $completion['nextAction'] ?? '' ),
			'completion_outcome_status' => (string) ( $completion['status'] ?? 'failed' ),
			'agent_actionable'          => (bool) ( $agent['actionable'] ?? false ),
		];
		if ( isset( $agent['noOpReason'] ) ) {
			$diagnostics['agent_no_op_reason'] = (string) $agent['noOpReason'];
		}
		return $diagnostics;
	}

	private function run_metadata( array $input, string $run_id, string $wordpress ): array {
		$metadata = [
			'schema' => 'wp-codebox/agent-task-run-metadata/v1',
			'run_id' => $run_id,
			'wp'     => $wordpress,
		];
		foreach ( [
			'sandbox_session_id' => 'sandbox_session_id',
			'session_id'         => 'agent_session_id',
			'orchestrator'       => 'orchestrator',
		] as $from => $to ) {
			if ( ! empty( $input[ $from ] ) ) {
				$metadata[ $to ] = $input[ $from ];
			}
		}
		return $metadata;
	}

	private function model( array $model, array $result ): array {
		$said = array_intersect_key( $model, array_flip( [ 'provider', 'model', 'credential' ] ) );
		if ( ! empty( $result['cost']['model'] ) ) {
			$said['usage'] = $result['cost']['model'];
		}
		return $said;
	}

	private function run( array $result ): array {
		$run = array_intersect_key( $result, array_flip( [ 'schema', 'run_id', 'outcome', 'summary', 'approvable', 'exit_status', 'session_status' ] ) );
		if ( isset( $result['artifacts']['manifest_sha256'] ) ) {
			$run['manifest_sha256'] = (string) $result['artifacts']['manifest_sha256'];
		}
		return $run;
	}

	private function located( array $document, string $directory ): array {
		if ( '' === $directory ) {
			return $document;
		}
		if ( '.' === ( $document['provenance']['artifactDirectory'] ?? null ) ) {
			$document['provenance']['artifactDirectory'] = $directory;
		}
		if ( '.' === ( $document['artifacts']['directory'] ?? null ) ) {
			$document['artifacts']['directory'] = $directory;
		}
		return $document;
	}

	private function command_status( string $outcome ): string {
		return match ( $outcome ) {
			'succeeded', 'no_op', 'partial' => 'completed',
			'timed_out' => 'timed_out',
			'cancelled' => 'cancelled',
			default => 'failed',
		};
	}

	private function agent_task_status( string $outcome ): string {
		return match ( $outcome ) {
			'succeeded', 'no_op' => $outcome,
			'timed_out' => 'timeout',
			'partial', 'blocked', 'denied' => 'unable_to_remediate',
			default => 'failed',
		};
	}
}
