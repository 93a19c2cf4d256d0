<?php
/**
 * Redacts secrets from provider responses.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Connector;

use stdClass;
use Throwable;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Native\Redactor;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Removes secrets from nested data: by member name, by the format of known tokens, and by value in every
 * encoding that the extension knows. Data that still contains a secret value afterwards is not passed on.
 */
final class Redaction {

	/** Replacement for a value whose member name marks it as a secret. */
	public const REPLACED = '[redacted]';

	/** Maximum size of the data to redact, in bytes of JSON. */
	public const MOST_BYTES = 2097152;

	private const DEPTH = 64;

	/**
	 * Converts data to plain JSON data: no objects with code, no invalid UTF-8.
	 *
	 * @param mixed     $data    Any data.
	 * @param ErrorCode $invalid Error code when conversion fails.
	 * @param string    $what    Name of the data in the error message.
	 * @param int       $most    Size limit in bytes.
	 * @throws Failure With the given code.
	 */
	public static function plain( #[\SensitiveParameter] mixed $data, ErrorCode $invalid, string $what, int $most = self::MOST_BYTES ): mixed {
		try {
			$json = wp_json_encode( $data, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_PRESERVE_ZERO_FRACTION, self::DEPTH );
			if ( strlen( $json ) > $most ) {
				/* translators: 1: what it is, as "The answer", 2: number of bytes. */
				throw Failure::because( $invalid, Sentence::of( __( '%1$s is larger than %2$d bytes.', 'codebox' ), $what, $most ) );
			}
			return self::arrays( json_decode( $json, false, self::DEPTH + 1, JSON_THROW_ON_ERROR ) );
		} catch ( Failure $failure ) {
			throw $failure;
		} catch ( Throwable ) {
			// Catches more than JsonException, because jsonSerialize() of an object can throw anything.
			/* translators: 1: what it is, as "The answer", 2: number of levels. */
			throw Failure::because( $invalid, Sentence::of( __( '%1$s cannot be written as JSON: it is nested more than %2$d levels deep, refers to itself, or has bytes that are not UTF-8 or a value such as INF.', 'codebox' ), $what, self::DEPTH ) );
		}
	}

	/**
	 * Returns plain data in which secrets are redacted, both by member name and by value.
	 *
	 * @param mixed        $data   Plain data.
	 * @param list<string> $values Secret values to redact.
	 */
	public static function clean( #[\SensitiveParameter] mixed $data, #[\SensitiveParameter] array $values = [] ): mixed {
		return self::walk( $data, static fn( string $text ): string => self::text( $text, $values ) );
	}

	/**
	 * Returns plain data in which `[redacted]` replaces the value of each member whose name marks it as a secret.
	 *
	 * @param mixed $data Plain data.
	 */
	public static function named( #[\SensitiveParameter] mixed $data ): mixed {
		return self::walk( $data, static fn( string $text ): string => $text );
	}

	/**
	 * Applies a function to every string and member name of nested data, and redacts members that are secrets by name.
	 *
	 * @param mixed                    $data  Plain data.
	 * @param callable(string): string $clean Function for each string and each member name.
	 */
	private static function walk( #[\SensitiveParameter] mixed $data, callable $clean ): mixed {
		if ( $data instanceof stdClass ) {
			return (object) self::walk( get_object_vars( $data ), $clean );
		}
		if ( ! is_array( $data ) ) {
			return is_string( $data ) ? $clean( $data ) : $data;
		}
		$kept     = [];
		$text_bit = array_key_exists( 'logprob', $data );
		foreach ( $data as $name => $value ) {
			$filled = is_string( $value ) && '' !== $value || ! is_scalar( $value ) && null !== $value && [] !== (array) $value;
			$value  = $filled && is_string( $name ) && SecretNames::has( $name, $text_bit ) ? self::REPLACED : self::walk( $value, $clean );

			$kept[ is_string( $name ) ? $clean( $name ) : $name ] = $value;
		}
		return $kept;
	}

	/**
	 * Returns a host plugin's response in a form that may leave this site.
	 *
	 * @param mixed        $data    Response of the plugin.
	 * @param list<string> $values  Secret values that the plugin received.
	 * @param ErrorCode    $invalid Error code when the response cannot be passed on.
	 * @throws Failure With the given code.
	 */
	public static function answer( #[\SensitiveParameter] mixed $data, #[\SensitiveParameter] array $values, ErrorCode $invalid ): mixed {
		$clean = self::clean( self::plain( $data, $invalid, __( 'The answer', 'codebox' ) ), $values );
		foreach ( [ JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE, 0 ] as $flags ) {
			$json = (string) wp_json_encode( $clean, $flags, self::DEPTH + 1 );
			if ( self::text( $json, $values ) !== $json ) {
				throw Failure::because( $invalid, __( 'The answer contains a secret in a form that cannot be redacted, so the answer is not passed on; the plugin that gives it must leave the secret out.', 'codebox' ) );
			}
		}
		return $clean;
	}

	/**
	 * Returns one text of a host plugin, e.g. a message: redacted, on one line, shortened.
	 *
	 * @param mixed        $text   Text from the host plugin.
	 * @param list<string> $values Secret values that the plugin received.
	 */
	public static function line( #[\SensitiveParameter] mixed $text, #[\SensitiveParameter] array $values = [] ): string {
		$text = is_string( $text ) ? self::text( wp_check_invalid_utf8( $text, true ), $values ) : '';
		return mb_substr( trim( (string) preg_replace( '/[\p{C}\s]+/u', ' ', $text ) ), 0, 500 );
	}

	/**
	 * Returns the names of values that redaction could not distinguish from ordinary text.
	 *
	 * @param array<string, string> $values Values by environment name.
	 * @return list<string> Environment names.
	 */
	public static function unprotected( #[\SensitiveParameter] array $values ): array {
		return array_values( array_filter( array_keys( $values ), static fn( string $name ): bool => str_contains( self::text( $values[ $name ], [ $values[ $name ] ] ), $values[ $name ] ) ) );
	}

	/**
	 * Redacts one string.
	 *
	 * @param string       $text   String to redact.
	 * @param list<string> $values Secret values to redact.
	 */
	private static function text( #[\SensitiveParameter] string $text, #[\SensitiveParameter] array $values ): string {
		return '' === $text ? '' : Redactor::text( $text, array_values( $values ) );
	}

	/**
	 * Converts objects to arrays, except those (such as an empty object) that JSON would then write as a list.
	 *
	 * @param mixed $data Decoded JSON.
	 */
	private static function arrays( #[\SensitiveParameter] mixed $data ): mixed {
		if ( $data instanceof stdClass ) {
			$array = array_map( [ self::class, 'arrays' ], get_object_vars( $data ) );
			return array_is_list( $array ) ? (object) $array : $array;
		}
		return is_array( $data ) ? array_map( [ self::class, 'arrays' ], $data ) : $data;
	}
}
