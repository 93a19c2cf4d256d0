<?php
/**
 * Describes messages of PHP: notices, warnings, errors. Loads little, because the router of the guest's web server
 * loads it for each request.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/values.php';

/**
 * Returns the row of a PHP message: {level, message, file, line}. The level is notice, deprecated, warning or error.
 *
 * @param int    $level   Error level of PHP.
 * @param string $message Message text.
 * @param string $file    File of the message.
 * @param int    $line    Line of the message.
 * @return array{level: string, message: string, file: string, line: int}
 */
function php_error( int $level, string $message, string $file, int $line ): array {
	// This file is at /opt/codebox/guest/commands/lib below the guest's root directory.
	$root  = rtrim( dirname( __DIR__, 5 ), '/' );
	$place = " in $file:$line";
	// The first line of an uncaught exception is its message and its place; the others are its stack.
	$text = trim( strip_tags( explode( "\n", $message )[0] ) );
	$text = str_ends_with( $text, $place ) ? substr( $text, 0, -strlen( $place ) ) : $text;
	return array(
		'level'   => match ( $level ) {
			E_WARNING, E_USER_WARNING, E_CORE_WARNING, E_COMPILE_WARNING => 'warning',
			E_NOTICE, E_USER_NOTICE => 'notice',
			E_DEPRECATED, E_USER_DEPRECATED => 'deprecated',
			default => 'error',
		},
		'message' => cut( '' === $root ? $text : str_replace( "$root/", '/', $text ), 1000 ),
		'file'    => '' !== $root && str_starts_with( $file, "$root/" ) ? substr( $file, strlen( $root ) ) : $file,
		'line'    => $line,
	);
}

/**
 * Returns the row of the error that ended PHP, with the level fatal; null if no error ended it. An exception that
 * nothing catches ends PHP with such an error.
 *
 * @return ?array{level: string, message: string, file: string, line: int}
 */
function fatal_error(): ?array {
	$error = error_get_last();
	if ( null === $error || 0 === ( $error['type'] & ( E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR ) ) ) {
		return null;
	}
	return array( 'level' => 'fatal' ) + php_error( $error['type'], $error['message'], $error['file'], $error['line'] );
}
