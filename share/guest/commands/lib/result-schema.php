<?php
/**
 * Compares a result with the schema that the caller expects.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Returns why a result does not have the expected schema; null if it has.
 *
 * @param string $expected Schema id, as it is or as a JSON string, or a JSON Schema; '' expects nothing.
 * @param mixed  $result   Result to compare.
 */
function result_schema_violation( string $expected, mixed $result ): ?string {
	if ( '' === $expected ) {
		return null;
	}
	$schema = in_array( $expected[0], array( '{', '"' ), true ) ? json_decode( $expected, true, 128 ) : $expected;
	if ( is_array( $schema ) ) {
		$valid = rest_validate_value_from_schema( json_decode( (string) wp_json_encode( $result ), true ), typed_schema( $schema ), 'result' );
		return is_wp_error( $valid ) ? 'the result does not have the expected schema: ' . cut( $valid->get_error_message(), 500 ) : null;
	}
	if ( ! is_string( $schema ) ) {
		throw Refusal::input( 'expected-result-schema must be a schema id, or a JSON Schema as an object' );
	}
	$named = is_array( $result ) ? ( $result['schema'] ?? null ) : ( is_object( $result ) ? ( $result->schema ?? null ) : null );
	return $schema === $named ? null : sprintf( 'the result names the schema %s, not %s', Arguments::shown( $named ), Arguments::shown( $schema ) );
}

/**
 * Returns a JSON Schema in the form that WordPress validates: every schema has a type, and a constant is an
 * enumeration of one value.
 *
 * @param array<string,mixed> $schema JSON Schema.
 * @return array<string,mixed>
 */
function typed_schema( array $schema ): array {
	if ( isset( $schema['$ref'] ) ) {
		throw Refusal::input( 'expected-result-schema has a $ref, which WordPress does not follow: repeat the schema in its place' );
	}
	if ( array_key_exists( 'const', $schema ) ) {
		$schema['enum'] = array( $schema['const'] );
		unset( $schema['const'] );
	}
	if ( ! isset( $schema['type'] ) && ! isset( $schema['anyOf'] ) && ! isset( $schema['oneOf'] ) ) {
		$schema['type'] = match ( true ) {
			isset( $schema['properties'] ) || isset( $schema['required'] ) => 'object',
			isset( $schema['items'] ) => 'array',
			default => array( 'string', 'number', 'boolean', 'array', 'object', 'null' ),
		};
	}
	foreach ( array( 'properties', 'patternProperties' ) as $name ) {
		foreach ( (array) ( $schema[ $name ] ?? array() ) as $key => $inner ) {
			$schema[ $name ][ $key ] = typed_schema( (array) $inner );
		}
	}
	foreach ( array( 'items', 'additionalProperties' ) as $name ) {
		if ( is_array( $schema[ $name ] ?? null ) ) {
			$schema[ $name ] = typed_schema( $schema[ $name ] );
		}
	}
	foreach ( array( 'anyOf', 'oneOf' ) as $name ) {
		if ( isset( $schema[ $name ] ) ) {
			$schema[ $name ] = array_map( static fn ( $inner ): array => typed_schema( (array) $inner ), (array) $schema[ $name ] );
		}
	}
	return $schema;
}
