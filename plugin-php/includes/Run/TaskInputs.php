<?php
/**
 * The input of one task out of several.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\Abilities\SchemaStore;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/** Checks it with the schema of run-agent-task. */
final class TaskInputs {

	/**
	 * Wires the reader.
	 *
	 * @param SchemaStore $schemas Schemas.
	 */
	public function __construct( private readonly SchemaStore $schemas ) {}

	/**
	 * Checks the input of one task.
	 *
	 * @param array<string, mixed> $input Its fields, those of all laid under them.
	 * @return array<string, mixed> Valid input of run-agent-task.
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	public function valid( array $input ): array {
		$valid = $this->schemas->check( 'run-agent-task-input', $input, 'task' );
		if ( is_wp_error( $valid ) ) {
			throw Failure::invalid_input( $valid->get_error_message() );
		}
		return (array) rest_sanitize_value_from_schema( $input, $this->schemas->get( 'run-agent-task-input' ), 'task' );
	}
}
