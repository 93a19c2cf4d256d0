<?php
/**
 * Envelopes that carry the fields of a task.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\Run\TaskTexts;
use WPCodebox\Sentence;
use WPCodebox\TaskInput\RefusedFields;

defined( 'ABSPATH' ) || exit;

/**
 * Reads `agent_workload` (alias `workload`, schema `wp-codebox/agent-workload/v1`) and `parent_request` (schema
 * `wp-codebox/task-input/v1`). The task's own fields win; lists are joined. For a run the extension does this; a browser
 * session must start on a site without the extension.
 */
final class TaskEnvelopes {

	private const WORKLOAD = 'wp-codebox/agent-workload/v1';
	private const TASK     = 'wp-codebox/task-input/v1';

	/** Fields that a parent request may give. */
	private const PARENT = [ ...TaskTexts::NAMES, 'target', 'allowed_tools', 'expected_artifacts', 'structured_artifacts', 'staged_files', 'agent_bundles', 'tool_bridge', 'parent_tool_bridge', 'sandbox_tool_policy', 'policy', 'context', 'provider', 'model' ];

	/**
	 * Returns the task without envelopes, with the fields that they give.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @return array<string, mixed>
	 */
	public function opened( array $input ): array {
		foreach ( [ 'agent_workload', 'workload' ] as $name ) {
			if ( ! empty( $input[ $name ] ) ) {
				$input = $this->joined( $input, $this->workload( $name, (array) $input[ $name ] ) );
			}
		}
		$parent = (array) ( $input['parent_request'] ?? [] );
		if ( self::TASK === ( $parent['schema'] ?? null ) ) {
			$input = $this->joined( $input, array_intersect_key( $parent, array_flip( self::PARENT ) ) );
		} elseif ( [] !== $parent ) {
			$input = $this->joined( $input, [ 'context' => [ 'parent_request' => $parent ] ] );
		}
		return array_diff_key( $input, array_flip( [ 'agent_workload', 'workload', 'parent_request' ] ) );
	}

	/**
	 * Returns the fields of a task that a workload gives.
	 *
	 * @param string       $name     Name of the field that carries the workload.
	 * @param array<mixed> $workload Workload.
	 * @return array<string, mixed>
	 */
	private function workload( string $name, array $workload ): array {
		if ( self::WORKLOAD !== ( $workload['schema'] ?? self::WORKLOAD ) ) {
			/* translators: %s: id of a schema. */
			throw RefusedFields::refusal( $name . '.schema', Sentence::of( __( 'the schema of a workload must be %s', 'codebox' ), self::WORKLOAD ), __( 'Give the fields of the task directly.', 'codebox' ) );
		}
		$task    = $workload['task'] ?? null;
		$runtime = $workload['agent_runtime'] ?? [];
		$fields  = is_string( $runtime ) ? [ 'agent' => $runtime ] : array_intersect_key( (array) $runtime, array_flip( [ 'agent', 'mode', 'provider', 'model', 'runtime_profile', 'runtime_task' ] ) );
		$fields += [
			'goal'               => is_array( $task ) ? $task['goal'] ?? $task['message'] ?? $task['prompt'] ?? null : $task,
			'allowed_tools'      => $workload['tools'] ?? null,
			'expected_artifacts' => $workload['artifacts'] ?? null,
		];
		return $fields + array_intersect_key( $workload, array_flip( [ 'provider', 'model', 'target', 'policy', 'context' ] ) );
	}

	/**
	 * Adds fields to a task: a field that the task lacks, entries that its lists lack, members that its context lacks.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @param array<string, mixed> $more  Fields of an envelope.
	 * @return array<string, mixed>
	 */
	private function joined( array $input, array $more ): array {
		foreach ( array_filter( $more, static fn( mixed $value ): bool => null !== $value && [] !== $value && '' !== $value ) as $field => $value ) {
			$own = $input[ $field ] ?? null;
			if ( null === $own || [] === $own || '' === $own ) {
				$input[ $field ] = $value;
			} elseif ( is_array( $own ) && is_array( $value ) && array_is_list( $own ) && array_is_list( $value ) ) {
				$input[ $field ] = array_values( array_unique( [ ...$own, ...$value ], SORT_REGULAR ) );
			} elseif ( 'context' === $field && is_array( $own ) && is_array( $value ) ) {
				$input[ $field ] = $own + $value;
			}
		}
		return $input;
	}
}
