<?php
/**
 * Input of commands that pass one JSON document to an ability.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Failure;
use WPCodebox\Sentence;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

/** Precedence, lowest first: `--input-file`, `--input-json`, flags. The ability's schema validates the result. */
final class DocumentFlags {

	/**
	 * Returns the input of an ability.
	 *
	 * @param Services             $services Service objects of the plugin.
	 * @param string               $schema   Name of the input schema.
	 * @param array<string, mixed> $flags    Flags of the command line, by name.
	 * @param array<string, string> $kinds   Kind of each flag: `text`, `list` (comma or JSON),
	 *   `json`, `task` (text or JSON object) or `suite` (JSON object with the whole input).
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	public static function input( Services $services, string $schema, array $flags, array $kinds ): array {
		$input = array_merge( JsonInput::fields( $flags ), isset( $flags['suite'] ) ? FlagList::json_object( '--suite', (string) $flags['suite'] ) : [] );
		unset( $kinds['suite'] );
		foreach ( array_intersect_key( $kinds, $flags ) as $flag => $kind ) {
			$value = (string) $flags[ $flag ];

			$input[ str_replace( '-', '_', $flag ) ] = match ( $kind ) {
				'task' => str_starts_with( ltrim( $value ), '{' ) ? FlagList::json_object( '--' . $flag, $value ) : $value,
				'list' => FlagList::split( '--' . $flag, $value ),
				'json' => self::json( '--' . $flag, $value ),
				default => $value,
			};
		}
		return $services->schemas->valid( $schema, $input );
	}

	/**
	 * Parses a JSON object or list.
	 *
	 * @param string $flag Name of the flag, quoted in the error message.
	 * @param string $text Value as the user typed it.
	 * @return array<mixed>
	 */
	private static function json( string $flag, string $text ): array {
		if ( ! str_starts_with( ltrim( $text ), '[' ) ) {
			return FlagList::json_object( $flag, $text );
		}
		$value = json_decode( $text, true );
		if ( ! is_array( $value ) ) {
			/* translators: %s: flag. */
			throw Failure::invalid_input( Sentence::of( __( '%s must be a JSON list.', 'codebox' ), $flag ) );
		}
		return $value;
	}
}
