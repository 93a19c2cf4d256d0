<?php
/**
 * Functions of guest programs that read a request of the supervisor and write the reply.
 *
 * The request is on standard input. The reply is a file named in the request, so output of WordPress and its
 * plugins cannot be mistaken for the reply.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

/** Size limit of a reply, in bytes. */
const ANSWER_BYTES = 1024 * 1024;

/**
 * Returns the request; ends the program with status 2 when there is none.
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
 * Writes the reply; it replaces an earlier one.
 *
 * @param array<string, mixed> $question Request of the program.
 * @param array<string, mixed> $answer   Reply to write.
 * @return bool False when the reply is too large or cannot be encoded as JSON.
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
 * Sets the global variables that WordPress and plugins expect in a request.
 */
function pretend_request(): void {
	$_SERVER['HTTP_HOST']       = $_SERVER['HTTP_HOST'] ?? 'localhost';
	$_SERVER['SERVER_PROTOCOL'] = $_SERVER['SERVER_PROTOCOL'] ?? 'HTTP/1.1';
	$_SERVER['REQUEST_METHOD']  = $_SERVER['REQUEST_METHOD'] ?? 'GET';
	$_SERVER['REQUEST_URI']     = $_SERVER['REQUEST_URI'] ?? '/';
	defined( 'WP_AGENT_RUNTIME' ) || define( 'WP_AGENT_RUNTIME', true );
}

/**
 * Describes a thrown error with its file name, without directories.
 *
 * @param \Throwable $thrown Error or exception.
 */
function thrown_sentence( \Throwable $thrown ): string {
	return sprintf( '%s in %s:%d', '' === $thrown->getMessage() ? get_class( $thrown ) : $thrown->getMessage(), basename( $thrown->getFile() ), $thrown->getLine() );
}
