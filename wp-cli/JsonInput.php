<?php
/**
 * Reads the input of an ability from a file or a flag.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Precedence, lowest first: `--input-file`, `--input-json`, flags and arguments.
 */
final class JsonInput {

	/** Flags of the output and of this class: they are not fields of an ability. */
	private const OWN = [ 'input-file', 'input-json', 'format', 'fields', 'porcelain', 'detach', 'yes', 'all' ];

	/**
	 * Returns the fields of `--input-file` and `--input-json`.
	 *
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	public static function fields( array $flags ): array {
		$json = isset( $flags['input-json'] ) ? FlagList::json_object( '--input-json', (string) $flags['input-json'] ) : [];
		return array_merge( self::file( $flags ), $json );
	}

	/**
	 * Returns the fields of a command about one bundle: those of the JSON flags, and `artifact_id` from the argument or
	 * from `--artifact-id`.
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_artifact_id_missing`, `wp_codebox_input_invalid`.
	 */
	public static function artifact( array $args, array $flags ): array {
		if ( isset( $args[0], $flags['artifact-id'] ) ) {
			throw Failure::invalid_input( __( 'The bundle is given twice; give its id as the argument or with --artifact-id.', 'codebox' ) );
		}
		$input = self::fields( $flags );
		$id    = $args[0] ?? $flags['artifact-id'] ?? $input['artifact_id'] ?? '';
		if ( ! is_string( $id ) || '' === trim( $id ) ) {
			throw Failure::because( ErrorCode::ArtifactIdMissing, __( 'No bundle was named; give its id as the argument or with --artifact-id.', 'codebox' ), [ __( '"wp codebox artifacts list" shows the ids.', 'codebox' ) ] );
		}
		return [ 'artifact_id' => trim( $id ) ] + $input;
	}

	/**
	 * Returns the fields of flags that a command does not describe: `--task-timeout-seconds=60` is `task_timeout_seconds`.
	 * Objects and lists are JSON; a list of texts may be separated by commas. A flag without such a field stays a text,
	 * and the schema refuses it by its name.
	 *
	 * @param array<string, mixed> $flags    Flags of the command line, by name.
	 * @param array<string, mixed> $schema   Schema of the input.
	 * @param list<string>         $described Names of the flags that the command reads itself.
	 * @return array<string, mixed>
	 */
	public static function others( array $flags, array $schema, array $described = [] ): array {
		$input = [];
		foreach ( array_diff_key( $flags, array_flip( [ ...self::OWN, ...$described ] ) ) as $flag => $value ) {
			$name           = str_replace( '-', '_', (string) $flag );
			$types          = (array) ( $schema['properties'][ $name ]['type'] ?? 'string' );
			$input[ $name ] = is_string( $value ) ? self::value( '--' . $flag, $value, $types ) : $value;
		}
		return $input;
	}

	/**
	 * Converts the text of a flag to the type of its field.
	 *
	 * @param string       $flag  Flag, for an error.
	 * @param string       $text  Text as the user typed it.
	 * @param list<string> $types Types of the field.
	 */
	private static function value( string $flag, string $text, array $types ): mixed {
		if ( in_array( 'object', $types, true ) && ( ! in_array( 'string', $types, true ) || str_starts_with( ltrim( $text ), '{' ) ) ) {
			return FlagList::json_object( $flag, $text );
		}
		if ( in_array( 'array', $types, true ) ) {
			$list = str_starts_with( ltrim( $text ), '[' ) ? json_decode( $text, true ) : FlagList::split( $flag, $text );
			if ( ! is_array( $list ) ) {
				/* translators: %s: flag. */
				throw Failure::invalid_input( Sentence::of( __( '%s must be a JSON list, or values separated by commas.', 'codebox' ), $flag ) );
			}
			return $list;
		}
		if ( in_array( 'integer', $types, true ) && 1 === preg_match( '/^-?[0-9]{1,18}$/D', $text ) ) {
			return (int) $text;
		}
		if ( in_array( 'boolean', $types, true ) && in_array( $text, [ 'true', 'false', '1', '0' ], true ) ) {
			return in_array( $text, [ 'true', '1' ], true );
		}
		return $text;
	}

	/**
	 * Reads the input of `--input-file`; `-` is STDIN.
	 *
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 * @return array<string, mixed>
	 */
	private static function file( array $flags ): array {
		if ( ! isset( $flags['input-file'] ) ) {
			return [];
		}
		$path = (string) $flags['input-file'];
		// phpcs:ignore WordPress.WP.AlternativeFunctions -- a local file, not a URL.
		$text = '-' === $path ? stream_get_contents( STDIN ) : ( is_file( $path ) ? file_get_contents( $path ) : false );
		if ( false === $text ) {
			/* translators: %s: path. */
			throw Failure::invalid_input( Sentence::of( __( 'The file %s given with --input-file cannot be read.', 'codebox' ), $path ) );
		}
		return FlagList::json_object( '--input-file', $text );
	}
}
