<?php
/**
 * Guest program of the tool `wordpress.ability`: executes an ability as the administrator.
 *
 * Standard input is JSON, `{name, input?}`. The last line of standard output is JSON,
 * `{ok: true, result}` or `{ok: false, code, message}`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest;

$_SERVER['HTTP_HOST']      = $_SERVER['HTTP_HOST'] ?? 'localhost';
$_SERVER['REQUEST_METHOD'] = $_SERVER['REQUEST_METHOD'] ?? 'GET';
$_SERVER['REQUEST_URI']    = $_SERVER['REQUEST_URI'] ?? '/';

require rtrim( dirname( __DIR__, 3 ), '/' ) . '/wordpress/wp-load.php';

/**
 * Prints the reply.
 *
 * @param array<string,mixed> $answer Reply to print.
 */
function answer( array $answer ): void {
	echo "\n", json_encode( $answer, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR ), "\n";
}

/**
 * Builds the reply of a refusal.
 *
 * @param string $code    Stable error code.
 * @param string $message Error message.
 * @return array<string,mixed>
 */
function refusal( string $code, string $message ): array {
	return array(
		'ok'      => false,
		'code'    => $code,
		'message' => $message,
	);
}

/**
 * Executes the ability.
 *
 * @param mixed $request Request {name, input?}.
 * @return array<string,mixed> Reply.
 */
function execute( mixed $request ): array {
	$name = is_array( $request ) ? (string) ( $request['name'] ?? '' ) : '';
	if ( ! function_exists( 'wp_get_ability' ) || ! function_exists( 'wp_get_abilities' ) ) {
		return refusal( 'no-abilities', 'this WordPress has no abilities' );
	}
	wp_set_current_user( 1 );
	// WordPress only raises a notice for an unknown name, so the names are compared first.
	$known = array_map( static fn ( $ability ): string => $ability->get_name(), array_values( wp_get_abilities() ) );
	if ( ! in_array( $name, $known, true ) ) {
		sort( $known );
		return refusal( 'unknown', 'there is no ability ' . json_encode( $name, JSON_UNESCAPED_SLASHES ) . '; name one of: ' . implode( ', ', array_slice( $known, 0, 60 ) ) );
	}
	$ability = wp_get_ability( $name );
	try {
		$result = array_key_exists( 'input', $request ) ? $ability->execute( $request['input'] ) : $ability->execute();
	} catch ( \Throwable $thrown ) {
		return refusal( 'threw', get_class( $thrown ) . ': ' . $thrown->getMessage() . ' in ' . $thrown->getFile() . ':' . $thrown->getLine() );
	}
	if ( is_wp_error( $result ) ) {
		return refusal( (string) $result->get_error_code(), $result->get_error_code() . ': ' . $result->get_error_message() );
	}
	return array(
		'ok'     => true,
		'result' => $result,
	);
}

// Passes the request on without a variable: this is the global scope, whose variables WordPress and plugins use.
answer( execute( json_decode( (string) stream_get_contents( STDIN ), true ) ) );
