<?php
/**
 * Runs an ability as the agent of a run.
 *
 * Request: {ability, input, answer}. Reply: {status: completed, result} or {status: failed|missing, code,
 * message}. WP_AGENT_RUNTIME is defined as a PHP constant and an environment variable, so an ability can
 * detect the sandbox. Its task is the document at /run/codebox/task.json ($CODEBOX_TASK).
 *
 * @package WPCodebox
 */

require __DIR__ . '/answer.php';

/**
 * Executes an ability and builds the reply.
 *
 * @param string               $name  Name of the ability.
 * @param array<string, mixed> $input Input of the ability.
 * @return array<string, mixed> Reply.
 */
function codebox_execute( string $name, array $input ): array {
	$ability = wp_has_ability( $name ) ? wp_get_ability( $name ) : null;
	if ( null === $ability ) {
		return array( 'status' => 'missing' );
	}
	try {
		// WordPress rejects any input for an ability without an input schema.
		$result = array() === $input && array() === $ability->get_input_schema() ? $ability->execute() : $ability->execute( $input );
	} catch ( Throwable $thrown ) {
		return array(
			'status'  => 'failed',
			'message' => WPCodebox\Guest\thrown_sentence( $thrown ),
		);
	}
	if ( is_wp_error( $result ) ) {
		return array(
			'status'  => 'failed',
			'code'    => (string) $result->get_error_code(),
			'message' => $result->get_error_message(),
		);
	}
	return array(
		'status' => 'completed',
		'result' => $result,
	);
}

$codebox_question = WPCodebox\Guest\question();
WPCodebox\Guest\pretend_request();
require rtrim( dirname( __DIR__, 3 ), '/' ) . '/wordpress/wp-load.php';
wp_set_current_user( 1 );

$codebox_answer = codebox_execute( $codebox_question['ability'], (array) $codebox_question['input'] );
if ( ! WPCodebox\Guest\answer( $codebox_question, $codebox_answer ) ) {
	WPCodebox\Guest\answer(
		$codebox_question,
		array(
			'status'  => 'failed',
			'message' => sprintf( 'its result is larger than %d bytes of JSON', WPCodebox\Guest\ANSWER_BYTES ),
		)
	);
}
