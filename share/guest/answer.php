<?php
/**
 * How a guest program reads its question and leaves its answer.
 *
 * The question comes on standard input; the answer is a file that the question names, so
 * that whatever WordPress and its plugins print cannot be taken for it.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

/** Largest answer, bytes. */
const ANSWER_BYTES = 1024 * 1024;

/**
 * The question; ends the program with status 2 when there is none.
 *
 * @return array<string, mixed>
 */
function question(): array {
	$question = json_decode( (string) stream_get_contents( STDIN ), true );
	if ( ! is_array( $question ) || ! is_string( $question['answer'] ?? null ) ) {
		fwrite( STDERR, "standard input must be a JSON object that names the file of the answer\n" );
		exit( 2 );
	}
	return $question;
}

/**
 * Leaves the answer; it replaces an earlier one.
 *
 * @param array<string, mixed> $question The question.
 * @param array<string, mixed> $answer   Result to print.
 * @return bool False when it is too large or cannot be written as JSON.
 */
function answer( array $question, array $answer ): bool {
	$json = json_encode( $answer, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR );
	if ( ! is_string( $json ) || strlen( $json ) > ANSWER_BYTES ) {
		return false;
	}
	// Environment variable that is set only when the guest has no root file system of its own.
	return strlen( $json ) === file_put_contents( getenv( 'CODEBOX_ROOT' ) . $question['answer'], $json );
}

/**
 * Prepares the globals that WordPress and plugins expect of a request.
 */
function pretend_request(): void {
	$_SERVER['HTTP_HOST']       = $_SERVER['HTTP_HOST'] ?? 'localhost';
	$_SERVER['SERVER_PROTOCOL'] = $_SERVER['SERVER_PROTOCOL'] ?? 'HTTP/1.1';
	$_SERVER['REQUEST_METHOD']  = $_SERVER['REQUEST_METHOD'] ?? 'GET';
	$_SERVER['REQUEST_URI']     = $_SERVER['REQUEST_URI'] ?? '/';
	defined( 'WP_AGENT_RUNTIME' ) || define( 'WP_AGENT_RUNTIME', true );
}

/**
 * Where something was thrown, without the directories.
 *
 * @param \Throwable $thrown What.
 */
function thrown_sentence( \Throwable $thrown ): string {
	return sprintf( '%s in %s:%d', '' === $thrown->getMessage() ? get_class( $thrown ) : $thrown->getMessage(), basename( $thrown->getFile() ), $thrown->getLine() );
}
