<?php
/**
 * Builds the result document of a task.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

defined( 'ABSPATH' ) || exit;

/**
 * Builds `wp-codebox/agent-task-run/v1` and its member `wp-codebox/sandbox-session/v1` from the result of a run. The PHP
 * extension has derived success, session status and exit status from the run's outcome; this class copies or derives the
 * other fields. It omits members that would be empty objects, because PHP encodes an empty array as the list `[]`.
 */
final class RunEnvelope {

	/**
	 * Builds the result document that the caller of a task receives.
	 *
	 * @param array<string, mixed> $input  Task input, whose correlation fields are returned.
	 * @param array<string, mixed> $task   `wp-codebox/task-input/v1`.
	 * @param array<string, mixed> $result `wp-codebox/run-result/v1` as the extension answers it.
	 * @param array<string, mixed> $model  Model data without secret values: `provider`, `model`, `credential`;
	 *   empty without a model.
	 * @return array<string, mixed>
	 */
	public function build( array $input, array $task, array $result, array $model = [] ): array {
		$run_id     = (string) $result['run_id'];
		$outcome    = (string) $result['outcome'];
		$artifacts  = (array) ( $result['artifacts'] ?? [] );
		$directory  = (string) ( $artifacts['path'] ?? '' );
		$completion = $this->located( (array) ( $result['completion_outcome'] ?? [] ), $directory );
		$agent      = $result['agent_result'] ?? null;
		$agent_task = $this->agent_task_status( $outcome );

		$envelope = [
			'success'            => (bool) $result['success'],
			'schema'             => 'wp-codebox/agent-task-run/v1',
			'status'             => (string) $result['session_status'],
			'statuses'           => [
				'command'    => $this->command_status( $outcome ),
				'phase'      => (string) ( $completion['status'] ?? 'failed' ),
				'agent_task' => $agent_task,
			],
			'agent_task_status'  => $agent_task,
			'outcome'            => $outcome,
			'summary'            => (string) ( $result['summary'] ?? '' ),
			'session'            => $this->session( $input, $result ),
			'task'               => $task['goal'],
			'task_input'         => $task,
			'wp'                 => get_bloginfo( 'version' ),
			'artifacts'          => $directory,
			'exit_code'          => (int) $result['exit_status'],
			'changed_files'      => array_values( (array) ( $result['changed_files'] ?? [] ) ),
			'approvable'         => (bool) ( $result['approvable'] ?? false ),
			'checks'             => array_values( (array) ( $result['checks'] ?? [] ) ),
			'completion_outcome' => $completion,
			'diagnostics'        => $this->diagnostics( $result, $completion, is_array( $agent ) ? $agent : [] ),
			'run_metadata'       => $this->run_metadata( $input, $run_id ) + $this->model( $model, $result ),
			'run'                => $this->run( $result ),
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

	/**
	 * Builds the member `session`: ids and status of the run, with the ids that the caller gave. It is returned, not stored.
	 *
	 * @param array<string, mixed> $input  Task input.
	 * @param array<string, mixed> $result Result of the run.
	 * @return array<string, mixed>
	 */
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
			'status'      => (string) $result['session_status'],
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

	/**
	 * Returns the absolute paths of the bundle files that a reviewer reads first, by name.
	 *
	 * @param string $directory Path of the bundle directory.
	 * @return array<string, string>
	 */
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

	/**
	 * Returns where the evidence of the agent's work is: bundle directory, ids, and file paths relative to the bundle.
	 *
	 * @param string               $directory Path of the bundle directory.
	 * @param array<string, mixed> $artifacts `artifacts` of the run result.
	 * @return array<string, string>
	 */
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

	/**
	 * Returns the member `diagnostics`, for programs: outcome, exit code, and whether a retry can help.
	 *
	 * @param array<string, mixed> $result     Result of the run.
	 * @param array<string, mixed> $completion Completion outcome.
	 * @param array<string, mixed> $agent      Agent result.
	 * @return array<string, mixed>
	 */
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

	/**
	 * Returns the member `run_metadata`: run id, WordPress version, and the ids that the caller gave.
	 *
	 * @param array<string, mixed> $input  Task input.
	 * @param string               $run_id Run id.
	 * @return array<string, mixed>
	 */
	private function run_metadata( array $input, string $run_id ): array {
		$metadata = [
			'schema' => 'wp-codebox/agent-task-run-metadata/v1',
			'run_id' => $run_id,
			'wp'     => get_bloginfo( 'version' ),
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

	/**
	 * Returns the model that the run used, and its token usage and cost; empty without a model.
	 *
	 * @param array<string, mixed> $model  Model data without secret values; empty without a model.
	 * @param array<string, mixed> $result Result of the run.
	 * @return array<string, mixed>
	 */
	private function model( array $model, array $result ): array {
		$said = array_intersect_key( $model, array_flip( [ 'provider', 'model', 'credential' ] ) );
		if ( ! empty( $result['cost']['model'] ) ) {
			$said['usage'] = $result['cost']['model'];
		}
		return $said;
	}

	/**
	 * Returns the member `run`: the main fields of the run result, and the hash of the bundle's manifest.
	 *
	 * @param array<string, mixed> $result Result of the run.
	 * @return array<string, mixed>
	 */
	private function run( array $result ): array {
		$run = array_intersect_key( $result, array_flip( [ 'schema', 'run_id', 'outcome', 'summary', 'approvable', 'exit_status', 'session_status' ] ) );
		if ( isset( $result['artifacts']['manifest_sha256'] ) ) {
			$run['manifest_sha256'] = (string) $result['artifacts']['manifest_sha256'];
		}
		return $run;
	}

	/**
	 * Replaces the path `.`, with which a document of the bundle refers to its bundle, by the bundle's directory.
	 *
	 * @param array<string, mixed> $document  Document of the bundle.
	 * @param string               $directory Path of the bundle directory.
	 * @return array<string, mixed>
	 */
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

	/**
	 * Converts the outcome of a run to the value of `statuses.command`.
	 *
	 * @param string $outcome Outcome of the run.
	 */
	private function command_status( string $outcome ): string {
		return match ( $outcome ) {
			'succeeded', 'no_op', 'partial' => 'completed',
			'timed_out' => 'timed_out',
			'cancelled' => 'cancelled',
			default => 'failed',
		};
	}

	/**
	 * Converts the outcome of a run to the value of `agent_task_status`.
	 *
	 * @param string $outcome Outcome of the run.
	 */
	private function agent_task_status( string $outcome ): string {
		return match ( $outcome ) {
			'succeeded', 'no_op' => $outcome,
			'timed_out' => 'timeout',
			'partial', 'blocked', 'denied' => 'unable_to_remediate',
			default => 'failed',
		};
	}
}
