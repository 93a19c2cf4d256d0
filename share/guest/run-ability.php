<?php
/**
 * Runs an ability as the agent of a run.
 *
 * Question: {ability, input, answer}. Answer: {status: completed, result} or
 * {status: failed|missing, code, message}. WP_AGENT_RUNTIME is defined, in PHP and in the
 * environment, so that an ability can tell that it works in a sandbox; the task it works on
 * is the document at /run/codebox/task.json ($CODEBOX_TASK).
 *
 * @package WPCodebox
 */

require __DIR__ . '/answer.php';

/**
 * Executes the ability.
 *
 * @param string               $name  Its name.
 * @param array<string, mixed> $input Its input.
 * @return array<string, mixed> Reply.
 */
function codebox_execute( string $name, array $input ): array {
	$ability = wp_has_ability( $name ) ? wp_get_ability( $name ) : null;
	if ( null === $ability ) {
		return array( 'status' => 'missing' );
	}
	try {
		// An ability without an input schema takes no input at all.
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
