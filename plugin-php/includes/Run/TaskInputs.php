<?php
/**
 * The input of one task out of several.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\Abilities\SchemaStore;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * Lays the fields of one task over those that all share, and checks the result with the
 * schema of run-agent-task.
 */
final class TaskInputs {

	/** Fields of which one replaces all: a task that names its own code does not get the shared code too. */
	private const TOGETHER = [ [ 'plugin', 'theme', 'mounts' ], [ 'agent', 'agent_command', 'runtime_task' ], [ 'policy', 'network' ], [ 'limits', 'task_timeout_seconds' ] ];

	/** Fields of the call as a whole. */
	private const WHOLE = [ 'sandbox_session_id', 'orchestrator', 'wait' ];

	/**
	 * Wires the reader.
	 *
	 * @param SchemaStore $schemas Schemas.
	 */
	public function __construct( private readonly SchemaStore $schemas ) {}

	/**
	 * One task.
	 *
	 * @param array<string, mixed> $shared  Input of the call; what is no field of a task is passed over.
	 * @param mixed                $task    A goal, or fields of a task.
	 * @param string               $session Id of the session of this task.
	 * @return array<string, mixed> Valid input of run-agent-task.
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	public function merge( array $shared, mixed $task, string $session ): array {
		if ( is_string( $task ) ) {
			$task = [ 'goal' => $task ];
		}
		if ( ! is_array( $task ) || ( [] !== $task && array_is_list( $task ) ) ) {
			throw Failure::because( ErrorCode::InputInvalid, 'A task is a goal, or an object with the fields of run-agent-task.' );
		}
		foreach ( self::WHOLE as $field ) {
			if ( array_key_exists( $field, $task ) ) {
				throw Failure::because( ErrorCode::InputInvalid, sprintf( '%s cannot be given for a single task; leave it out.', $field ) );
			}
		}
		$schema = $this->schemas->get( 'run-agent-task-input' );
		$shared = array_diff_key( array_intersect_key( $shared, $schema['properties'] ), [ 'goal' => true ] );
		foreach ( self::TOGETHER as $fields ) {
			$fields = array_flip( $fields );
			if ( [] !== array_intersect_key( $task, $fields ) ) {
				$shared = array_diff_key( $shared, $fields );
			}
		}
		$input = [ 'sandbox_session_id' => $session ] + $task + $shared;
		$valid = rest_validate_value_from_schema( $input, $schema, 'task' );
		if ( is_wp_error( $valid ) ) {
			throw Failure::because( ErrorCode::InputInvalid, $valid->get_error_message() );
		}
		return (array) rest_sanitize_value_from_schema( $input, $schema, 'task' );
	}
}
