<?php
/**
 * Answers of providers, fit for whoever asked.
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
 * Takes secrets out of nested data: by name, by the form of known tokens, and by value, in every
 * spelling the extension knows. What still holds a value afterwards is not passed on.
 */
final class Redaction {

	/** What stands in place of a value that its name gives away. */
	public const REPLACED = '[redacted]';

	/** Largest document, bytes of JSON. */
	public const MOST_BYTES = 2097152;

	private const DEPTH = 64;

	/**
	 * The data as JSON has it: no objects with code, no bytes that are no text.
	 *
	 * @param mixed     $data    Any data.
	 * @param ErrorCode $invalid What it is when it cannot be that.
	 * @param string    $what    What it is called, for the sentence.
	 * @param int       $most    Largest size, bytes.
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
			// Not only JsonException: an object may have a say in how it is written.
			/* translators: 1: what it is, as "The answer", 2: number of levels. */
			throw Failure::because( $invalid, Sentence::of( __( '%1$s cannot be written as JSON: it is nested more than %2$d deep or holds bytes that are no UTF-8.', 'codebox' ), $what, self::DEPTH ) );
		}
	}

	/**
	 * Plain data without secrets.
	 *
	 * @param mixed        $data   Plain data.
	 * @param list<string> $values Values that must not come through.
	 */
	public static function clean( #[\SensitiveParameter] mixed $data, #[\SensitiveParameter] array $values = [] ): mixed {
		return self::walk( $data, static fn( string $text ): string => self::text( $text, $values ) );
	}

	/**
	 * Plain data without what is a secret by its name alone.
	 *
	 * @param mixed $data Plain data.
	 */
	public static function named( #[\SensitiveParameter] mixed $data ): mixed {
		return self::walk( $data, static fn( string $text ): string => $text );
	}

	/**
	 * Goes through nested data.
	 *
	 * @param mixed                    $data  Plain data.
	 * @param callable(string): string $clean For each text and name.
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
	 * An answer of a host plugin as it may go out.
	 *
	 * @param mixed        $data    As answered.
	 * @param list<string> $values  Values the plugin was handed.
	 * @param ErrorCode    $invalid What it is when it cannot go out.
	 * @throws Failure With the given code.
	 */
	public static function answer( #[\SensitiveParameter] mixed $data, #[\SensitiveParameter] array $values, ErrorCode $invalid ): mixed {
		$clean = self::clean( self::plain( $data, $invalid, __( 'The answer', 'codebox' ) ), $values );
		foreach ( [ JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE, 0 ] as $flags ) {
			$json = (string) wp_json_encode( $clean, $flags, self::DEPTH + 1 );
			if ( self::text( $json, $values ) !== $json ) {
				throw Failure::because( $invalid, __( 'The answer holds a secret in a way that could not be taken out, so it is not passed on.', 'codebox' ) );
			}
		}
		return $clean;
	}

	/**
	 * One text of a host plugin, e.g. a message: cleaned, on one line, short.
	 *
	 * @param mixed        $text   As answered.
	 * @param list<string> $values Values the plugin was handed.
	 */
	public static function line( #[\SensitiveParameter] mixed $text, #[\SensitiveParameter] array $values = [] ): string {
		$text = is_string( $text ) ? self::text( wp_check_invalid_utf8( $text, true ), $values ) : '';
		return mb_substr( trim( (string) preg_replace( '/[\p{C}\s]+/u', ' ', $text ) ), 0, 500 );
	}

	/**
	 * The values that could not be told from other text, were they to come back.
	 *
	 * @param array<string, string> $values By name.
	 * @return list<string> Names.
	 */
	public static function unprotected( #[\SensitiveParameter] array $values ): array {
		return array_values( array_filter( array_keys( $values ), static fn( string $name ): bool => str_contains( self::text( $values[ $name ], [ $values[ $name ] ] ), $values[ $name ] ) ) );
	}

	/**
	 * One text.
	 *
	 * @param string       $text   Text.
	 * @param list<string> $values Values.
	 */
	private static function text( #[\SensitiveParameter] string $text, #[\SensitiveParameter] array $values ): string {
		return '' === $text ? '' : Redactor::text( $text, array_values( $values ) );
	}

	/**
	 * Objects as arrays, except those that would turn into lists.
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
