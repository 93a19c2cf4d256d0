<?php
/**
 * Values of the database and of PHP as documents show them: bounded, valid UTF-8, secrets masked,
 * and never an object of a class that a serialized text names.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/** What stands for a secret. */
const MASK = '[redacted]';

/**
 * A value that JSON can hold.
 *
 * A text that is cut is {text, bytes, sha256, cut: true}; bytes that are no UTF-8 are
 * {base64, bytes, sha256}, cut likewise.
 *
 * @param mixed $value Value.
 * @param int   $bytes Of each text, bytes that are shown.
 * @param int   $depth How deep lists are shown.
 * @param int   $items Of each list, items that are shown.
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
 * A text that JSON can hold.
 *
 * @param string $text  Text to print.
 * @param int    $bytes Bytes that are shown.
 * @return string|array<string,mixed>
 */
function plain_text( string $text, int $bytes ): string|array {
	$whole = strlen( $text ) <= $bytes;
	$valid = mb_check_encoding( $text, 'UTF-8' );
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
	return ( $valid ? array( 'text' => mb_strcut( $text, 0, $bytes, 'UTF-8' ) ) : array( 'base64' => base64_encode( substr( $text, 0, $bytes ) ) ) ) + $shown;
}

/**
 * Public properties without calling anything of the object.
 *
 * @param object $value Object.
 * @return array<string,mixed>
 */
function public_properties( object $value ): array {
	return array_filter( (array) $value, static fn ( $key ): bool => ! str_starts_with( (string) $key, "\0" ), ARRAY_FILTER_USE_KEY );
}

/**
 * What a stored text stands for: serialized lists become lists, serialized objects become
 * their class's name and properties without the class being loaded.
 *
 * @param mixed $stored Text as stored.
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
 * Whether a name says that its value is a secret.
 *
 * @param string $name Name of an option, a key or a header.
 */
function is_secret_name( string $name ): bool {
	return 1 === preg_match( '/pass(?:word|wd|phrase)|(?:^|[_\-.])(?:pass|pwd|salt|nonce_key|auth_key)(?:$|[_\-.])|_(?:salt|key)$|secret|credential|api[_\-]?key|private[_\-]?key|access[_\-]?key|activation[_\-]?key|license[_\-]?key|authorization|cookie|session_tokens|(?:^|[_\-.])token(?:s|$|[_\-.])|[a-z]Token$/i', $name );
}

/**
 * A text of a set of bytes at most.
 *
 * @param string $text  Text to print.
 * @param int    $bytes Bytes.
 */
function cut( string $text, int $bytes ): string {
	$text = mb_scrub( $text, 'UTF-8' );
	return strlen( $text ) > $bytes ? mb_strcut( $text, 0, $bytes, 'UTF-8' ) . '…' : $text;
}

/**
 * A name for a callback.
 *
 * @param mixed $callback Callback.
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
 * A path as the guest names it, wherever the guest's root lies.
 *
 * @param string $path Path.
 */
function guest_path( string $path ): string {
	$root = root();
	return '' !== $root && str_starts_with( $path, $root . '/' ) ? substr( $path, strlen( $root ) ) : $path;
}
