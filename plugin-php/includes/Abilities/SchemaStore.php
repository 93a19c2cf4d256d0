<?php
/**
 * The JSON Schemas that ship with the plugin.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Abilities;

use RuntimeException;
use WP_Error;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * Reads `abilities/schemas/<name>.v1.schema.json`. The name always comes from a definition file of the
 * plugin, never from user input.
 */
final class SchemaStore {

	/**
	 * Schemas read so far, by name.
	 *
	 * @var array<string, array<string, mixed>>
	 */
	private array $read = [];

	/**
	 * Creates the store with its dependencies.
	 *
	 * @param string $directory Directory of the schemas.
	 */
	public function __construct( private readonly string $directory ) {}

	/**
	 * Returns the sorted names of all schemas.
	 *
	 * @return list<string>
	 */
	public function names(): array {
		$files = glob( $this->directory . '/*.v1.schema.json' );
		return array_map( static fn( string $file ): string => basename( $file, '.v1.schema.json' ), false === $files ? [] : $files );
	}

	/**
	 * Returns a schema document unchanged, with its `$id`.
	 *
	 * @param string $name Schema name, one of `names()`.
	 * @return array<string, mixed>
	 * @throws RuntimeException When the file is missing or invalid.
	 */
	public function document( string $name ): array {
		$file   = $this->directory . '/' . $name . '.v1.schema.json';
		$schema = is_file( $file ) ? wp_json_file_decode( $file, [ 'associative' => true ] ) : null;
		if ( ! is_array( $schema ) ) {
			throw new RuntimeException( sprintf( 'schema %s is missing or broken', $name ) );
		}
		return $schema;
	}

	/**
	 * Returns one schema without `$id` and `$schema`, as WordPress uses it for validation.
	 *
	 * @param string $name Name without version and suffix, e.g. `artifact-list`.
	 * @return array<string, mixed>
	 * @throws RuntimeException When the file is missing or invalid.
	 */
	public function get( string $name ): array {
		if ( ! isset( $this->read[ $name ] ) ) {
			$schema = $this->document( $name );
			unset( $schema['$id'], $schema['$schema'] );
			$this->read[ $name ] = $schema;
		}
		return $this->read[ $name ];
	}

	/**
	 * Validates the fields that a value has. Missing required fields are accepted: the service refuses them
	 * with a specific code, while WordPress has a single code for all of them.
	 *
	 * @param string $name  Name of the schema.
	 * @param mixed  $value Value to validate.
	 * @param string $what  Name of the value in error messages.
	 * @return bool|WP_Error An error has the path of the wrong value as `field` in its data; one about an unknown field also
	 *   `allowed` and `hints`.
	 */
	public function check( string $name, mixed $value, string $what = 'input' ): bool|WP_Error {
		$valid = rest_validate_value_from_schema( $value, array_diff_key( $this->get( $name ), [ 'required' => 1 ] ), $what );
		return is_wp_error( $valid ) ? UnknownFields::first( $this->get( $name ), $value )?->to_wp_error() ?? self::located( $valid, $this->get( $name ), $value, $what ) : $valid;
	}

	/**
	 * Returns an error of WordPress's validator with the path of the wrong value as `field`, such as `mounts[0].source`. An
	 * error without a path gets the name of the first field that is wrong.
	 *
	 * @param WP_Error             $refused Error of the validator.
	 * @param array<string, mixed> $schema  Schema of the whole value.
	 * @param mixed                $value   Whole value.
	 * @param string               $what    Name of the whole value in the error.
	 */
	private static function located( WP_Error $refused, array $schema, mixed $value, string $what ): WP_Error {
		$data  = (array) $refused->get_error_data();
		$param = (string) ( $data['param'] ?? '' );
		$field = null;
		if ( str_starts_with( $param, $what . '[' ) ) {
			// WordPress writes the path as input[mounts][0][source].
			$path  = preg_replace( '/\[([^\[\]]*[^\[\]\d][^\[\]]*)\]/', '.$1', substr( $param, strlen( $what ) ) );
			$field = ltrim( (string) $path, '.' );
		}
		foreach ( null === $field && is_array( $value ) ? array_intersect_key( $schema['properties'] ?? [], $value ) : [] as $name => $member ) {
			if ( is_wp_error( rest_validate_value_from_schema( $value[ $name ], $member, (string) $name ) ) ) {
				$field = (string) $name;
				break;
			}
		}
		if ( null !== $field ) {
			$refused->add_data( $data + [ 'field' => sanitize_text_field( $field ) ] );
		}
		return $refused;
	}

	/**
	 * Returns the failure for a value that `check()` refused.
	 *
	 * @param WP_Error $refused Error of `check()`.
	 */
	public static function failure( WP_Error $refused ): Failure {
		$data = (array) $refused->get_error_data();
		return Failure::invalid_input( $refused->get_error_message(), (array) ( $data['hints'] ?? [] ), array_intersect_key( $data, array_flip( [ 'field', 'allowed' ] ) ) );
	}

	/**
	 * Converts a value to the types of the schema when the present fields are valid.
	 *
	 * @param string               $name  Name of the schema.
	 * @param array<string, mixed> $value Value; its numbers and booleans may be strings.
	 * @param string               $what  Name of the value in error messages.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	public function valid( string $name, array $value, string $what = 'input' ): array {
		$valid = $this->check( $name, $value, $what );
		if ( is_wp_error( $valid ) ) {
			throw self::failure( $valid );
		}
		return (array) rest_sanitize_value_from_schema( $value, $this->get( $name ), $what );
	}

	/**
	 * Returns a schema that accepts what any of several schemas accepts.
	 *
	 * @param list<string> $names Names of the schemas.
	 * @return array<string, mixed>
	 */
	public function any( array $names ): array {
		if ( 1 === count( $names ) ) {
			return $this->get( $names[0] );
		}
		return [
			'type'  => 'object',
			'anyOf' => array_map( [ $this, 'get' ], $names ),
		];
	}
}
