<?php
/**
 * Converts values of the database and of PHP to JSON for results: limited size, valid UTF-8, secrets masked,
 * and no instance of a class that a serialized string names.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/** Text that replaces a secret in results. */
const MASK = '[redacted]';

/**
 * Converts a value to JSON-compatible data.
 *
 * A shortened string is {text, bytes, sha256, cut: true}; bytes that are not UTF-8 are {base64, bytes,
 * sha256}, shortened likewise.
 *
 * @param mixed $value Value to convert.
 * @param int   $bytes Maximum number of bytes per string.
 * @param int   $depth Maximum depth of lists.
 * @param int   $items Maximum number of items per list.
 */
function plain( mixed $value, int $bytes = 8192, int $depth = 8, int $items = 500 ): mixed {
	if ( is_string( $value ) ) {
		return plain_text( $value, $bytes );
	}
	if ( is_float( $value ) && ! is_finite( $value ) ) {
		return (string) $value;
	}
	if ( is_resource( $value ) ) {
		return '(resource)';
	}
	if ( is_object( $value ) ) {
		if ( $value instanceof \Closure ) {
			return '(closure)';
		}
		$class = $value instanceof \__PHP_Incomplete_Class ? ( (array) $value )['__PHP_Incomplete_Class_Name'] ?? '' : get_class( $value );
		$list  = array_diff_key( public_properties( $value ), array( '__PHP_Incomplete_Class_Name' => 0 ) );
		return 'stdClass' === $class ? (object) plain( $list, $bytes, $depth, $items ) : array(
			'class'      => $class,
			'properties' => (object) plain( $list, $bytes, $depth, $items ),
		);
	}
	if ( ! is_array( $value ) ) {
		return $value;
	}
	if ( $depth <= 0 ) {
		return '(deeper)';
	}
	$plain = array();
	foreach ( $value as $key => $item ) {
		if ( count( $plain ) >= $items ) {
			break;
		}
		$key           = is_string( $key ) ? mb_scrub( $key, 'UTF-8' ) : $key;
		$plain[ $key ] = is_string( $key ) && is_secret_name( $key ) && is_scalar( $item ) && '' !== (string) $item ? MASK : plain( $item, $bytes, $depth - 1, $items );
	}
	return $plain;
}

/**
 * Converts a string to JSON-compatible data.
 *
 * @param string $text  String to convert.
 * @param int    $bytes Maximum number of bytes.
 * @return string|array<string,mixed>
 */
function plain_text( string $text, int $bytes ): string|array {
	$whole = strlen( $text ) <= $bytes;
	$valid = is_utf8( $text );
	if ( $whole && $valid ) {
		return $text;
	}
	$shown = array(
		'bytes'  => strlen( $text ),
		'sha256' => hash( 'sha256', $text ),
	);
	if ( ! $whole ) {
		$shown['cut'] = true;
	}
	return ( $valid ? array( 'text' => beginning( $text, $bytes ) ) : array( 'base64' => base64_encode( substr( $text, 0, $bytes ) ) ) ) + $shown;
}

/**
 * Checks whether a string is valid UTF-8. Like the next functions it does without mbstring, which the
 * parent process of a command has not loaded.
 *
 * @param string $text String to check.
 */
function is_utf8( string $text ): bool {
	return 1 === preg_match( '//u', $text );
}

/**
 * Returns the beginning of a string, without a part of a UTF-8 character at its end.
 *
 * @param string $text  String to cut.
 * @param int    $bytes Maximum number of bytes.
 */
function beginning( string $text, int $bytes ): string {
	// A byte 10xxxxxx continues a character, of which at most three follow the first one.
	for ( $end = $bytes; $end > max( 0, $bytes - 3 ) && 0x80 === ( ord( $text[ $end ] ?? '' ) & 0xc0 ); --$end ) {
		continue;
	}
	return substr( $text, 0, $end );
}

/**
 * Returns the public properties of an object without calling its code.
 *
 * @param object $value Object to read.
 * @return array<string,mixed>
 */
function public_properties( object $value ): array {
	return array_filter( (array) $value, static fn ( $key ): bool => ! str_starts_with( (string) $key, "\0" ), ARRAY_FILTER_USE_KEY );
}

/**
 * Decodes a stored string: serialized lists become lists; serialized objects become class name and
 * properties, without loading the class.
 *
 * @param mixed $stored Stored string.
 */
function stored_value( mixed $stored ): mixed {
	if ( ! is_string( $stored ) || ! is_serialized( $stored ) || strlen( $stored ) > 1 << 20 ) {
		return $stored;
	}
	set_error_handler( static fn (): bool => true );
	try {
		$value = unserialize( trim( $stored ), array( 'allowed_classes' => false, 'max_depth' => 64 ) );
	} catch ( \Throwable ) {
		return $stored;
	} finally {
		restore_error_handler();
	}
	return false === $value && 'b:0;' !== trim( $stored ) ? $stored : $value;
}

/**
 * Checks whether a name marks its value as a secret.
 *
 * @param string $name Name of an option, a key or a header.
 */
function is_secret_name( string $name ): bool {
	return 1 === preg_match( '/pass(?:word|wd|phrase)|(?:^|[_\-.])(?:pass|pwd|salt|nonce_key|auth_key)(?:$|[_\-.])|_(?:salt|key)$|secret|credential|api[_\-]?key|private[_\-]?key|access[_\-]?key|activation[_\-]?key|license[_\-]?key|authorization|cookie|session_tokens|(?:^|[_\-.])token(?:s|$|[_\-.])|[a-z]Token$/i', $name );
}

/**
 * Cuts a string to a number of bytes.
 *
 * @param string $text  String to cut.
 * @param int    $bytes Maximum number of bytes.
 */
function cut( string $text, int $bytes ): string {
	// Replaces bytes that are not UTF-8 by U+FFFD.
	$text = htmlspecialchars_decode( htmlspecialchars( $text, ENT_NOQUOTES | ENT_SUBSTITUTE, 'UTF-8' ), ENT_NOQUOTES );
	return strlen( $text ) > $bytes ? beginning( $text, $bytes ) . '…' : $text;
}

/**
 * Returns a readable name of a callback.
 *
 * @param mixed $callback Callback to describe.
 */
function callback_name( mixed $callback ): string {
	if ( is_string( $callback ) ) {
		return $callback;
	}
	if ( is_array( $callback ) && 2 === count( $callback ) ) {
		$owner = is_object( $callback[0] ?? null ) ? get_class( $callback[0] ) . '->' : ( $callback[0] ?? '' ) . '::';
		return $owner . ( is_string( $callback[1] ?? null ) ? $callback[1] : '?' );
	}
	if ( $callback instanceof \Closure ) {
		$reflection = new \ReflectionFunction( $callback );
		return '{closure} ' . guest_path( (string) $reflection->getFileName() ) . ':' . $reflection->getStartLine();
	}
	return is_object( $callback ) ? get_class( $callback ) : '(none)';
}

/**
 * Converts a path on the file system to a guest path.
 *
 * @param string $path Path on the file system.
 */
function guest_path( string $path ): string {
	$root = root();
	return '' !== $root && str_starts_with( $path, $root . '/' ) ? substr( $path, strlen( $root ) ) : $path;
}
