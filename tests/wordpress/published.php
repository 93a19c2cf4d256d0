<?php
/**
 * Checks values against the schemas that the public system publishes for its abilities.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Tests;

final class Published {

	private const ANY = [ 'object', 'array', 'string', 'number', 'integer', 'boolean', 'null' ];

	/** Asserts that the input, as JSON, fits the published input schema and that of the registered ability. */
	public static function takes( Harness $t, string $ability, array $input ): array {
		self::fits( $t, $ability, 'input', $input );
		$t->same( true, rest_validate_value_from_schema( $input, wp_get_ability( 'wp-codebox/' . $ability )->get_input_schema(), 'input' ), "$ability does not take published input" );
		return $input;
	}

	/** Asserts that an answer, as JSON, fits the published output schema, and returns it. */
	public static function answers( Harness $t, string $ability, mixed $answer ): array {
		$answer = $t->ok( $answer );
		// The published schema describes JSON: in it, an object is never a list.
		$document = json_decode( (string) wp_json_encode( $answer ) );
		self::fits( $t, $ability, 'output', $document );
		self::objects( $t, $ability, self::schema( $ability, 'output' ), $document );
		return $answer;
	}

	private static function fits( Harness $t, string $ability, string $side, mixed $value ): void {
		$value = json_decode( (string) wp_json_encode( $value ), true );
		$valid = rest_validate_value_from_schema( $value, self::schema( $ability, $side ), $side );
		$t->same( true, is_wp_error( $valid ) ? $valid->get_error_message() : $valid, "$ability: published $side schema" );
	}

	/** Asserts that every member that the schema calls an object is one in JSON; WordPress also takes an empty list. */
	private static function objects( Harness $t, string $ability, array $schema, mixed $value ): void {
		foreach ( $schema['properties'] ?? [] as $name => $member ) {
			if ( is_object( $value ) && isset( $value->$name ) ) {
				if ( 'object' === $member['type'] ) {
					$t->true( is_object( $value->$name ), "$ability: $name is no object in JSON" );
				}
				self::objects( $t, $ability, $member, $value->$name );
			}
		}
	}

	private static function schema( string $ability, string $side ): array {
		static $surface = null;
		$surface ??= json_decode( (string) file_get_contents( getenv( 'TEST_ROOT' ) . '/tests/conformance/public/php-surface.json' ), true );
		return self::typed( $surface['abilities'][ 'wp-codebox/' . $ability ][ $side ] ?? $surface['abilities'][ $ability ][ $side ] );
	}

	/** WordPress ignores `const` and complains about a node without a type. */
	private static function typed( array $node ): array {
		if ( isset( $node['const'] ) ) {
			$node = [ 'type' => is_int( $node['const'] ) ? 'integer' : 'string', 'enum' => [ $node['const'] ] ];
		}
		if ( ! isset( $node['type'] ) && ! isset( $node['anyOf'] ) ) {
			$node['type'] = isset( $node['enum'] ) ? 'string' : self::ANY;
		}
		foreach ( [ 'properties', 'anyOf' ] as $group ) {
			foreach ( $node[ $group ] ?? [] as $name => $child ) {
				// An alternative that only lists required members is part of an object.
				$node[ $group ][ $name ] = self::typed( isset( $child['required'] ) && [ 'required' ] === array_keys( $child ) ? [ 'type' => 'object' ] + $child : $child );
			}
		}
		if ( isset( $node['items'] ) ) {
			$node['items'] = self::typed( $node['items'] );
		}
		return $node;
	}
}
