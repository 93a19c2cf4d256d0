<?php
/**
 * Parses flags that hold a list or an object.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * A list is a JSON list, or values separated by commas. For values that may contain a comma (command lines),
 * only a JSON list or a single value is accepted.
 */
final class FlagList {

	/**
	 * Parses values separated by commas, or a JSON list.
	 *
	 * @param string $flag Name of the flag, quoted in the error message.
	 * @param string $text Value as the user typed it.
	 * @return list<string>
	 */
	public static function split( string $flag, string $text ): array {
		if ( str_starts_with( ltrim( $text ), '[' ) ) {
			return self::json_list( $flag, $text );
		}
		return array_values( array_filter( array_map( 'trim', explode( ',', $text ) ), static fn( string $value ): bool => '' !== $value ) );
	}

	/**
	 * Returns those of the named flags that the user gave, as input fields: `--session-id` becomes `session_id`.
	 *
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 * @param list<string>         $names Names of the flags with string values.
	 * @return array<string, string>
	 */
	public static function texts( array $flags, array $names ): array {
		$texts = [];
		foreach ( array_intersect( $names, array_keys( $flags ) ) as $name ) {
			$texts[ str_replace( '-', '_', $name ) ] = (string) $flags[ $name ];
		}
		return $texts;
	}

	/**
	 * Parses a single value, or a JSON list.
	 *
	 * @param string $flag Name of the flag, quoted in the error message.
	 * @param string $text Value as the user typed it.
	 * @return list<string>
	 */
	public static function one_or_json( string $flag, string $text ): array {
		return str_starts_with( ltrim( $text ), '[' ) ? self::json_list( $flag, $text ) : [ $text ];
	}

	/**
	 * Parses a JSON object.
	 *
	 * @param string $flag Name of the flag, quoted in the error message.
	 * @param string $text Value as the user typed it.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	public static function json_object( string $flag, string $text ): array {
		$value = json_decode( $text );
		if ( ! is_object( $value ) ) {
			/* translators: %s: flag, or name of the file that holds the value. */
			throw Failure::invalid_input( Sentence::of( __( '%s must be a JSON object, e.g. {"key":"value"}.', 'codebox' ), $flag ) );
		}
		return (array) json_decode( $text, true );
	}

	/**
	 * Parses a JSON list of strings.
	 *
	 * @param string $flag Name of the flag, quoted in the error message.
	 * @param string $text Value as the user typed it.
	 * @return list<string>
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	private static function json_list( string $flag, string $text ): array {
		$value = json_decode( $text, true );
		if ( ! is_array( $value ) || ! array_is_list( $value ) || $value !== array_filter( $value, 'is_string' ) ) {
			/* translators: %s: flag. */
			throw Failure::invalid_input( Sentence::of( __( '%s must be a JSON list of strings, e.g. ["first","second"].', 'codebox' ), $flag ) );
		}
		return $value;
	}
}
